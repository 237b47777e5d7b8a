"""Writing records to the file of the audit trail, in a thread, and keeping those that cannot be written."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gateway._version import __version__
from gateway.telemetry.audit.chain import Chain

if TYPE_CHECKING:
    from gateway.telemetry.audit.send_lines import LineSender

logger = logging.getLogger(__name__)

_UNWRITTEN = 10_000
"""Maximum number of records that are kept while nothing can be written; the oldest are then dropped and counted."""

Record = dict[str, Any]


class RecordWriter:
    """Makes records and appends them to `chain`, from one thread at a time; `sender` sends on what was written."""

    def __init__(self, chain: Chain, sender: "LineSender | None" = None) -> None:
        self._chain = chain
        self._sender = sender
        self._unwritten: deque[Record] = deque()
        self._not_kept = self._told = 0
        self._has_begun, self._start = False, now()
        self._failed = False

    def write(self, makers: Sequence[Callable[[], Record]], not_queued: int) -> str | None:
        """Write records, and those that could not be written before; return why that fails.

        `not_queued` is the number of records that were dropped so far before they came here.
        """
        self._unwritten.extend(_made(make) for make in makers)
        while len(self._unwritten) > _UNWRITTEN:
            self._unwritten.popleft()
            self._not_kept += 1
        records = list(self._unwritten)
        if dropped := not_queued + self._not_kept - self._told:
            records.append({"time": now(), "event": "dropped", "lines": dropped})
        if records and not self._has_begun:
            records.insert(0, {"time": self._start, "event": "start", "version": __version__, **self._chain.resumed()})
        try:
            if records:
                lines = self._chain.append(records)
                if self._sender is not None:
                    self._sender.send(lines)
                self._has_begun = True
                self._unwritten.clear()
                self._told += dropped
            if records or self._failed:
                self._chain.keep_head()
        except OSError as error:
            self._failed = True
            return error.strerror or type(error).__name__
        self._failed = False
        return None


def _made(record: Callable[[], Record]) -> Record:
    try:
        return record()
    except Exception as error:  # a line without details is better than none
        logger.exception("a line of the audit trail could not be made in full")
        return {"time": now(), "event": "unreadable", "cause": type(error).__name__}


def now() -> str:
    """Return the time as records have it: UTC, with milliseconds."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')[:-6]}Z"
