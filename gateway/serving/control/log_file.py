"""The log file of a running gateway, beside its control socket: rotating, and private to its owner."""

import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from gateway.serving.control.records import stem
from gateway.system.runtime_dir import PRIVATE_FILE, existing_folders

SUFFIX = ".log"
MAX_BYTES = 1024 * 1024
KEPT_PIECES = 2
"""Number of full files kept beside the current one."""

_LONGEST_LINE = 8 * 1024
_KEPT_LOGS = 10
_KEPT_SECONDS = 14 * 24 * 3_600.0
"""Number of logs of ended gateways that are kept, and for how long at most: they show why a gateway ended."""


_NO_FILE = "no configuration file"
_BEGINNING = re.compile(r"[ \"]mcp-gateway \S+, process \d+, ([^\"]+)")
"""Within a line of text, or a string of JSON."""


class LogFile(RotatingFileHandler):
    """The logging handler. Records that cannot be written (because the disk is full) are dropped silently.

    Nobody else writes to the file, so its size is counted here: asking the system for it before each line, as the base
    class does, takes longer than writing the line.
    """

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=KEPT_PIECES, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        self._size = os.fstat(descriptor).st_size
        # Line ends stay single characters everywhere, so that what is counted is what is written.
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace", newline="\n")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, formatted once, and begin another file before it if this one would grow too large."""
        try:
            line = self.format(record) + "\n"
            size = len(line) if line.isascii() else len(line.encode("utf-8", "backslashreplace"))
            if self._size and self._size + size > self.maxBytes:
                self.doRollover()
            if self.stream is not None:
                self.stream.write(line)
                self.stream.flush()
            self._size += size
        except Exception:  # as in the standard library: a line that cannot be written affects nothing else
            self.handleError(record)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record with all lines but the first indented, so that no text can pass for a record."""
        return super().format(record).replace("\n", "\n    ")

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the record also goes to stderr, and the next one may fit again."""

    def close(self) -> None:
        """Write buffered records, if possible."""
        with suppress(OSError):
            super().close()


def log_path(folder: Path, pid: int, started: float) -> Path:
    """Return the path of a process's log."""
    return folder / (stem(pid, started) + SUFFIX)


def left_logs() -> list[Path]:
    """The existing logs, of gateways that run or have ended, newest first."""
    return sorted(
        (path for folder in existing_folders() for path in folder.glob(f"*{SUFFIX}")), key=_changed, reverse=True
    )


def beginning(version: str, config: Path | None) -> str:
    """Return the text of a log's first line: what this process is, and its configuration."""
    return f"mcp-gateway {version}, process {os.getpid()}, {config or _NO_FILE}"


def configuration_of(path: Path) -> str | None:
    """Return the configuration that a log says it was begun with; None if it had none, or its first line is gone."""
    oldest = [path, *(piece for piece in _pieces(path) if piece.exists())][-1]
    try:
        with oldest.open(encoding="utf-8", errors="backslashreplace") as file:
            found = _BEGINNING.search(file.readline(_LONGEST_LINE).rstrip("\n"))
    except OSError:
        return None
    return None if found is None or found[1] == _NO_FILE else found[1]


def prune(folder: Path, in_use: frozenset[Path] = frozenset()) -> None:
    """Remove the logs of gateways that ended long ago, and all but the newest of the others."""
    ended = sorted((path for path in folder.glob(f"*{SUFFIX}") if path not in in_use), key=_changed, reverse=True)
    oldest = time.time() - _KEPT_SECONDS
    for place, path in enumerate(ended):
        if place >= _KEPT_LOGS or _changed(path) < oldest:
            for piece in (path, *_pieces(path)):
                with suppress(OSError):
                    piece.unlink(missing_ok=True)


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last `count` lines of a log, including older files."""
    lines: list[str] = []
    for piece in (path, *_pieces(path)):
        if len(lines) >= count:
            break
        with suppress(OSError):
            lines = piece.read_text("utf-8", "backslashreplace").splitlines() + lines
    return lines[len(lines) - count :] if count < len(lines) else lines


def _pieces(path: Path) -> Iterator[Path]:
    for number in range(1, KEPT_PIECES + 1):
        yield path.with_name(f"{path.name}.{number}")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
