"""Writes to Redis that nobody waits for: several at once, and none while it is away."""

import logging
from collections.abc import Callable

import anyio

from gateway.errors import StateUnavailable
from gateway.serving.databases.shared_records import Pipe, SharedRecords

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_MOST = 50_000
"""Maximum number of writes that are due: more than what is written again when Redis has lost everything."""

Write = Callable[[Pipe], object]
"""Adds commands to a pipeline."""


class Soon:
    """Writes in the background. What cannot be written, because Redis is away or too slow, is dropped."""

    def __init__(self, connection: SharedRecords) -> None:
        self._connection = connection
        self._due: list[Write] = []
        self._wake = anyio.Event()
        self._writing = anyio.Lock()
        self._taken = 0
        self._done = 0
        self._went_on = anyio.Event()
        self.has_dropped = False
        """Whether something was dropped; to be reset by who writes it again."""

    def write(self, write: Write) -> None:
        """Write this, soon."""
        if len(self._due) >= _MOST:
            self.has_dropped = True
            return
        self._due.append(write)
        self._taken += 1
        self._wake.set()

    async def run(self) -> None:
        """Run forever."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await self.rest()

    async def written(self, seconds: float) -> None:
        """Wait until what is due now is written by `run`, or dropped; at most for so long.

        Whoever waits may be cancelled: that breaks off nothing that others have written.
        """
        due = self._taken
        with anyio.move_on_after(seconds):
            while self._done < due:
                await self._went_on.wait()

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
            self.has_dropped = True
            logger.debug("%d writes were dropped", len(batch))
        finally:
            self._done += len(batch)
            self._went_on.set()
            self._went_on = anyio.Event()
