"""Lines of the log that a peer can cause as often as it likes: the first at once, then one now and then, counted."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable

PERIOD = 10.0
"""Seconds between two lines about the same."""

_REMEMBERED = 1_000


_CAUSED_BY_PEERS = frozenset(
    {
        "Invalid HTTP request received.",
        "Unsupported upgrade request.",
        "ASGI callable returned without completing response.",
    }
)
"""Lines of uvicorn's that cost a peer nothing."""


class RepeatedLines:
    """Logs at most one line in `period` seconds about each subject; the next says how many were left out."""

    def __init__(
        self, logger: logging.Logger, period: float = PERIOD, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._period = period
        self._clock = clock
        self._last: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def warn(self, subject: str, words: str) -> None:
        """Log `words` as a warning, unless there was a line about `subject` a moment ago."""
        now = self._clock()
        at, left_out = self._last.get(subject, (float("-inf"), 0))
        if now - at < self._period:
            self._last[subject] = (at, left_out + 1)
            return
        self._last[subject] = (now, 0)
        self._last.move_to_end(subject)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)
        self._logger.warning("%s%s", words, f" ({left_out + 1} times since the last such line)" if left_out else "")


class NowAndThen(logging.Filter):
    """For uvicorn's logger: what any peer can cause becomes a repeated line of `lines`, everything else passes."""

    def __init__(self, lines: RepeatedLines) -> None:
        super().__init__()
        self._lines = lines

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged as it is."""
        words = record.getMessage()
        if words not in _CAUSED_BY_PEERS:
            return True
        self._lines.warn(words, words)
        return False


class BrokenOff(logging.Filter):
    """For uvicorn's logger: that a request is cancelled while the gateway stops is not a mistake.

    uvicorn says how many there are when it cancels them; a traceback for each adds nothing.
    """

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        super().__init__()
        self._is_stopping = is_stopping

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        is_cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        return not (is_cancelled and self._is_stopping())
