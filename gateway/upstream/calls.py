"""What bounds one call: a limit on the whole, a limit on silence, and progress that breaks the silence."""

import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

import anyio

from gateway.errors import UpstreamTimeout

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None]]
"""Told of progress: how much is done, of how much in all (if known), and in words (if given)."""


class CallLimits(Protocol):
    """Limits on a call in seconds: `call` for all of it, `idle` without a sign of life."""

    @property
    def call(self) -> float:
        """Seconds for the whole call."""
        ...

    @property
    def idle(self) -> float:
        """Seconds without progress."""
        ...


class Obstacle(NamedTuple):
    """What a call waits for before it is sent, as in `tools/call did not get its turn`, and what to do about that."""

    words: str
    remedy: str


class Deadline:
    """The deadline of one call: run the call inside `scope`, and `touch` it at every sign of life.

    `obstacle` is set while the call is not sent yet: then that is why it ran out of time.
    """

    def __init__(self, limits: CallLimits) -> None:
        self.obstacle: Obstacle | None = None
        self._limits = limits
        self._end = anyio.current_time() + limits.call
        self.scope = anyio.CancelScope(deadline=self._end)

    def touch(self) -> None:
        """The upstream has just shown that it lives (or has just been asked)."""
        self.scope.deadline = min(self._end, anyio.current_time() + self._limits.idle)

    def error(self, upstream: str, doing: str) -> UpstreamTimeout:
        """The error for a call that ran out of time."""
        if self.obstacle is not None:
            words = f"{doing} {self.obstacle.words}, for {self._limits.call:g} s"
            return UpstreamTimeout(upstream, words, remedy=self.obstacle.remedy)
        if anyio.current_time() >= self._end:
            words, key, seconds = "took longer than", "call", self._limits.call
        else:
            words, key, seconds = "showed no progress for", "idle", self._limits.idle
        return UpstreamTimeout(
            upstream, f"{doing} {words} {seconds:g} s", remedy=f"raise timeout.{key} if it needs more"
        )


class ProgressRelay:
    """Takes an upstream's progress notifications: each touches the deadline, and goes on to the callback, if any.

    While the callback is busy only the newest is kept, so that a slow host is never buried under an eager upstream;
    nothing is delivered after `close`, when the call has been answered.
    """

    def __init__(self, deadline: Deadline, callback: ProgressCallback | None) -> None:
        self._deadline = deadline
        self._callback = callback
        self._newest: tuple[float, float | None, str | None] | None = None
        self._busy = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.touch()
        if self._callback is None or not math.isfinite(progress):
            return
        self._newest = (progress, total, message)
        if self._busy:
            return
        self._busy = True
        try:
            while self._newest is not None and self._callback is not None:
                newest, self._newest = self._newest, None
                await self._callback(*newest)
        finally:
            self._busy = False

    def close(self) -> None:
        """The call is over."""
        self._callback = None
