"""What a peer may take of a port: time for a request, connections, answers that it does not read."""

import errno
import sys
from dataclasses import dataclass

MOST_CONNECTIONS = 1_000
OF_OPEN_FILES = 3 / 8
"""The part of the files that the process may open that one port takes: there may be two, and upstreams need theirs."""

KEEP_ALIVE_SECONDS = 75
"""Longer than the pools of common clients hold a connection: a request never meets one that is just being closed."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Why no more connections can be accepted for now."""


@dataclass(frozen=True)
class Limits:
    """What the peers of one port may take.

    `request` is in seconds: for the headers of a request, and for its body, which gets one more for each
    `bytes_per_second` of it that arrive. (Apache's mod_reqtimeout has 20 s and 500 bytes by default.) An answer that is
    not read is broken off after `unread` seconds in which the peer took less than `bytes_per_second`; sooner where
    more than `unread_bytes` wait on all connections together.

    `connections` are open at once, from one address at most `connections_per_address`; that is not for the loopback and
    for `proxies`, behind whose addresses there are many.
    """

    request: float = 20.0
    unread: float = 60.0
    unread_bytes: int = 256 * 1024 * 1024
    bytes_per_second: int = 500
    connections: int = MOST_CONNECTIONS
    connections_per_address: int = 200
    proxies: tuple[str, ...] = ()

    @property
    def connections_at_most(self) -> int:
        """As many as the files allow that the process may open."""
        files = _open_files()
        return self.connections if files is None else max(8, min(self.connections, int(files * OF_OPEN_FILES)))


def _open_files() -> int | None:
    """How many files the process may have open; None when there is no limit, or none that is known."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
