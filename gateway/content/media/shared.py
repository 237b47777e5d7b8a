"""One pool of media workers for everybody in an event loop who brings none: `shared_workers`.

Each pool may start as many processes as there are processors. So turns that are lowered side by side share one, in
which they take their turns; without that, fifty of them start fifty pools, and none gets its work done.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import anyio

from gateway.config.schema import MediaSettings
from gateway.content.media.workers import MediaWorkers


class _Held:
    """A pool that a task of its own holds open: its task group has to be left by the task that entered it."""

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
    """The pool of this event loop. It ends with the last who uses it; no process is started before it is needed."""
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
