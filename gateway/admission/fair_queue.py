"""A fair queue: callers take turns for a limited number of seats, and only so many may wait."""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import anyio


class WhyNot(StrEnum):
    """Why a request gets no seat: the queue is full, mostly of the caller's own requests, or it waited too long."""

    FULL = "full"
    SHARE = "share"
    LATE = "late"


class NoSeat(Exception):
    """A request gets no seat, and is not in the queue any more."""

    def __init__(self, why: WhyNot) -> None:
        super().__init__(why.value)
        self.why = why


class FairQueue:
    """Grants `seats` to the caller that holds the fewest, in turn among equals, and in order for each caller.

    A caller without a seat need not wait for others to finish: `spare` extra seats are reserved for such callers. At
    most `most_waiting` requests wait (None: any number); of one more, the newest of whoever has the most is refused.
    Granting a seat never awaits anything, so no lock is needed.
    """

    def __init__(self, seats: int, spare: int = 1, most_waiting: int | None = None) -> None:
        self._seats = seats
        self._spare = spare
        self.most_waiting = most_waiting
        self._taken: Counter[str] = Counter()
        self._running = 0
        self._waiting: OrderedDict[str, deque[_Place]] = OrderedDict()
        """By caller; the one whose last turn is the longest ago comes first."""
        self._queued = 0

    @property
    def waiting(self) -> int:
        """How many requests wait for a seat."""
        return self._queued

    @property
    def running(self) -> int:
        """How many seats are taken."""
        return self._running

    @property
    def seats(self) -> int:
        """How many seats there are, without the spare ones."""
        return self._seats

    def resize(self, seats: int, spare: int | None = None) -> None:
        """Have so many seats from now on. Nobody loses a seat; with fewer, some are not granted again."""
        self._seats = seats
        self._spare = self._spare if spare is None else spare
        self._call()

    @asynccontextmanager
    async def seat(self, caller: str, patience: float = math.inf) -> AsyncGenerator[None]:
        """Wait for a seat and hold it inside the context. Raises as `take`."""
        await self.take(caller, patience)
        try:
            yield
        finally:
            self.give_back(caller)

    async def take(self, caller: str, patience: float = math.inf) -> None:
        """Wait at most `patience` seconds for a seat, which the caller has to give back.

        Does not wait at all if a seat is free.

        Raises:
            NoSeat: too many wait already, or none became free in time.
        """
        if self.take_now(caller):
            return
        place = _Place()
        self._waiting.setdefault(caller, deque()).append(place)
        self._queued += 1
        self._call()
        if place.called.is_set():
            return
        self._bound(caller)
        try:
            with anyio.move_on_after(patience):
                await place.called.wait()
        except BaseException:
            self._leave(caller, place)
            raise
        if place.refused is None and not place.called.is_set():
            self._remove(caller, place)
            place.refused = WhyNot.LATE
        if place.refused is not None:
            raise NoSeat(place.refused)

    def take_now(self, caller: str) -> bool:
        """Take a seat if one is free and nobody waits. Return whether it was."""
        if self._waiting or self._running >= self._seats_for(caller):
            return False
        self._seat(caller)
        return True

    def give_back(self, caller: str) -> None:
        """Give back a seat that `caller` has taken."""
        self._taken[caller] -= 1
        self._running -= 1
        if not self._taken[caller]:
            del self._taken[caller]
        self._call()

    def _bound(self, newcomer: str) -> None:
        """Refuse the newest request of the caller with the most in the queue, if the queue is too long."""
        if self.most_waiting is None or self._queued <= self.most_waiting:
            return
        # Among equals it is the newcomer, who has waited for the shortest time.
        greedy = max(self._waiting, key=lambda caller: (len(self._waiting[caller]), caller == newcomer))
        place = self._waiting[greedy][-1]
        is_alone = len(self._waiting) == 1 and self._taken.keys() <= {greedy}
        place.refused = WhyNot.FULL if is_alone or len(self._waiting[greedy]) == 1 else WhyNot.SHARE
        self._remove(greedy, place)
        place.called.set()

    def _leave(self, caller: str, place: "_Place") -> None:
        if place.refused is not None:
            return
        if place.called.is_set():
            self.give_back(caller)
        else:
            self._remove(caller, place)

    def _remove(self, caller: str, place: "_Place") -> None:
        self._waiting[caller].remove(place)
        self._queued -= 1
        if not self._waiting[caller]:
            del self._waiting[caller]

    def _call(self) -> None:
        """Grant the free seats to the callers whose turn it is."""
        while (caller := self._next()) is not None:
            place = self._waiting[caller].popleft()
            self._queued -= 1
            self._seat(caller)
            if self._waiting[caller]:
                self._waiting.move_to_end(caller)
            else:
                del self._waiting[caller]
            place.called.set()

    def _next(self) -> str | None:
        if not self._waiting or self._running >= self._seats + self._spare:
            return None
        caller = min(self._waiting, key=lambda waiting: self._taken[waiting])
        return caller if self._running < self._seats_for(caller) else None

    def _seats_for(self, caller: str) -> int:
        return self._seats if caller in self._taken else self._seats + self._spare

    def _seat(self, caller: str) -> None:
        self._taken[caller] += 1
        self._running += 1


@dataclass(eq=False)
class _Place:
    """A request in the queue: `called` when it has a seat, or none, for the reason in `refused`."""

    called: anyio.Event = field(default_factory=anyio.Event)
    refused: WhyNot | None = None
