"""Limits of one upstream: concurrent calls, starts per hour, memory, and idle time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from gateway.core.fact_words import counted, size_words
from gateway.errors import Failure, UpstreamError
from gateway.system.process_usage import memory_of_trees
from gateway.upstream.connection.deadlines import Deadline, WaitReason
from gateway.upstream.transports.causes import OverMemory, Resting

if TYPE_CHECKING:
    from gateway.config.upstream_settings import UpstreamSettings
    from gateway.upstream.connection.counters import Counts
    from gateway.upstream.connection.session import Session

HOUR = 3_600.0

MEMORY_PERIOD = 5.0
"""Seconds between two checks of an upstream's memory; each takes a few milliseconds in a thread."""


AHEAD = 16
"""The number of sent calls that the upstream may not have read yet: more would wait there instead of here."""

PONG_SECONDS = 5.0
"""Seconds to wait for a sign that the upstream reads; then more calls are sent, in case it ignores `ping`."""

_TURN = "try again in a moment, or raise limits.calls if the server can take more"
_READING = "the server works on one call after the other: try again in a moment, or raise timeout.call"


class CallQueueFull(Exception):
    """A call is not queued, or not any more: `words` and `remedy` say why."""

    def __init__(self, most: int) -> None:
        self.words = f"{counted(most, 'call')} wait for it already"
        self.remedy = "try again in a moment; limits.queue is how many may wait"
        super().__init__(self.words)


