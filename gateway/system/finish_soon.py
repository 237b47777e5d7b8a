"""Work that is not given up at once when its task is cancelled, but may not keep anybody waiting for long either."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.system.background_tasks import background_tasks


@asynccontextmanager
async def shielded_for(seconds: float) -> AsyncGenerator[None]:
    """Shield a block from being cancelled: once its task is, the block has `seconds` more to end."""
    scope = anyio.CancelScope(shield=True)

    async def bound() -> None:
        try:
            await anyio.sleep_forever()
        finally:  # cancelled, with the task or because the block has ended
            scope.deadline = anyio.current_time() + seconds

    async with background_tasks() as tasks:
        tasks.start_soon(bound)
        with scope:
            yield
