"""What an upstream has been through, in numbers: calls, connections, and since when it is what it is."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Counts:
    """Counted by `Upstream`, read by whoever reports on it."""

    def __init__(self) -> None:
        self.total = 0
        self.failed = 0
        """Calls without a result: lost, timed out, refused. A tool that reports an error of its own has answered."""
        self.running = 0
        self.connections = 0
        """How often it became ready."""
        self.since = time.time()
        """When it entered its present state, in seconds since 1970."""
        self._quiet = anyio.Event()

    @property
    def restarts(self) -> int:
        """How often it was connected to again."""
        return max(0, self.connections - 1)

    @contextmanager
    def call(self) -> Generator[None]:
        """One call: counted while it runs, and by how it ends. One that is cancelled has not failed."""
        self.total += 1
        self.running += 1
        try:
            yield
        except Exception:
            self.failed += 1
            raise
        finally:
            self.running -= 1
            if not self.running:
                self._quiet.set()
                self._quiet = anyio.Event()

    def entered(self, *, ready: bool) -> None:
        """Its state has changed."""
        self.since = time.time()
        self.connections += ready

    def follow(self, before: "Counts") -> None:
        """Go on counting where an upstream of the same name, with other settings, stopped."""
        self.total, self.failed, self.connections = before.total, before.failed, before.connections

    async def quiet(self) -> None:
        """Wait until no call is running."""
        while self.running:
            await self._quiet.wait()
