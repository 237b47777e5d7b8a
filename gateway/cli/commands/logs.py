"""`mcp-gateway logs`: show the log of a running gateway, or of the last one that ended."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.exit_codes import DONE, INTERRUPTED
from gateway.cli.running_gateways import Name, Pid, matching, the_one
from gateway.cli.terminal import remark, say
from gateway.errors import GatewayError
from gateway.serving.control.log_file import last_lines, left_logs
from gateway.serving.control.records import GatewayRecord, running

_PAUSE_SECONDS = 0.25
_LIVENESS_SECONDS = 2.0
_CHUNK = 64 * 1024


def logs(
    pid: Pid = None,
    name: Name = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of lines to show.")] = 50,
) -> int:
    """Show what a gateway has logged; when none is running, the log of the last one.

    Whether the gateway has ended, or more is waited for, is said on stderr.
    """
    path, record = _log(pid, name)
    size = _size(path)
    for line in last_lines(path, lines):
        say(line)
    if record is None:
        remark(_ended(path))
        return DONE
    if not follow:
        return DONE
    remark(f"the gateway {record.pid} is running; waiting for new lines (Ctrl-C ends this)")
    try:
        for text in _following(path, size, lambda: _runs(record)):
            say(text)
    except KeyboardInterrupt:
        return INTERRUPTED
    remark(f"the gateway {record.pid} has ended")
    return DONE


def _log(pid: int | None, name: str | None) -> tuple[Path, GatewayRecord | None]:
    """Return the log to show, and its gateway's record if that still runs."""
    try:
        if pid is not None or name is not None or running():
            record = the_one(pid, name) if matching(pid, name) else None
            if record is not None and record.log is not None:
                return Path(record.log), record
            raise GatewayError("this gateway could not write a log file", remedy="see what it wrote to stderr")
    except GatewayError:
        ended = [path for path in left_logs() if pid is not None and path.name.startswith(f"{pid}-")]
        if not ended:
            raise
        return ended[0], None
    left = left_logs()
    if not left:
        raise GatewayError("no gateway is running, and none has left a log")
    remark("no gateway is running; this is what the last one left")
    return left[0], None


def _ended(path: Path) -> str:
    """Say that the gateway of this log has ended, and when it last logged something."""
    words = f"the gateway {path.name.partition('-')[0]} has ended"
    try:
        last = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone()
    except OSError:  # its log was removed meanwhile
        return words
    return f"{words}; its last line is from {last:%Y-%m-%d %H:%M:%S}"


def _following(path: Path, start: int, goes_on: Callable[[], bool]) -> Iterator[str]:
    """Yield the lines written from `start` on, even after the file is rotated, until `goes_on` returns false."""
    rest, checked = b"", time.monotonic()
    file = path.open("rb")
    try:
        file.seek(start)
        while True:
            if chunk := file.read(_CHUNK):
                *complete, rest = (rest + chunk).split(b"\n")
                yield from (line.decode("utf-8", "backslashreplace") for line in complete)
                continue
            if _moved(path, file.fileno()):
                following = path.open("rb")
                file.close()
                file = following
                continue
            if time.monotonic() - checked > _LIVENESS_SECONDS:
                if not goes_on() and not file.read(0) and _size(path) <= file.tell():
                    return
                checked = time.monotonic()
            time.sleep(_PAUSE_SECONDS)
    finally:
        file.close()


def _moved(path: Path, descriptor: int) -> bool:
    """Whether the file was rotated and replaced by another."""
    try:
        now, mine = path.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _runs(record: GatewayRecord) -> bool:
    return any(one.stem == record.stem for one in running())