class CallQueue:
    """A fair queue of calls: at most `limit` run at once (0: no limit), and at most `AHEAD` are unread by the upstream.

    Waiting parties take turns, and each party's calls run in order: however many calls one host has, another host's
    call is among the next. Calls cancelled while they wait are removed. At most `most_waiting` wait (0: no limit): of
    one more, the newest of the party with the most is refused.

    A call cancelled after it was sent may still wait in the upstream, which does not drop what it has not read. So it
    counts until the response to a later request shows that it was read; if there is none, `keep` requests one.
    """

    def __init__(self, limit: int, ahead: int = AHEAD, most_waiting: int = 0) -> None:
        self._limit = limit
        self._most_waiting = most_waiting
        self._queued = 0
        self._ahead = ahead
        self._running = 0
        self._sent = 0
        self._unread: set[int] = set()
        self._waiting: OrderedDict[str, deque[_Place]] = OrderedDict()
        self._stuck = anyio.Event()

    @asynccontextmanager
    async def turn(self, deadline: Deadline, party: str = "") -> AsyncGenerator[None]:
        """Wait for a turn and hold it inside the context. If the deadline passes meanwhile, the wait is its reason.

        Raises:
            CallQueueFull: too many wait already.
        """
        number = await self._taken(deadline, party)
        try:
            yield
        except anyio.get_cancelled_exc_class():
            self._running -= 1
            self._admit()
            raise
        except BaseException:
            self._answered(number)
            raise
        else:
            self._answered(number)

    async def keep(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Run while a connection lasts: whenever calls wait for the upstream to read, `ask` it for a response."""
        try:
            while True:
                await self._stuck.wait()
                sent = self._sent
                with anyio.move_on_after(PONG_SECONDS), suppress(UpstreamError):
                    await ask()
                self._read(sent)
        finally:
            self._read(self._sent)

    async def _taken(self, deadline: Deadline, party: str) -> int:
        if self._is_free and not self._waiting:
            return self._take()
        place = _Place()
        self._waiting.setdefault(party, deque()).append(place)
        self._queued += 1
        self._bound(party)
        self._look()
        busy = self._limit and self._running >= self._limit
        words = (
            f"{counted(self._limit, 'other call')} {'was' if self._limit == 1 else 'were'} running (limits.calls)"
            if busy
            else "the server did not read its input"
        )
        deadline.wait_reason = WaitReason(f"did not get its turn: {words}", _TURN if busy else _READING)
        try:
            await place.given.wait()
        except BaseException:
            if place.number is not None:  # the turn was just granted, and nothing has been sent
                self._answered(place.number)
            elif not place.is_refused:
                self._remove(party, place)
            raise
        if place.is_refused:
            raise CallQueueFull(self._most_waiting)
        deadline.wait_reason = None
        assert place.number is not None
        return place.number

    @property
    def _is_free(self) -> bool:
        return (not self._limit or self._running < self._limit) and len(self._unread) < self._ahead

    def _take(self) -> int:
        self._running += 1
        self._sent += 1
        self._unread.add(self._sent)
        return self._sent

    def _answered(self, number: int) -> None:
        self._running -= 1
        self._read(number)

    def _read(self, number: int) -> None:
        """Record that the upstream has read the calls up to this number."""
        if self._unread:
            self._unread = {each for each in self._unread if each > number}
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._is_free:
            party, places = next(iter(self._waiting.items()))
            place = places.popleft()
            self._queued -= 1
            if places:
                self._waiting.move_to_end(party)
            else:
                del self._waiting[party]
            place.number = self._take()
            place.given.set()
        self._look()

    def _bound(self, newcomer: str) -> None:
        """Refuse the newest call of the party with the most in the queue, if the queue is too long."""
        if not self._most_waiting or self._queued <= self._most_waiting:
            return
        greedy = max(self._waiting, key=lambda party: (len(self._waiting[party]), party == newcomer))
        place = self._waiting[greedy][-1]
        place.is_refused = True
        self._remove(greedy, place)
        place.given.set()

    def _remove(self, party: str, place: _Place) -> None:
        self._waiting[party].remove(place)
        self._queued -= 1
        if not self._waiting[party]:
            del self._waiting[party]

    def _look(self) -> None:
        """Make `keep` ask if only that can let calls proceed; stop it otherwise."""
        if not self._waiting or len(self._unread) < self._ahead:
            self._stuck = anyio.Event() if self._stuck.is_set() else self._stuck
        else:
            self._stuck.set()


@dataclass(eq=False)
class _Place:
    """A call that waits for its turn, and the number that it gets, unless it is refused."""

    given: anyio.Event = field(default_factory=anyio.Event)
    number: int | None = None
    is_refused: bool = False


class Restarts:
    """Counts the starts within the last hour, and limits them."""

    def __init__(self, per_hour: int, clock: Callable[[], float] = anyio.current_time) -> None:
        self._per_hour = per_hour
        self._clock = clock
        self._times: deque[float] = deque(maxlen=per_hour or 1)

    def count(self) -> None:
        """Count a start now."""
        self._times.append(self._clock())

    def pause(self) -> float:
        """Return the seconds until a restart without a call is allowed; 0 if it is allowed now."""
        if not self._per_hour or len(self._times) < self._per_hour:
            return 0.0
        return max(0.0, self._times[0] + HOUR - self._clock())

    def explained(self, failure: Failure) -> Failure:
        """Return the failure with the explanation that the limit is reached, and that only a call starts it again."""
        often = f"it was started {counted(self._per_hour, 'time')} within an hour, and is not restarted any more"
        remedy = "the next call starts it once more; limits.restarts is how often it may be started per hour"
        return failure._replace(
            message=f"{failure.message}; {often}",
            remedy=f"{failure.remedy}; {remedy}" if failure.remedy else remedy,
        )


async def rest_when_idle(session: Session, settings: UpstreamSettings, counts: Counts, last_use: list[float]) -> None:
    """End the session after `idle_stop` seconds without a call."""
    if not settings.idle_stop:
        return
    while True:
        await counts.quiet()
        idle = anyio.current_time() - last_use[0]
        # Nothing is awaited between the check and the end, so no call can begin in between.
        if not counts.running and idle >= settings.idle_stop:
            session.finish(Resting(settings.idle_stop))
            return
        await anyio.sleep(max(0.01, settings.idle_stop - idle))


async def end_over_memory(session: Session, settings: UpstreamSettings) -> None:
    """End the session when its process and descendants use more than `limits.memory`."""
    limit = settings.limits.memory
    if not limit or session.pid is None:
        return
    while True:
        used = (await anyio.to_thread.run_sync(memory_of_trees, (session.pid,))).get(session.pid)
        if used is not None and used > limit:
            session.finish(OverMemory(size_words(used), size_words(limit)))
            return
        await anyio.sleep(MEMORY_PERIOD)
