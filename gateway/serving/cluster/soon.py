"""Writes to Redis that nobody waits for: several at once, and none while it is away."""

import logging
from collections.abc import Callable

import anyio

from gateway.errors import StateUnavailable
from gateway.serving.databases.shared_records import Pipe, SharedRecords

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_MOST = 10_000

Write = Callable[[Pipe], object]
"""Adds commands to a pipeline."""


class Soon:
    """Writes in the background. What cannot be written, because Redis is away or too slow, is dropped."""

    def __init__(self, connection: SharedRecords) -> None:
        self._connection = connection
        self._due: list[Write] = []
        self._wake = anyio.Event()
        self._writing = anyio.Lock()

    def write(self, write: Write) -> None:
        """Write this, soon."""
        if len(self._due) < _MOST:
            self._due.append(write)
            self._wake.set()

    async def run(self) -> None:
        """Run forever."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await self.rest()

    async def rest(self) -> None:
        """Write all that is due now; afterwards, what was due before is written, or Redis is away."""
        async with self._writing:
            while self._due:
                await self.flush()

    async def flush(self) -> None:
        """Write some of it now."""
        batch, self._due = self._due[:_AT_ONCE], self._due[_AT_ONCE:]
        try:
            async with self._connection.reached() as redis, redis.pipeline(transaction=False) as pipe:
                for write in batch:
                    write(pipe)
                await pipe.execute()
        except StateUnavailable:
            logger.debug("%d writes were dropped", len(batch))
