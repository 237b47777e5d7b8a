"""Tasks that run beside a block of code and end with it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose tasks are cancelled when the block ends.

    An exception raised by the block is propagated unchanged, not in an ExceptionGroup as with a plain task group.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:
            raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised
