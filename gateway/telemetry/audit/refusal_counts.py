"""Which of many refusals get a line of the audit trail."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

_REFUSAL_SECONDS = 10.0
"""Seconds between two lines about refused tokens, refused logins, or too many requests of a principal.

The second one says how many there were.
"""
_REFUSED = 1_000
"""Maximum number of principals whose refused requests are counted."""


class RefusalCounts:
    """Decides which of many refusals get a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, of: str = "") -> int | None:
        """Return the number of those without a line since the last one that has one; None for no line.

        Those `of` one principal are counted apart from those of others.
        """
        now = self._clock()
        since, silent = self._seen.get(of, (-math.inf, 0))
        if now - since < _REFUSAL_SECONDS:
            self._seen[of] = since, silent + 1
            return None
        self._seen[of] = now, 0
        self._seen.move_to_end(of)
        if len(self._seen) > _REFUSED:
            self._seen.popitem(last=False)
        return silent
