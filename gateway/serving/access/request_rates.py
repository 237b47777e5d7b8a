"""How often each principal, or token, may send a request over HTTP: above its limit, it is told when to come back.

Several replicas of a gateway count together (`SharedUse`), each for itself while the others cannot be asked.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from gateway.core.model.grant import Grant
from gateway.errors import StateUnavailable
from gateway.routing.caller_limits import Window
from gateway.routing.replica_port import SharedLimit, SharedUse

_KIND = "requests_per_minute"
_REMEMBERED = 10_000
"""Maximum number of principals and tokens that are remembered."""


class RequestRates:
    """Counts requests within any minute. `limit` is for each principal; a token may have another, counted apart."""

    def __init__(self, limit: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._windows: OrderedDict[tuple[str, str], Window] = OrderedDict()
        self.shared: SharedUse | None = None
        """What all replicas have counted, if there may be several."""

    async def wait(self, principal: str, grant: Grant, token: str | None) -> int:
        """Count a request, and return 0; or return the seconds to wait if it is one too many, which is not counted."""
        own = grant.quota.requests_per_minute
        limit = self.limit if own is None else own
        if limit is None:
            return 0
        who = ("principal", principal) if own is None else ("token", token or principal)
        window = self._window(who)
        now = self._clock()
        if seconds := window.wait(limit, now):
            return math.ceil(seconds)
        if self.shared is not None and (seconds := await _wait(self.shared, SharedLimit(_KIND, limit, who))):
            return math.ceil(seconds)
        window.add(now)
        return 0

    def _window(self, key: tuple[str, str]) -> Window:
        window = self._windows.setdefault(key, Window())
        self._windows.move_to_end(key)
        if len(self._windows) > _REMEMBERED:
            self._windows.popitem(last=False)
        return window


async def _wait(shared: SharedUse, limit: SharedLimit) -> float:
    """Count a request at all replicas; or return the seconds to wait if it is one too many there."""
    try:
        exceeded = await shared.begin([limit])
    except StateUnavailable:  # which the log has said, once
        return 0.0
    return 0.0 if exceeded is None else exceeded.seconds
