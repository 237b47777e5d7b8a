"""Time limits of one call: a limit in all, and a limit without progress, which progress extends."""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import anyio
import anyio.lowlevel

from gateway.errors import UpstreamTimeout

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with progress: the amount done, the total (if known), and a message (if any)."""


_NOT_ALONE = "waited for its host, and other hosts for the session that they share"
_ASK_AGAIN = "repeat the request; session = 'host-session' gives each host a session of its own"

_WAITING = 256
_LAST = 1.0


class CallLimits(Protocol):
    """Limits on a call in seconds: `call` in all, `idle` without a sign of life."""

    @property
    def call(self) -> float:
        """Seconds for the whole call."""
        ...

    @property
    def idle(self) -> float:
        """Seconds without progress."""
        ...


class WaitReason(NamedTuple):
    """The reason why a call is not sent yet, as in `tools/call did not get its turn`, and what to do about it."""

    words: str
    remedy: str


class Deadline:
    """The deadline of one call: run the call inside `scope`, and `touch` the deadline at every sign of life.

    `wait_reason` is set while the call is not sent yet, and explains a timeout.
    """

    def __init__(self, limits: CallLimits) -> None:
        self.wait_reason: WaitReason | None = None
        self._limits = limits
        self._end = anyio.current_time() + limits.call
        self._held = 0
        self._held_since = 0.0
        self._hurry: float | None = None  # seconds that it had from when others began to wait, while held
        self.scope = anyio.CancelScope(deadline=self._end)

    def touch(self) -> None:
        """Record a sign of life of the upstream, or that the request was just sent."""
        if not self._held:
            self.scope.deadline = min(self._end, anyio.current_time() + self._limits.idle)

    def timed_out(self, upstream: str, doing: str) -> UpstreamTimeout | None:
        """Return the error of a call that is cancelled because it ran out of time; None for any other."""
        is_late = self.scope.cancel_called and anyio.current_time() >= self.scope.deadline
        return self.error(upstream, doing) if is_late else None

    @contextmanager
    def held(self) -> Generator[None]:
        """Stop the clock inside the context, while the call waits for something other than the upstream."""
        if not self._held:
            self._held_since = anyio.current_time()
            self.scope.deadline = math.inf
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._end += anyio.current_time() - self._held_since
                self._hurry = self._hurry if self.scope.cancel_called else None
            self.touch()

    def hurry(self, seconds: float | None) -> None:
        """Let a held call end in `seconds`, because others wait for its end; with None they no longer do.

        The first time counts: those who come later do not prolong it.
        """
        if self._held and not self.scope.cancel_called and (seconds is None) != (self._hurry is None):
            self._hurry = seconds
            self.scope.deadline = math.inf if seconds is None else anyio.current_time() + seconds

    def error(self, upstream: str, doing: str) -> UpstreamTimeout:
        """Return the error for a call that ran out of time."""
        if self.wait_reason is not None:
            words = f"{doing} {self.wait_reason.words}, for {self._limits.call:g} s"
            return UpstreamTimeout(upstream, words, remedy=self.wait_reason.remedy)
        if self._hurry is not None:
            return UpstreamTimeout(upstream, f"{doing} {_NOT_ALONE}, for {self._hurry:g} s", remedy=_ASK_AGAIN)
        if anyio.current_time() >= self._end:
            words, key, seconds = "took longer than", "call", self._limits.call
        else:
            words, key, seconds = "showed no progress for", "idle", self._limits.idle
        return UpstreamTimeout(
            upstream, f"{doing} {words} {seconds:g} s", remedy=f"raise timeout.{key} if it needs more"
        )


class ProgressRelay:
    """Receives an upstream's progress: each notification touches the deadline and is passed to the callback, if any.

    While the callback is busy, notifications wait; if there are too many, the oldest are dropped, so that an eager
    upstream cannot overwhelm a slow host. Nothing is delivered after `close`, when the call has been answered.
    """

    def __init__(self, deadline: Deadline, callback: ProgressCallback | None) -> None:
        self._deadline = deadline
        self._callback = callback
        self._waiting = deque[tuple[float, float | None, str | None]](maxlen=_WAITING)
        self._busy = False
        self._idle: anyio.Event | None = None

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.touch()
        if self._callback is None or not math.isfinite(progress):
            return
        self._waiting.append((progress, total, message))
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting and self._callback is not None:
                await self._callback(*self._waiting.popleft())
        finally:
            self._busy = False
            if self._idle is not None:
                self._idle.set()

    async def drain(self) -> None:
        """Deliver the progress that preceded the response, if the host accepts it soon enough."""
        if self._callback is None:
            return
        await anyio.lowlevel.checkpoint()  # the last notifications have arrived, in tasks that may not have started
        with anyio.move_on_after(_LAST):
            while self._busy or self._waiting:
                self._idle = anyio.Event()
                await self._idle.wait()

    def close(self) -> None:
        """End the delivery: the call is over."""
        self._callback = None
