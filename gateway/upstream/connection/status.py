"""The state of one connection and its cause, which tasks can read and wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.transports.failures import Failure

logger = logging.getLogger(__name__)


class ConnectionStatus:
    """The state and cause of a connection. `on_change` is called when one of them changes."""

    def __init__(self, name: str, counts: Counts, *, enabled: bool, on_change: Callable[[], None]) -> None:
        self.state = UpstreamState.STARTING if enabled else UpstreamState.DISABLED
        self.cause: str | None = None if enabled else "disabled in the configuration (enabled = false)"
        self.trouble: Failure | None = None
        """The failure behind the cause."""
        self._name = name
        self._counts = counts
        self._on_change = on_change
        self._changed = anyio.Event()

    def begin(self, state: UpstreamState, cause: str | None) -> None:
        """Set the initial state and cause, without reporting a change."""
        self.state, self.cause = state, cause

    async def changed(self) -> None:
        """Wait for the next change, even one to the same state."""
        await self._changed.wait()

    async def ready(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds while it is starting or installing, and return whether it is ready."""
        with anyio.move_on_after(timeout):
            while self.state.is_pending:
                await self.changed()
        return self.state is UpstreamState.READY

    def fail(self, failure: Failure, state: UpstreamState = UpstreamState.FAILED) -> None:
        """Enter a state without a connection because of `failure`."""
        self.enter(state, failure.cause)
        self.trouble = failure

    def enter(self, state: UpstreamState, cause: str | None) -> None:
        """Enter a state, and report the change."""
        news = (state, cause) != (self.state, self.cause)
        if state is not self.state and not (state.is_pending and self.state.is_pending):  # one start, one clock
            self._counts.entered(ready=state is UpstreamState.READY)
        self.state, self.cause, self.trouble = state, cause, None
        self._changed.set()
        self._changed = anyio.Event()
        if news:
            if state is UpstreamState.FAILED:
                logger.warning("upstream %s: failed: %s", self._name, cause)
            self._on_change()
