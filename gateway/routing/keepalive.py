"""Keep a host from giving up on a silent upstream, by sending it progress in the upstream's place.

Clients built on the TypeScript SDK start their timer anew with each progress notification where they set
`resetTimeoutOnProgress` (modelcontextprotocol/typescript-sdk, `RequestOptions`). The specification asks that progress
rises with every notification, and leaves the frequency to the server (2025-11-25, basic/utilities/progress).
"""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.system.background_tasks import background_tasks
from gateway.upstream import ProgressCallback

_STEP = 1e-6
"""By how much progress rises that nobody made: far below what an upstream counts in."""


@asynccontextmanager
async def keeping_alive(
    on_progress: ProgressCallback | None, every: float | None
) -> AsyncGenerator[ProgressCallback | None]:
    """Around one call: gives the callback to use for its progress in place of `on_progress`.

    After `every` seconds in which the upstream told none, the last progress is told again, an invisible step higher (0
    when there was none). What the upstream tells passes as it is, or raised to just above what was told last where it
    is no more than that. Nothing is told after the call. Without a callback or `every` this does nothing.
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
    """What one call's host was told last, and when it is due to hear something again."""

    def __init__(self, on_progress: ProgressCallback) -> None:
        self._on_progress: ProgressCallback | None = on_progress
        self._turn = anyio.Lock()
        self._heard = anyio.Event()
        self._last: tuple[float, float | None, str | None] | None = None

    async def told(self, progress: float, total: float | None, message: str | None) -> None:
        """The upstream has told this."""
        self._heard.set()
        async with self._turn:
            if self._last is not None and progress <= self._last[0]:
                progress = _above(self._last[0])
            await self._tell(progress, total, message)

    async def fill_silence(self, every: float) -> None:
        """Tell something whenever the upstream has been silent for so long, until this is cancelled."""
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
                    # Whatever keeps the host from hearing this, the call itself will find out, or do without it.
                    return

    def over(self) -> None:
        """The call has ended."""
        self._on_progress = None

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if self._on_progress is not None and math.isfinite(progress):
            self._last = (progress, total, message)
            await self._on_progress(progress, total, message)


def _above(progress: float) -> float:
    """A step higher, or the next number that there is, where numbers lie further apart than that."""
    return max(progress + _STEP, math.nextafter(progress, math.inf))
