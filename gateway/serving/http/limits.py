"""Limits for the peers of a port: time for a request, number of connections, unread answers."""

import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass

MOST_CONNECTIONS = 1_000
OF_OPEN_FILES = 3 / 8
"""Share of the process's file descriptors for one port: there may be two ports, and upstreams need some as well."""

KEEP_ALIVE_SECONDS = 75
"""Longer than common clients' pools keep a connection, so that no request arrives just as it is being closed."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors that mean that no more connections can be accepted for now."""


def no_replica(address: str) -> bool:
    """Return false: there are no replicas."""
    return False


@dataclass(frozen=True)
class Limits:
    """Limits for the peers of one port.

    `handshake` is the number of seconds for a TLS handshake, which counts as a connection from its first byte on.
    `request` is the number of seconds for the headers of a request, and for its body, which gets one more for each
    `bytes_per_second` that arrive. (Apache's mod_reqtimeout has 20 s and 500 bytes by default.) A connection is closed
    after `unread` seconds in which the peer read less than `bytes_per_second` of an answer; sooner if more than
    `unread_bytes` wait on all connections together.

    At most `connections` may be open at once, and `connections_per_address` from one address, or for IPv6 from one /64
    (`peer_of`). The latter does not apply to loopback and `proxies`, behind which there may be many peers, nor to the
    addresses of other replicas.
    """

    handshake: float = 10.0
    request: float = 20.0
    unread: float = 60.0
    unread_bytes: int = 256 * 1024 * 1024
    bytes_per_second: int = 500
    connections: int = MOST_CONNECTIONS
    connections_per_address: int = 200
    proxies: tuple[str, ...] = ()
    is_replica: Callable[[str], bool] = no_replica

    @property
    def connections_at_most(self) -> int:
        """`connections`, or fewer if the process's limit of open files does not allow as many."""
        files = _open_files()
        return self.connections if files is None else max(8, min(self.connections, int(files * OF_OPEN_FILES)))


def _open_files() -> int | None:
    """The maximum number of files that the process may have open; None if unlimited or unknown."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
