"""`mcp-gateway logs`: show the log of a running gateway, or of the last one that ended."""

import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.exit_codes import DONE, INTERRUPTED
from gateway.cli.running_gateways import Name, Pid, is_same, tell_folder, the_one
from gateway.cli.terminal import remark, say
from gateway.config.find_config import find_file
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.log_file import configuration_of, last_lines, left_logs
from gateway.serving.control.records import GatewayRecord, is_alive, running

_PAUSE_SECONDS = 0.25
_LIVENESS_SECONDS = 2.0
_LOOK_SECONDS = 0.5
_NEXT = "waiting for the next one (Ctrl-C ends this)"
_BRIEF = "one that ends within a second or two, as for `claude mcp list`, leaves none"
_CHUNK = 64 * 1024


def logs(
    pid: Pid = None,
    name: Name = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of lines to show.")] = 50,
) -> int:
    """Show what a gateway has logged; when none is running, the log of the last one with the configuration in force.

    With --follow, the next gateway is followed after the one that has ended, unless --pid names one. Whether a gateway
    has ended, and what is waited for, is said on stderr.
    """
    go_on = follow and pid is None
    past = {path.stem for path in left_logs()} - {one.stem for one in running()} if go_on else set[str]()
    path, record = None, None
    try:
        path, record = _log(pid, name)
    except GatewayError as error:
        if not go_on or isinstance(error, ConfigError):  # several are running
            raise
        remark(f"{error.message}; {_NEXT}")
    end = _size(path) if path is not None else 0
    for line in last_lines(path, lines) if path is not None else ():
        say(line)
    if path is not None and record is None:
        past.add(path.stem)
        remark(_ended(path) + (f"; {_NEXT}" if go_on else ""))
    if not follow:
        return DONE
    try:
        _follow(record, end, name, past, go_on=go_on)
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


def _follow(record: GatewayRecord | None, end: int, name: str | None, past: Iterable[str], *, go_on: bool) -> None:
    """Print the log of a running gateway from `end` on, and then, with `go_on`, those of the gateways after it.

    `past`: the stems of logs that are not shown, as their gateways had ended before.
    """
    followed, shown = set[str](), set(past)
    if record is not None:
        remark(f"the gateway {record.pid} is running; waiting for new lines (Ctrl-C ends this)")
    while record is not None or go_on:
        if record is None:
            found = _next(name, followed, shown)
            if isinstance(found, Path):
                shown.add(found.stem)
                _show_ended(found)
                continue
            record = found
            remark(f"the gateway {record.pid} is running; this is its log (Ctrl-C ends this)")
            end = 0
        followed.add(record.stem)
        shown.add(record.stem)
        for text in _following(Path(record.log or ""), end, partial(_runs, record)):
            say(text)
        remark(f"the gateway {record.pid} has ended" + (f"; {_NEXT}" if go_on else ""))
        record = None


def _next(name: str | None, followed: Container[str], shown: Container[str]) -> GatewayRecord | Path:
    """Wait for a gateway of this name, if one is given, that was not followed before and has a log.

    Of one that has come and gone between two looks, its log is returned if it was not `shown` before; not with a name,
    since a log does not say which its gateway had.
    """
    while True:
        for record in running():
            if record.stem not in followed and name in (None, record.name) and record.log is not None:
                return record
        for path in reversed(left_logs()) if name is None else ():
            if path.stem not in shown and not is_alive(path.stem):
                return path
        time.sleep(_LOOK_SECONDS)


def _show_ended(path: Path) -> None:
    remark(f"the gateway {path.stem.partition('-')[0]} has come and gone; this is its log")
    for line in last_lines(path, sys.maxsize):
        say(line)
    remark(f"{_ended(path)}; {_NEXT}")


def _log(pid: int | None, name: str | None) -> tuple[Path, GatewayRecord | None]:
    """Return the log to show, and its gateway's record if that still runs."""
    try:
        if pid is not None or name is not None or running():
            record = the_one(pid, name)
            if record.log is not None:
                return Path(record.log), record
            raise GatewayError("this gateway could not write a log file", remedy="see what it wrote to stderr")
    except GatewayError:
        ended = [path for path in left_logs() if pid is not None and path.name.startswith(f"{pid}-")]
        if not ended:
            raise
        return ended[0], None
    tell_folder()
    return _newest_left(), None


def _newest_left() -> Path:
    """Return the newest log of a gateway with the configuration in force, or else of any, and say whose it is."""
    left = left_logs()
    if not left:
        raise GatewayError(f"no gateway is running, and none has left a log ({_BRIEF})")
    file = find_file(None, environ=os.environ)
    own = next((path for path in left if file is not None and is_same(file, configuration_of(path))), None)
    if own is not None:
        remark(f"no gateway is running; this is the newest log that one with {file} has left ({_BRIEF})")
        return own
    whose = configuration_of(left[0])
    other = "" if file is None else f"none with {file} has left a log; "
    of = "one has left" if whose is None else f"one with {whose} has left"
    remark(f"no gateway is running; {other}this is the newest log that {of} ({_BRIEF})")
    return left[0]


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
