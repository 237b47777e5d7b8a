"""How often each token may call tools: at most so many calls within any minute."""

import time
from collections import deque
from collections.abc import Callable

from gateway.core.model.caller import Caller
from gateway.errors import TooManyCalls

_PERIOD = 60.0


class CallRates:
    """Remembers when each token with a limit made its last calls; there are as many as tokens are configured."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: dict[str, deque[float]] = {}

    def count(self, caller: Caller) -> None:
        """Count a call.

        Raises:
            TooManyCalls: it is one too many; it is not counted.
        """
        limit = caller.grant.calls_per_minute
        if limit is None:
            return
        now = self._clock()
        calls = self._calls.setdefault(caller.token or caller.principal, deque())
        while calls and calls[0] <= now - _PERIOD:
            calls.popleft()
        if len(calls) >= limit:
            # The limit may have been lowered, so that more than one call has to be forgotten first.
            seconds = max(1, round(calls[len(calls) - limit] + _PERIOD - now))
            raise TooManyCalls(f"only {limit} tool calls a minute are allowed", remedy=f"try again in {seconds} s")
        calls.append(now)
