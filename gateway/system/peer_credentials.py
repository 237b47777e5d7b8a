"""Who is at the other end of a Unix socket, by the system's own word. Standard library only."""

import socket
import struct
import sys
from typing import NamedTuple

_MAC_LOCAL = 0
_MAC_PEER = 1
"""`SOL_LOCAL` and `LOCAL_PEERCRED` of macOS and FreeBSD (sys/un.h), which Python does not name."""


class Peer(NamedTuple):
    """A process at the other end: its user, and its id if the system says it."""

    user: int
    pid: int | None


def peer_of(connection: socket.socket) -> Peer | None:
    """Return the process that opened the other end when it did; None if the system does not say."""
    try:
        if connection.family != socket.AF_UNIX:
            return None
        if sys.platform == "linux":
            # struct ucred of unix(7): pid, uid, gid.
            pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return Peer(user, pid)
        if sys.platform == "darwin":
            # struct xucred of sys/ucred.h: version, uid, and groups.
            _, user = struct.unpack("2I", connection.getsockopt(_MAC_LOCAL, _MAC_PEER, 8))
            return Peer(user, None)
    except (OSError, AttributeError, struct.error):
        pass
    return None
