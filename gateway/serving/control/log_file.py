"""The log of a running gateway as a file beside its control socket: rotating, and for its owner alone."""

import logging
import os
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
"""How many full pieces are kept beside the one that is written."""

_KEPT_LOGS = 10
_KEPT_SECONDS = 14 * 24 * 3_600.0
"""The logs of so many gateways that have ended are kept, so long at most: they tell why one did."""


class LogFile(RotatingFileHandler):
    """The handler. What cannot be written (a full disk) is lost, and costs nothing else."""

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=KEPT_PIECES, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def format(self, record: logging.LogRecord) -> str:
        """The record as lines: what follows the first is indented, so that no text can pass for a record."""
        return super().format(record).replace("\n", "\n    ")

    def handleError(self, record: logging.LogRecord) -> None:
        """Nothing: the same record goes to stderr, and the next one may fit again."""

    def close(self) -> None:
        """Write what waits, if it can be written."""
        with suppress(OSError):
            super().close()


def log_path(folder: Path, pid: int, started: float) -> Path:
    """Where the log of a process stands."""
    return folder / (stem(pid, started) + SUFFIX)


def left_logs() -> list[Path]:
    """The logs there are, of gateways that run or have ended, the newest first."""
    return sorted(
        (path for folder in existing_folders() for path in folder.glob(f"*{SUFFIX}")), key=_changed, reverse=True
    )


def prune(folder: Path, in_use: frozenset[Path] = frozenset()) -> None:
    """Remove the logs of gateways that ended long ago, and all but the newest."""
    ended = sorted((path for path in folder.glob(f"*{SUFFIX}") if path not in in_use), key=_changed, reverse=True)
    oldest = time.time() - _KEPT_SECONDS
    for place, path in enumerate(ended):
        if place >= _KEPT_LOGS or _changed(path) < oldest:
            for piece in (path, *_pieces(path)):
                with suppress(OSError):
                    piece.unlink(missing_ok=True)


def last_lines(path: Path, count: int) -> list[str]:
    """The last `count` lines of a log, older pieces included."""
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
