"""Values that are kept in memory for a few minutes, under keys that cannot be guessed."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class ShortLived(Generic[ValueT]):
    """Values by random keys; each expires, and the oldest one makes way if there are too many."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._values: OrderedDict[str, tuple[float, ValueT]] = OrderedDict()

    def put(self, value: ValueT) -> str:
        """Keep a value, and return its key."""
        key = secrets.token_urlsafe(32)
        self._values[key] = (self._clock() + self._seconds, value)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return key

    def get(self, key: str) -> ValueT | None:
        """Return a value, unless it has expired."""
        until, value = self._values.get(key, (0.0, None))
        return value if until > self._clock() else None

    def take(self, key: str) -> ValueT | None:
        """Return a value for the last time."""
        value = self.get(key)
        self._values.pop(key, None)
        return value
