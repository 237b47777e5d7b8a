"""Keep track of the hosts that are present: those with a stream or a request open at the gateway."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager


class Attendance:
    """The hosts that are present, by their identity (`gateway.upstream.connection.owners.host_of`)."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def attending(self, host: str) -> Generator[None]:
        """Mark the host as present inside the context."""
        self._open[host] += 1
        try:
            yield
        finally:
            self._open[host] -= 1
            if not self._open[host]:
                del self._open[host]

    def has(self, host: str) -> bool:
        """Whether the host is present."""
        return host in self._open
