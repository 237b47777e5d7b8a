"""What callers have used of their limits at all workers of one machine together, counted in the file they share."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from gateway.errors import StateUnavailable
from gateway.routing.replica_port import AT_ONCE, Exceeded, SharedLimit
from gateway.serving.cluster.keys import use_key
from gateway.serving.databases.local_records import LocalRecords
from gateway.serving.databases.shared_records import Pipe

_MINUTE = 60.0
_DAY = 86_400
_BY_MINUTE = frozenset({"calls_per_minute", "requests_per_minute", "registrations_per_minute"})


class LocalUse:
    """Counts in the file (`gateway.routing.replica_port.SharedUse`). `living` returns the ids of the workers."""

    def __init__(
        self,
        records: LocalRecords,
        own: str,
        living: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._own = own
        self._living = living
        self._clock = clock
        self._running: Counter[str] = Counter()
        """How many calls run here, by the key of the limit that they count for."""
        self._unsaid: set[str] = set()
        """Those of them of which the file has another number."""

    async def begin(self, limits: Sequence[SharedLimit]) -> Exceeded | None:
        """Count a call (`SharedUse.begin`)."""
        with self._records.used(), self._records.transaction():
            now = self._clock()
            for limit in limits:
                if (seconds := self._wait(limit, now)) is not None:
                    return Exceeded(limit, seconds)
            for limit in limits:
                self._count(limit, now)
        self._running.update(use_key(*limit.who, limit.kind) for limit in limits if limit.kind == AT_ONCE)
        return None

    def add(self, limit: SharedLimit, amount: int) -> None:
        """Count more (`SharedUse.add`); while the file cannot be used, running calls alone, which it has afterwards."""
        key = use_key(*limit.who, limit.kind)
        if limit.kind != AT_ONCE:
            with suppress(StateUnavailable), self._records.used():
                self._add(key, _day(self._clock()), amount)
            return
        self._running[key] += amount
        self._unsaid.add(key)
        self.renew()

    async def repeated(self, what: tuple[str, str], seconds: float) -> int:
        """Count that something has happened again (`SharedUse.repeated`)."""
        key = use_key(*what, "repeated")

        async def count(pipe: Pipe) -> int:
            found = int(await pipe.get(key) or 0) + 1
            pipe.multi()
            pipe.set(key, str(found), ex=seconds)
            return found

        return await self._records.decided(count, key)

    def renew(self) -> None:
        """Say how many calls run, where that was not possible before (`SharedUse.renew`)."""
        for key in tuple(self._unsaid):
            with suppress(StateUnavailable), self._records.used():
                self._set(key, self._own, self._running[key])
                self._unsaid.discard(key)
        self._running = +self._running

    def _wait(self, limit: SharedLimit, now: float) -> float | None:
        """Return the seconds until the limit is not reached any more; None if it is not."""
        key, connection = use_key(*limit.who, limit.kind), self._records.connection
        if limit.kind in _BY_MINUTE:
            connection.execute("DELETE FROM moments WHERE key = ? AND at <= ?", (key, now - _MINUTE))
            words = "SELECT at FROM moments WHERE key = ? ORDER BY at DESC LIMIT 1 OFFSET ?"
            oldest = connection.execute(words, (key, limit.most - 1)).fetchone()
            return None if oldest is None else oldest[0] + _MINUTE - now
        if limit.kind == AT_ONCE:
            others = sum(self._counted(key, one) for one in self._living())
            return 1.0 if self._running[key] + others >= limit.most else None
        return _DAY - now % _DAY if self._counted(key, _day(now)) >= limit.most else None

    def _count(self, limit: SharedLimit, now: float) -> None:
        key = use_key(*limit.who, limit.kind)
        if limit.kind in _BY_MINUTE:
            self._records.connection.execute("INSERT INTO moments VALUES (?, ?)", (key, now))
        elif limit.kind == AT_ONCE:
            self._set(key, self._own, self._running[key] + 1)
        elif limit.kind == "calls_per_day":
            self._add(key, _day(now), 1)

    def _counted(self, key: str, field: str) -> int:
        words = "SELECT number FROM counts WHERE key = ? AND field = ?"
        found = self._records.connection.execute(words, (key, field)).fetchone()
        return 0 if found is None else int(found[0])

    def _add(self, key: str, field: str, amount: int) -> None:
        words = "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (key, field) DO UPDATE SET number = number + ?"
        self._records.connection.execute(words, (key, field, amount, amount))

    def _set(self, key: str, field: str, number: int) -> None:
        words = "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (key, field) DO UPDATE SET number = excluded.number"
        self._records.connection.execute(words, (key, field, number))


def _day(now: float) -> str:
    return str(int(now // _DAY))
