"""One pool of media workers per event loop, for callers that have none of their own: `shared_workers`.

A pool may start as many processes as there are processors. Model turns that are lowered concurrently therefore share
one pool; otherwise fifty of them would start fifty pools, and none would get its work done.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import anyio

from gateway.config.content_settings import MediaSettings
from gateway.content.media.workers import MediaWorkers


class _Held:
    """A pool held open by a task of its own: its task group has to be exited by the task that entered it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.users = 0
        self.ending = asyncio.Event()
        self.opened: asyncio.Future[MediaWorkers] = loop.create_future()
        self.task = loop.create_task(self._hold(), name="media workers")

    async def _hold(self) -> None:
        async with MediaWorkers(MediaSettings()) as media:
            self.opened.set_result(media)
            await self.ending.wait()


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()


@asynccontextmanager
async def shared_workers() -> AsyncGenerator[MediaWorkers]:
    """Provide the pool of this event loop. It ends with its last user; no process is started before it is needed."""
    loop = asyncio.get_running_loop()
    held = _POOLS.get(loop)
    if held is None:
        held = _POOLS[loop] = _Held(loop)
    held.users += 1
    try:
        yield await asyncio.shield(held.opened)
    finally:
        held.users -= 1
        if not held.users:
            del _POOLS[loop]
            held.ending.set()
            with anyio.CancelScope(shield=True):
                await held.task
