"""A fair queue: callers take turns for a limited number of seats."""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.errors import MediaError


class FairQueue:
    """Grants `seats` to the caller that holds the fewest, in turn among equals, and in order for each caller.

    A caller without a seat need not wait for others to finish: `spare` extra seats are reserved for such callers.
    Granting a seat never awaits anything, so no lock is needed.
    """

    def __init__(self, seats: int, spare: int = 1) -> None:
        self._seats = seats
        self._spare = spare
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[anyio.Event]] = OrderedDict()
        """By caller; the one whose last turn is the longest ago comes first."""

    @property
    def waiting(self) -> int:
        """How many requests wait for a seat."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def seat(self, caller: str, patience: float = math.inf) -> AsyncGenerator[None]:
        """Wait for a seat and hold it inside the context. Raises MediaError after `patience` seconds without one."""
        called = anyio.Event()
        self._waiting.setdefault(caller, deque()).append(called)
        self._call()
        try:
            with anyio.move_on_after(patience):
                await called.wait()
            if not called.is_set():
                raise MediaError(f"no worker was free for it within {patience:g} s")
        except BaseException:
            self._leave(caller, called)
            raise
        try:
            yield
        finally:
            self._give_up(caller)

    def _leave(self, caller: str, called: anyio.Event) -> None:
        if called.is_set():
            self._give_up(caller)
            return
        self._waiting[caller].remove(called)
        if not self._waiting[caller]:
            del self._waiting[caller]

    def _give_up(self, caller: str) -> None:
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]
        self._call()

    def _call(self) -> None:
        """Grant the free seats to the callers whose turn it is."""
        while (caller := self._next()) is not None:
            called = self._waiting[caller].popleft()
            self._taken[caller] += 1
            if self._waiting[caller]:
                self._waiting.move_to_end(caller)
            else:
                del self._waiting[caller]
            called.set()

    def _next(self) -> str | None:
        if not self._waiting:
            return None
        caller = min(self._waiting, key=lambda waiting: self._taken[waiting])
        seats = self._seats if self._taken[caller] else self._seats + self._spare
        return caller if self._taken.total() < seats else None
