"""A log handler that never blocks: a thread of its own writes, and lines that nobody reads are dropped and counted.

A host may start the gateway with a pipe for stderr and not read it. With direct writing, a full pipe would block the
event loop, and every call with it. Waking a thread costs more than writing a line, so lines are gathered for a moment,
unless one is a warning.
"""

import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable
from typing import TextIO

from gateway.telemetry.wrap_lines import wrapped

MOST_WAITING = 2_000
"""Maximum number of lines waiting to be written; later ones are dropped."""

_FLUSH_SECONDS = 1.0
_GATHERING_SECONDS = 0.02


class BackgroundHandler(logging.Handler):
    """Writes lines to a stream from a daemon thread, which is started by the first of them."""

    def __init__(self, stream: TextIO, *, most_waiting: int = MOST_WAITING) -> None:
        super().__init__()
        self.wraps = False
        """Whether long lines are wrapped on a terminal: those for people."""
        self._stream = stream
        self._write = _writer(stream)
        self._most = most_waiting
        self._lines: list[str] = []
        self._dropped = 0
        self._news = threading.Condition()
        self._writing = self._closed = self._urgent = False
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Format the record, and queue it for writing."""
        try:
            text = self.format(record)
            line = (wrapped(text, self._stream) if self.wraps else text) + "\n"
        except Exception:  # as in the standard library: a line that cannot be formatted affects nothing else
            self.handleError(record)
            return
        with self._news:
            if len(self._lines) >= self._most or self._closed:
                self._dropped += 1
                return
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
                self._thread.start()
            is_urgent = record.levelno >= logging.WARNING
            if is_urgent or len(self._lines) == 1:
                self._urgent |= is_urgent
                self._news.notify_all()

    def flush(self) -> None:
        """Wait at most a second until everything is written."""
        with self._news:
            self._urgent = True
            self._news.notify_all()
            self._news.wait_for(lambda: not self._lines and not self._writing, _FLUSH_SECONDS)

    def close(self) -> None:
        """Write the waiting lines, and end the thread."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        self.flush()
        super().close()

    def _write_all(self) -> None:
        while True:
            with self._news:
                self._writing = False
                self._news.notify_all()
                self._news.wait_for(lambda: bool(self._lines) or self._closed)
                if not self._lines:
                    return
                self._news.wait_for(lambda: self._urgent or self._closed, _GATHERING_SECONDS)
                self._urgent = False
                lines, self._lines = self._lines, []
                dropped, self._dropped = self._dropped, 0
                self._writing = True
            if dropped:
                lines.append(self.format(_dropped(dropped)) + "\n")
            with contextlib.suppress(OSError, ValueError):  # closed, so the failure cannot be reported
                self._write("".join(lines))


def _writer(stream: TextIO) -> Callable[[str], object]:
    """Return a function that writes past the stream's buffer, whose lock must not be held when the process ends."""
    try:
        descriptor = None if stream.isatty() else stream.fileno()
    except OSError:
        descriptor = None
    if descriptor is None:
        return lambda text: print(text, end="", file=stream, flush=True)

    def write(text: str) -> None:
        left = text.encode(stream.encoding, "backslashreplace")
        while left:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:  # a pipe that another program has made non-blocking; this thread may wait
                select.select([], [descriptor], [])

    return write


def _dropped(count: int) -> logging.LogRecord:
    message = "%d log lines were dropped because nobody read them in time"
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (count,), None)
