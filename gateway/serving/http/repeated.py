"""Rate limits for log lines that a peer can cause at will: the first at once, then one now and then, with a count."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable

PERIOD = 10.0
"""Seconds between two lines about the same subject."""

_REMEMBERED = 1_000


_CAUSED_BY_PEERS = frozenset(
    {
        "Invalid HTTP request received.",
        "Unsupported upgrade request.",
        "ASGI callable returned without completing response.",
    }
)
"""Lines of uvicorn that a peer can cause without effort."""


class RepeatedLines:
    """Logs at most one line per subject in `period` seconds; the next one has the number of those left out."""

    def __init__(
        self, logger: logging.Logger, period: float = PERIOD, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._period = period
        self._clock = clock
        self._last: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def warn(self, subject: str, words: str) -> None:
        """Log `words` as a warning, unless there was a line about `subject` within the period."""
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
    """Filter for uvicorn's logger: lines that any peer can cause are logged through `lines`, others pass."""

    def __init__(self, lines: RepeatedLines) -> None:
        super().__init__()
        self._lines = lines

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged unchanged."""
        words = record.getMessage()
        if words not in _CAUSED_BY_PEERS:
            return True
        self._lines.warn(words, words)
        return False


class BrokenOff(logging.Filter):
    """Filter for uvicorn's logger: drops errors about requests cancelled while the gateway stops.

    uvicorn logs their number when it cancels them; a traceback for each adds nothing.
    """

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        super().__init__()
        self._is_stopping = is_stopping

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        is_cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        return not (is_cancelled and self._is_stopping())
