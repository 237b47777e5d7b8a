"""Counters of an upstream: calls, connections, and the time of its last change of state."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from gateway.core.model.wire import UNKNOWN_RESOURCE
from gateway.errors import UpstreamRefused


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, UpstreamRefused) and error.code in UNKNOWN_RESOURCE


class Counts:
    """The counters of one upstream, updated by its connections and read for reports."""

    def __init__(self) -> None:
        self.total = 0
        self.failed = 0
        """Calls without a result: lost, timed out, refused. An error reported by a tool is a result."""
        self.running = 0
        self.restarts = 0
        """How often the upstream became ready again after it was lost, or was replaced by one with other settings."""
        self.since = time.time()
        """When the upstream entered its current state, in seconds since 1970."""
        self._was_ready = False
        self._is_restarting = False
        self._quiet: anyio.Event | None = None

    @contextmanager
    def call(self, method: str = "tools/call") -> Generator[None]:
        """Count a call while it runs, and by how it ends.

        A cancelled call has not failed. Neither has the reading of a resource that the upstream does not have: where a
        URI does not tell whose it is, several upstreams are asked, and all but one of them answer so.
        """
        self.total += 1
        self.running += 1
        try:
            yield
        except Exception as error:
            if not (method == "resources/read" and _is_unknown(error)):
                self.failed += 1
            raise
        finally:
            self.running -= 1
            if not self.running and self._quiet is not None:
                self._quiet.set()
                self._quiet = None

    def entered(self, *, ready: bool) -> None:
        """Record a change of state."""
        self.since = time.time()
        if ready:
            self.restarts += self._is_restarting
            self._was_ready, self._is_restarting = True, False

    def lost(self) -> None:
        """Record that a connection has ended by a failure, so that the next one is a restart.

        Not for those that the gateway ends on purpose: when the host that used one leaves, or while nobody calls it.
        """
        self._is_restarting = True

    def follow(self, before: "Counts") -> None:
        """Continue the counts of an upstream of the same name that had other settings."""
        self.total, self.failed, self.restarts = before.total, before.failed, before.restarts
        self._was_ready = self._is_restarting = before._was_ready

    async def quiet(self) -> None:
        """Wait until no call is running."""
        while self.running:
            self._quiet = self._quiet or anyio.Event()
            await self._quiet.wait()
