"""Keep a host from timing out on a silent upstream by sending it progress in the upstream's place.

Clients built on the TypeScript SDK restart their timer with each progress notification where they set
`resetTimeoutOnProgress` (modelcontextprotocol/typescript-sdk, `RequestOptions`). The specification requires progress to
increase with every notification, and leaves the frequency to the server (2025-11-25, basic/utilities/progress).
"""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.system.background_tasks import background_tasks
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
    keeper = _Keeper(on_progress)
    async with background_tasks() as tasks:
        tasks.start_soon(keeper.fill_silence, every)
        try:
            yield keeper.told
        finally:
            keeper.over()


class _Keeper:
    """Tracks the last progress sent to one call's host, and when more is due."""

    def __init__(self, on_progress: ProgressCallback) -> None:
        self._on_progress: ProgressCallback | None = on_progress
        self._turn = anyio.Lock()
        self._heard = anyio.Event()
        self._last: tuple[float, float | None, str | None] | None = None

    async def told(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass on progress from the upstream."""
        self._heard.set()
        async with self._turn:
            if self._last is not None and progress <= self._last[0]:
                progress = _above(self._last[0])
            await self._tell(progress, total, message)

    async def fill_silence(self, every: float) -> None:
        """Send progress whenever the upstream has been silent for `every` seconds, until cancelled."""
        while True:
            with anyio.move_on_after(every):
                await self._heard.wait()
                self._heard = anyio.Event()
                continue
            async with self._turn:
                progress, total, message = self._last or (0.0, None, None)
                try:
                    await self._tell(progress if self._last is None else _above(progress), total, message)
                except Exception:
                    # If the host cannot be reached, the call itself notices, or does not need to.
                    return

    def over(self) -> None:
        """Stop sending progress. Called when the call has ended."""
        self._on_progress = None

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if self._on_progress is not None and math.isfinite(progress):
            self._last = (progress, total, message)
            await self._on_progress(progress, total, message)


def _above(progress: float) -> float:
    """Return a slightly higher number: one step more, or the next float if floats are further apart than that."""
    return max(progress + _STEP, math.nextafter(progress, math.inf))
