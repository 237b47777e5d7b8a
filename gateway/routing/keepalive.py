"""Keep a host from timing out on a silent upstream by sending it progress in the upstream's place.

Clients built on the TypeScript SDK restart their timer with each progress notification where they set
`resetTimeoutOnProgress` (modelcontextprotocol/typescript-sdk, `RequestOptions`). The specification requires progress to
increase with every notification, and leaves the frequency to the server (2025-11-25, basic/utilities/progress).
"""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.upstream import ProgressCallback

_STEP = 1e-6
"""Increment for progress that the gateway makes up: far below any step of an upstream's own."""


@asynccontextmanager
async def keeping_alive(
    on_progress: ProgressCallback | None, every: float | None
) -> AsyncGenerator[ProgressCallback | None]:
    """Context manager for one call that yields the callback to use in place of `on_progress`.

    Whenever the upstream has sent no progress for `every` seconds, the last progress is repeated with an invisible
    increment (or 0 is sent, if there was none). The upstream's own progress is passed on unchanged, or raised to just
    above the last value if it is not greater. Nothing is sent after the call. Does nothing if either argument is None.
    """
    if on_progress is None or every is None:
        yield on_progress
        return
    keeper = _Keeper(on_progress, every)
    try:
        yield keeper.told
    finally:
        await keeper.end()


class _Keeper:
    """Tracks the last progress sent to one call's host, and when more is due.

    Most calls are answered before anything is due: they cost a timer, and no task.
    """

    def __init__(self, on_progress: ProgressCallback, every: float) -> None:
        self._on_progress: ProgressCallback | None = on_progress
        self._every = every
        self._turn = anyio.Lock()
        self._last: tuple[float, float | None, str | None] | None = None
        self._filling: asyncio.Task[None] | None = None
        self._timer = self._started()

    async def told(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass on progress from the upstream."""
        self._restart()
        async with self._turn:
            if self._last is not None and progress <= self._last[0]:
                progress = _above(self._last[0])
            await self._tell(progress, total, message)

    async def end(self) -> None:
        """Stop sending progress. Called when the call has ended."""
        self._on_progress = None
        self._timer.cancel()
        if self._filling is not None and not self._filling.done():
            self._filling.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._filling])

    def _started(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._every, self._due)

    def _restart(self) -> None:
        self._timer.cancel()
        if self._on_progress is not None and (self._filling is None or self._filling.done()):
            self._timer = self._started()

    def _due(self) -> None:
        self._filling = asyncio.create_task(self._fill_silence(), name="progress for a silent upstream")

    async def _fill_silence(self) -> None:
        """Send the last progress again, a little higher, and wait for the next silence."""
        async with self._turn:
            progress, total, message = self._last or (0.0, None, None)
            try:
                await self._tell(progress if self._last is None else _above(progress), total, message)
            except Exception:
                # If the host cannot be reached, the call itself notices, or does not need to.
                return
        self._filling = None
        self._restart()

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if self._on_progress is not None and math.isfinite(progress):
            self._last = (progress, total, message)
            await self._on_progress(progress, total, message)


def _above(progress: float) -> float:
    """Return a slightly higher number: one step more, or the next float if floats are further apart than that."""
    return max(progress + _STEP, math.nextafter(progress, math.inf))
