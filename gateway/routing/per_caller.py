"""A bounded mapping with a share for each caller, so that no caller displaces another's entries."""

from collections import OrderedDict
from heapq import nlargest
from typing import Generic, TypeVar

MOST_OF_ONE = 1_024
MOST = 16_384
"""Default maximum number of entries, of one caller and in total."""
_SHARE = 64
"""With too many entries, one in this many is dropped: a quarter of the entries of each of the largest callers."""

Value = TypeVar("Value")


class PerCaller(Generic[Value]):
    """Values by caller and key. Above a bound, the oldest entries of the callers with the most entries are dropped."""

    def __init__(self, most_of_one: int = MOST_OF_ONE, most: int = MOST) -> None:
        self._most_of_one = most_of_one
        self._most = most
        self._kept: dict[str, OrderedDict[str, Value]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, caller: str, key: str) -> Value | None:
        """Return the value, or None if there is none."""
        mine = self._kept.get(caller)
        return None if mine is None else mine.get(key)

    def put(self, caller: str, key: str, value: Value) -> None:
        """Store a value as the caller's newest entry."""
        mine = self._kept.setdefault(caller, OrderedDict())
        self._count += key not in mine
        mine[key] = value
        mine.move_to_end(key)
        if len(mine) > self._most_of_one:
            self._drop_oldest(caller)
        elif self._count > self._most:
            self._make_room()

    def forget(self, caller: str) -> None:
        """Drop all entries of a caller."""
        self._count -= len(self._kept.pop(caller, ()))

    def _make_room(self) -> None:
        """Drop several entries at once, because finding the largest callers means looking at all of them."""
        left = max(1, self._most // _SHARE)
        busiest = nlargest(left, self._kept, key=lambda each: len(self._kept[each]))
        least = len(self._kept[busiest[0]]) // 2
        for caller in busiest:
            if left <= 0 or len(self._kept[caller]) <= least:
                return
            for _ in range(min(left, max(1, len(self._kept[caller]) // 4))):
                self._drop_oldest(caller)
                left -= 1

    def _drop_oldest(self, caller: str) -> None:
        self._kept[caller].popitem(last=False)
        self._count -= 1
        if not self._kept[caller]:
            del self._kept[caller]
