"""Ask a database in the background whether it answers again, so that no request has to wait to find that out."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.errors import StateUnavailable

_PAUSE_SECONDS = 1.0


class Probe:
    """Asks by `ping`, which raises StateUnavailable, until that has an answer."""

    def __init__(self, ping: Callable[[], Awaitable[None]], pause: float = _PAUSE_SECONDS) -> None:
        self._ping = ping
        self._pause = pause
        self._task: asyncio.Task[None] | None = None

    @property
    def is_asking(self) -> bool:
        """Whether the database has not answered since `begin`."""
        return self._task is not None and not self._task.done() and not self._task.get_loop().is_closed()

    def begin(self) -> None:
        """Ask from now on: somebody has waited for an answer in vain."""
        if not self.is_asking:
            self._task = asyncio.get_running_loop().create_task(self._ask())

    async def stop(self) -> None:
        """Ask no more."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    async def _ask(self) -> None:
        while True:
            try:
                return await self._ping()
            except StateUnavailable:
                await asyncio.sleep(self._pause)
