"""A chain of lines in files: each line has the SHA-256 of the one before, and a head file that of the last.

The chain goes on over rotation. The head is what shows that lines were cut off the end. Whoever may write to the files
can also write a whole new chain: the hashes show changes to all who have kept an earlier one, such as a copy elsewhere.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gateway.core.model.json_values import as_object
from gateway.system.file_lock import try_lock
from gateway.system.runtime_dir import PRIVATE_FILE, PRIVATE_FOLDER

BEFORE_THE_FIRST = "0" * 64
"""The hash before the first line."""

HEAD = ".head"
_LOCK = ".lock"
_SEQUENCE_DIGITS = 12
_HEAD_BYTES = 320
"""More than any head needs. It is written in place, by one call: to replace the file for each line takes far longer."""
_TAIL = 64 * 1024
_MOST_GATEWAYS = 100
"""Maximum number of gateways that write beside each other."""
_HEAD_FLAGS = os.O_CREAT | os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS = _HEAD_FLAGS | os.O_APPEND


class Link(NamedTuple):
    """A place in the chain: the number of a line, from 1 on, and its hash."""

    sequence: int = 0
    sha256: str = BEFORE_THE_FIRST


NOTHING = Link()
"""Before the first line."""


@dataclass(frozen=True)
class Head:
    """What the head file says: the last line, and the last one of the files that were removed for newer ones."""

    last: Link
    removed: Link = NOTHING

    def json(self) -> bytes:
        """The head as it is written, always of the same length."""
        text = json.dumps({"last": self.last._asdict(), "removed": self.removed._asdict()})
        return text.ljust(_HEAD_BYTES - 1).encode() + b"\n"


class Torn(NamedTuple):
    """How a file ends: its last whole line, and the beginning of one that was never finished."""

    last: bytes
    piece: bytes


def files_of(path: Path) -> list[Path]:
    """Return the files of a chain, the oldest first; `path` is the one that is written to."""
    digits = "[0-9]" * _SEQUENCE_DIGITS
    rotated = sorted(path.parent.glob(f"{_literal(path.stem)}.{digits}{_literal(path.suffix)}"))
    return [*rotated, *([path] if path.exists() else [])]


def chains_at(path: Path) -> list[Path]:
    """Return the paths of all chains that gateways have written at a configured path."""
    candidates = (_of_gateway(path, number) for number in range(1, _MOST_GATEWAYS + 1))
    return [one for one in candidates if _head_of(one).exists() or files_of(one)]


def read_head(path: Path) -> Head | None:
    """Return what the head file of a chain says; None if it is missing.

    Raises:
        ValueError: it is not what a gateway wrote.
        OSError: it cannot be read.
    """
    try:
        content = _head_of(path).read_bytes()
    except FileNotFoundError:
        return None
    told = as_object(json.loads(content))
    return Head(_link(told.get("last")), _link(told.get("removed")))


def sha256_of(line: bytes) -> str:
    """Return the hash of a line without its end."""
    return hashlib.sha256(line).hexdigest()


class Chain:
    """The chain of one gateway, open for writing. Nothing else may write to it: its lock is held until `close`."""

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        """Open the first chain at `path` that no other gateway writes to.

        Raises:
            OSError: it cannot be written to, or read.
        """
        path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)  # no others: a path may be misspelled
        self.max_bytes = max_bytes
        self.keep = keep
        self.path, self._lock = _locked(path)
        self._file: int | None = None
        self._head: int | None = None
        self._about: dict[str, Any] = {}
        try:
            if self.path.exists():  # else it is created with the first line: most commands write none
                self._file = os.open(self.path, _FLAGS, PRIVATE_FILE)
            self._resume()
        except BaseException:
            self.close()
            raise

    def _resume(self) -> None:
        """Find the end of what earlier runs wrote, and decide what the first line of this one follows."""
        self._size, self._day = 0, None
        if self._file is not None:
            with suppress(OSError, AttributeError):  # where files have no such modes
                os.fchmod(self._file, PRIVATE_FILE)
            found = os.fstat(self._file)
            self._size, self._day = found.st_size, _day(found.st_mtime)
        try:
            head = read_head(self.path)
            is_damaged = False
        except ValueError:
            head, is_damaged = None, True
        self._removed = head.removed if head is not None else NOTHING
        files = [file for file in files_of(self.path) if file.stat().st_size]
        self._first = _first_sequence(self.path) if self._size else None
        end = _end_of(files[-1]) if files else Torn(b"", b"")
        self._unfinished = b"\n" if end.piece else b""
        """What ends a torn line; written with the next line, which says that there is one."""
        if end.piece:
            self._about["torn"] = sha256_of(end.piece)
        written = link_of(end.last)
        if head is None:
            self._last = written
            if files or is_damaged:
                self._removed = _before(files[0]) if files else NOTHING
                self._about["head"] = "damaged" if is_damaged else "missing"
        else:
            self._last = written if _leads_to(files, head.last, written) else head.last

    @property
    def is_new(self) -> bool:
        """Whether nothing has been written yet."""
        return self._last.sequence == 0

    def resumed(self) -> Mapping[str, Any]:
        """Return what was found amiss with what earlier runs wrote, for the first line of this one."""
        return self._about

    def append(self, records: Sequence[Mapping[str, Any]]) -> Sequence[bytes]:
        """Write a line for each record, all of them or none, and return the lines, without their ends.

        Raises:
            OSError: the system does not allow it, for instance because the disk is full.
        """
        lines, last = _lines(records, self._last)
        content = b"".join(lines)
        today = _day(datetime.now(UTC).timestamp())
        if self._size and (self._size + len(content) > self.max_bytes or self._day not in (None, today)):
            self._rotate()
        before = self._size
        try:
            self._append(self._unfinished + content)
        except OSError:
            self._truncate(before)
            raise
        self._unfinished = b""
        if self._first is None:
            self._first = self._last.sequence + 1
        self._last, self._day = last, today
        return [line.removesuffix(b"\n") for line in lines]

    def keep_head(self) -> None:
        """Write the head file. Raises OSError."""
        if self._head is None:
            self._head = os.open(_head_of(self.path), _HEAD_FLAGS, PRIVATE_FILE)
            if os.fstat(self._head).st_size > _HEAD_BYTES:  # not written by a gateway
                os.ftruncate(self._head, 0)
        os.lseek(self._head, 0, os.SEEK_SET)
        os.write(self._head, Head(self._last, self._removed).json())

    def close(self) -> None:
        """Close the file, and let other gateways have it."""
        for descriptor in (self._file, self._head, self._lock):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)
        self._file = self._head = None

    def _append(self, content: bytes) -> None:
        if self._file is None:  # the first line of all, or a rotation failed half-way
            self._file, self._size, self._first = os.open(self.path, _FLAGS, PRIVATE_FILE), 0, None
        left = memoryview(content)
        while left:
            written = os.write(self._file, left)
            self._size += written
            left = left[written:]

    def _truncate(self, size: int) -> None:
        with suppress(OSError):
            if self._file is not None:
                os.ftruncate(self._file, size)
                self._size = size

    def _rotate(self) -> None:
        assert self._file is not None
        self._append(self._unfinished)
        self._unfinished = b""
        number = self._first or 0
        while (rotated := self.path.with_name(_rotated_name(self.path, number))).exists():
            number += 1  # only if somebody has changed the files: nothing is overwritten even so
        os.close(self._file)
        self._file = None
        os.replace(self.path, rotated)
        self._file, self._size, self._first = os.open(self.path, _FLAGS, PRIVATE_FILE), 0, None
        if not self.keep:
            return
        for oldest in [file for file in files_of(self.path) if file != self.path][: -self.keep]:
            self._removed = link_of(_end_of(oldest).last)
            self.keep_head()  # before it is removed, so that the rest is never without a beginning
            oldest.unlink()


def _lines(records: Iterable[Mapping[str, Any]], last: Link) -> tuple[list[bytes], Link]:
    lines: list[bytes] = []
    for record in records:
        numbered = {"sequence": last.sequence + 1, "previous": last.sha256, **record}
        line = json.dumps(numbered, separators=(",", ":"), default=str).encode("ascii")
        last = Link(last.sequence + 1, sha256_of(line))
        lines.append(line + b"\n")
    return lines, last


def _locked(path: Path) -> tuple[Path, int]:
    for number in range(1, _MOST_GATEWAYS + 1):
        own = _of_gateway(path, number)
        lock = os.open(own.with_name(own.name + _LOCK), os.O_CREAT | os.O_RDWR, PRIVATE_FILE)
        if try_lock(lock):
            return own, lock
        os.close(lock)
    raise OSError(f"{_MOST_GATEWAYS} gateways write there already")


def _of_gateway(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _head_of(path: Path) -> Path:
    return path.with_name(path.name + HEAD)


def _rotated_name(path: Path, first: int) -> str:
    return f"{path.stem}.{first:0{_SEQUENCE_DIGITS}d}{path.suffix}"


def _before(file: Path) -> Link:
    """Return the link before the first line of a file, as far as that line says."""
    with file.open("rb") as lines:
        line = lines.readline().rstrip(b"\n")
    previous = previous_of(line)
    return Link(link_of(line).sequence - 1, previous) if isinstance(previous, str) else NOTHING


def _literal(text: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def _day(since_1970: float) -> str:
    return f"{datetime.fromtimestamp(since_1970, UTC):%Y-%m-%d}"


def _link(value: Any) -> Link:
    told = as_object(value)
    sequence, sha256 = told.get("sequence"), told.get("sha256")
    if not isinstance(sequence, int) or not isinstance(sha256, str):
        raise ValueError("a link of the chain has a sequence and a sha256")
    return Link(sequence, sha256)


def link_of(line: bytes) -> Link:
    """Return the place of a line in the chain; the beginning if there is no line that can be read."""
    if not line:
        return NOTHING
    try:
        sequence = as_object(json.loads(line)).get("sequence")
    except ValueError:
        sequence = None
    return Link(sequence if isinstance(sequence, int) else 0, sha256_of(line))


def _end_of(file: Path) -> Torn:
    """Return how a file ends, without reading all of it."""
    with file.open("rb") as lines:
        size = lines.seek(0, os.SEEK_END)
        read = _TAIL
        while True:
            lines.seek(max(0, size - read))
            whole, _, piece = lines.read().rpartition(b"\n")
            before, _, last = whole.rpartition(b"\n")
            if before or read >= size:
                return Torn(last, piece)
            read *= 8


def _first_sequence(file: Path) -> int:
    with file.open("rb") as lines:
        return link_of(lines.readline().rstrip(b"\n")).sequence


def _leads_to(files: Sequence[Path], head: Link, last: Link) -> bool:
    """Whether the last line is that of the head, or follows it: a gateway that was killed may not have kept its head.

    If neither, the chain goes on from the head, and `verify` finds the gap.
    """
    if last == head:
        return True
    expected: str | None = BEFORE_THE_FIRST if head == NOTHING else None
    for file in files[-2:]:
        for line in file.read_bytes().split(b"\n")[:-1]:
            digest, previous = sha256_of(line), previous_of(line)
            if previous is None:  # torn
                continue
            if expected is not None and previous != expected:
                return False
            if expected is not None or digest == head.sha256:
                expected = digest
    return expected == last.sha256


def previous_of(line: bytes) -> str | None:
    """Return the hash that a line says is that of the one before; None if the line cannot be read."""
    try:
        previous = as_object(json.loads(line)).get("previous")
    except ValueError:
        return None
    return previous if isinstance(previous, str) else None
