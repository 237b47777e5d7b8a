"""The state of one connection and its cause, which tasks can read and wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from gateway.errors import Failure, LoginRequired, UpstreamUnavailable
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.states import UpstreamState, what_to_do

logger = logging.getLogger(__name__)


class ConnectionStatus:
    """State of a connection, and why it is in it. `on_change` is called when one of them is another."""

    def __init__(self, name: str, counts: Counts, *, enabled: bool, on_change: Callable[[], None]) -> None:
        self.state = UpstreamState.STARTING if enabled else UpstreamState.DISABLED
        self.why: Failure | str | None = None if enabled else "disabled in the configuration (enabled = false)"
        """A failure; or, in words, a cause that is not a failure."""
        self._name = name
        self._counts = counts
        self._on_change = on_change
        self._changed = anyio.Event()
        self._failed: Failure | None = None  # without what is done for another start

    @property
    def failure(self) -> Failure | None:
        """Why it is not ready, if something failed."""
        return self.why if isinstance(self.why, Failure) else None

    @property
    def cause(self) -> str | None:
        """Why it is not ready, in words; those of a failure with its remedy."""
        return self.why.cause if isinstance(self.why, Failure) else self.why

    def unavailable(self) -> UpstreamUnavailable:
        """The error for a call of an upstream that is not connected."""
        if self.state is UpstreamState.LOGIN:
            return LoginRequired(self._name)
        words = f"is still {self.state.value}" if self.state.is_pending else "is not available"
        failure = self.failure
        said = failure.message if failure is not None else self.cause
        remedy = what_to_do(self._name, self.state, failure)
        return UpstreamUnavailable(self._name, f"{words}: {said}" if said else words, remedy=remedy, failure=failure)

    def begin(self, state: UpstreamState, why: str) -> None:
        """Begin in a state, which is not reported."""
        self.state, self.why = state, why

    async def changed(self) -> None:
        """Wait for the next change, even one to the same state."""
        await self._changed.wait()

    async def ready(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds while it is starting or installing, and return whether it is ready."""
        with anyio.move_on_after(timeout):
            while self.state.is_pending:
                await self.changed()
        return self.state is UpstreamState.READY

    def begin_again(self, doing: str | None) -> bool:
        """Say what is done for another start, after one that failed. Return False if none has failed.

        The failure stays what is known of it, and `doing` is added. That is no news for the log.
        """
        if self.state is not UpstreamState.FAILED or not isinstance(self.why, Failure):
            return False
        failed = self._failed or self.why
        self._failed = failed
        why = failed._replace(message=f"{failed.message}; {doing}") if doing else failed
        if why != self.why:
            self.why = why
            self._on_change()
        return True

    def enter(self, state: UpstreamState, why: Failure | str | None = None) -> None:
        """Enter a state, and report it if it is another one, or has another cause."""
        news = (state, why) != (self.state, self._failed or self.why)
        if state is not self.state and not (state.is_pending and self.state.is_pending):  # one start, one clock
            self._counts.entered(ready=state is UpstreamState.READY)
        self.state, self.why, self._failed = state, why, None
        self._changed.set()
        self._changed = anyio.Event()
        if news:
            if state is UpstreamState.LOGIN:
                logger.info("upstream %s: waits for a login", self._name)
            if state is UpstreamState.FAILED:
                logger.warning("upstream %s: failed: %s", self._name, self.cause)
            self._on_change()
