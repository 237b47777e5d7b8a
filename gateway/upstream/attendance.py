"""Which hosts are there now: those that have a stream or a request open at the gateway."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager


class Attendance:
    """Hosts by what tells them apart (`gateway.upstream.connection.owners.host_of`), counted while something of theirs
    is open."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def attending(self, host: str) -> Generator[None]:
        """While this is open, the host is there."""
        self._open[host] += 1
        try:
            yield
        finally:
            self._open[host] -= 1
            if not self._open[host]:
                del self._open[host]

    def has(self, host: str) -> bool:
        """Whether the host is there."""
        return host in self._open
