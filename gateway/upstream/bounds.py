"""What one upstream may use: calls at once, starts within an hour, memory, and time without anything to do."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from gateway.core.wording import size_words
from gateway.upstream.calls import Deadline, Obstacle
from gateway.upstream.failures import Failure, OverMemory, Resting
from gateway.upstream.platforms import resident_memory

if TYPE_CHECKING:
    from gateway.config.schema import UpstreamSettings
    from gateway.upstream.counting import Counts
    from gateway.upstream.session import Session

HOUR = 3_600.0

MEMORY_PERIOD = 5.0
"""Seconds between two looks at how much memory an upstream uses; each costs some milliseconds, in a thread."""


class Turns:
    """Who may call now: at most so many at once, the others in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free = anyio.Semaphore(limit) if limit else None

    @asynccontextmanager
    async def turn(self, deadline: Deadline) -> AsyncGenerator[None]:
        """Wait for one's turn, and have it inside; a deadline that passes meanwhile names this as the reason."""
        if self._free is None:
            yield
            return
        words = f"did not get its turn: {self._limit} other calls were running (limits.calls)"
        deadline.obstacle = Obstacle(words, "try again in a moment, or raise limits.calls if the server can take more")
        async with self._free:
            deadline.obstacle = None
            yield


class Restarts:
    """How many starts there were within the last hour, and whether there may be another."""

    def __init__(self, per_hour: int, clock: Callable[[], float] = anyio.current_time) -> None:
        self._per_hour = per_hour
        self._clock = clock
        self._times: deque[float] = deque(maxlen=per_hour or 1)

    def count(self) -> None:
        """It is started again now."""
        self._times.append(self._clock())

    def pause(self) -> float:
        """Seconds until it may be started again unasked; 0 when it may be now."""
        if not self._per_hour or len(self._times) < self._per_hour:
            return 0.0
        return max(0.0, self._times[0] + HOUR - self._clock())

    def explained(self, failure: Failure) -> Failure:
        """Why it is not started any more, for as long as that is so."""
        words = f"{failure.words}; it was started {self._per_hour} times within an hour, and now it is left alone"
        remedy = "the next call starts it once more; limits.restarts is how often it may be started in an hour"
        return Failure(failure.kind, words, f"{failure.remedy}; {remedy}" if failure.remedy else remedy)


async def rest_when_idle(session: Session, settings: UpstreamSettings, counts: Counts, last_use: list[float]) -> None:
    """End the session when nobody has called for `idle_stop` seconds."""
    if not settings.idle_stop:
        return
    while True:
        await counts.quiet()
        idle = anyio.current_time() - last_use[0]
        # Nothing waits between looking and ending, so no call can begin in between.
        if not counts.running and idle >= settings.idle_stop:
            session.finish(Resting(settings.idle_stop))
            return
        await anyio.sleep(max(0.01, settings.idle_stop - idle))


async def end_over_memory(session: Session, settings: UpstreamSettings) -> None:
    """End the session when its process, with all below it, uses more than `limits.memory`."""
    limit = settings.limits.memory
    if not limit or session.pid is None:
        return
    while True:
        used = await anyio.to_thread.run_sync(resident_memory, session.pid)
        if used is not None and used > limit:
            session.finish(OverMemory(size_words(used), size_words(limit)))
            return
        await anyio.sleep(MEMORY_PERIOD)
