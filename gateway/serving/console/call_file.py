"""Past calls in an SQLite file, so that they are there after a restart: as many as in memory, and up to an age.

Opening reads the lines of all calls; arguments and results are read when somebody looks. Calls are written some at a
time, in a thread: no call waits for the disk, and what was not written yet when the process is killed is lost.
"""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gateway.core.model.caller import Caller
from gateway.core.model.format_versions import newer_than
from gateway.core.model.json_values import as_object
from gateway.core.model.notes import Note
from gateway.errors import ConfigError
from gateway.system.file_lock import try_lock
from gateway.telemetry.call_history import Body, PastCall
from gateway.telemetry.calls import CallRecord

logger = logging.getLogger(__name__)

CALL_FILE_VERSION = 1
_BUSY_SECONDS = 5.0
_SCHEMA = """
CREATE TABLE calls (number INTEGER PRIMARY KEY, began REAL NOT NULL, line TEXT NOT NULL);
CREATE TABLE bodies (
    number INTEGER PRIMARY KEY REFERENCES calls ON DELETE CASCADE, size INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX calls_by_age ON calls (began)
"""
_KEPT = (
    "tool",
    "profile",
    "upstream",
    "upstream_tool",
    "bytes_in",
    "bytes_raw",
    "bytes_out",
    "blocks",
    "outcome",
    "error",
    "error_code",
    "seconds",
)
"""What a record says as it is."""


class EndedCall(NamedTuple):
    """A call to be written: its arguments, with secrets masked, and its result are taken along."""

    call: PastCall
    arguments: Any
    result: Mapping[str, Any] | None


class Removed(NamedTuple):
    """The numbers of calls that lost their arguments and results, and of those that were removed."""

    emptied: Sequence[int]
    dropped: Sequence[int]


@dataclass(frozen=True)
class Bounds:
    """How much a file keeps: a number of calls, bytes of their arguments and results, and seconds."""

    calls: int
    bytes: int
    age: float


class CallFile:
    """The file. `read` may be used by one thread while another one writes."""

    def __init__(self, path: Path, bounds: Bounds) -> None:
        """Open the file, or create it, for this process alone.

        Raises:
            ConfigError: it cannot be opened, is damaged or no file of calls, comes from a newer version, or is in use.
        """
        self._bounds = bounds
        self._one_reader = threading.Lock()
        self._last: tuple[int, Body] | None = None
        with ExitStack() as opened:
            try:
                self._writing, self._reading = _opened(path, opened)
                self._bytes: int = self._writing.execute("SELECT coalesce(sum(size), 0) FROM bodies").fetchone()[0]
                self._prune(time.time())
                self._close = opened.pop_all().close
            except (sqlite3.Error, OSError) as error:
                remedy = "move the file away, or name another: the calls in it are then no longer shown"
                raise ConfigError(f"{path} cannot be used: {error}", where="console.calls", remedy=remedy) from error

    def close(self) -> None:
        """Close the file."""
        self._close()

    @classmethod
    def restored(cls, path: Path, bounds: Bounds) -> "tuple[CallFile, list[PastCall]]":
        """Open the file, and return it with all its calls, the oldest first. Blocks. Raises ConfigError."""
        file = cls(path, bounds)
        try:
            return file, list(file.calls())
        except BaseException:
            file.close()
            raise

    def calls(self) -> Iterator[PastCall]:
        """Yield all calls, the oldest first. Lines that cannot be read are left out."""
        query = (
            "SELECT number, began, CAST(line AS BLOB), EXISTS (SELECT 1 FROM bodies WHERE bodies.number = calls.number)"
            " FROM calls ORDER BY number"
        )
        for number, began, line, is_whole in self._reading.execute(query):
            try:
                call = _restored(number, began, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                logger.warning("call %d in the file of calls cannot be read: %s", number, type(error).__name__)
                continue
            call.is_whole = bool(is_whole)
            call.read = partial(self.read, number) if is_whole else None
            yield call

    def read(self, number: int) -> Body:
        """Return the arguments and the result of a call; None for each if they are no longer there, or damaged.

        Blocks, unless it was the last one that was read: a page asks for the same call several times.
        """
        last = self._last
        if last is not None and last[0] == number:
            return last[1]
        with self._one_reader:
            body = self._body(number)
            self._last = number, body
        return body

    def _body(self, number: int) -> Body:
        with suppress(sqlite3.Error, ValueError):
            found = self._reading.execute("SELECT body FROM bodies WHERE number = ?", (number,)).fetchone()
            body = as_object(None if found is None else json.loads(found[0]))
            result = body.get("result")
            return body.get("arguments"), None if result is None else as_object(result)
        return None, None

    def write(self, ended: Sequence[EndedCall]) -> Removed:
        """Write calls, and remove what is then too much or too old. Blocks.

        Raises:
            sqlite3.Error: the file cannot be written, such as for want of space; then nothing of it is.
        """
        written = 0
        with self._writing:
            for each in ended:
                written += self._put(each)
        self._bytes += written
        return self._prune(time.time())

    def _put(self, ended: EndedCall) -> int:
        call = ended.call
        values = (call.number, call.began, json.dumps(_line(call)))
        self._writing.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", values)
        if ended.arguments is None and ended.result is None:
            return 0
        body = json.dumps({"arguments": ended.arguments, "result": ended.result})
        if len(body) > self._bounds.bytes:
            return 0
        self._writing.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?, ?)", (call.number, len(body), body))
        return len(body)

    def _prune(self, now: float) -> Removed:
        with self._writing:
            surplus = "SELECT number FROM calls ORDER BY number DESC LIMIT -1 OFFSET ?"
            old = self._numbers("SELECT number FROM calls WHERE began < ?", now - self._bounds.age)
            old += self._numbers(surplus, self._bounds.calls)
            for number in old:
                self._empty(number)
            self._writing.executemany("DELETE FROM calls WHERE number = ?", [(number,) for number in old])
            emptied: list[int] = []
            while self._bytes > self._bounds.bytes and (
                oldest := self._numbers("SELECT number FROM bodies ORDER BY number LIMIT ?", 1)
            ):
                self._empty(oldest[0])
                emptied += oldest
        return Removed(emptied, old)

    def _empty(self, number: int) -> None:
        if self._last is not None and self._last[0] == number:
            self._last = None
        found = self._writing.execute("DELETE FROM bodies WHERE number = ? RETURNING size", (number,)).fetchone()
        self._bytes -= found[0] if found else 0

    def _numbers(self, query: str, value: float) -> list[int]:
        return [number for (number,) in self._writing.execute(query, (value,))]


def _line(call: PastCall) -> dict[str, Any]:
    record = call.record
    return {
        **{name: getattr(record, name) for name in _KEPT},
        "host": record.host,
        "revision": record.revision,
        "principal": call.principal,
        "client_version": call.client_version,
        "declares_pages": call.declares_pages,
        "notes": [note.model_dump(exclude_none=True) for note in record.notes],
    }


def _restored(number: int, began: float, line: dict[str, Any]) -> PastCall:
    caller = Caller(revision=line["revision"], client_name=line["host"], principal=line["principal"])
    record = CallRecord(caller, line["profile"], line["tool"])
    for name in _KEPT:
        setattr(record, name, line[name])
    record.notes = [Note.model_construct(**note) for note in line["notes"]]
    call = PastCall(number, began, record, line["principal"], line["client_version"], is_running=False)
    declares = line.get("declares_pages")  # absent in lines of earlier versions
    call.declares_pages = declares if isinstance(declares, bool) else None
    return call


def _opened(path: Path, stack: ExitStack) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return two connections, to be closed by the stack, of which one only reads. Raises sqlite3.Error or OSError."""
    stack.callback(os.close, _locked(path))
    return stack.enter_context(closing(_connect(path))), stack.enter_context(closing(_connect(path)))


def _locked(path: Path) -> int:
    """Return the descriptor of a lock that no other process has. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Not the file itself: closing any descriptor of it would end the locks of SQLite (sqlite.org/howtocorrupt.html).
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    if not try_lock(descriptor):
        os.close(descriptor)
        raise OSError("another gateway keeps its calls in it")
    return descriptor


def _connect(path: Path) -> sqlite3.Connection:
    # Created here, so that nobody else can read it at any time; SQLite gives its other files the same mode.
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        _refuse_others(connection)
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_others(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if the file is not of calls, before anything in it is changed."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (words := newer_than(CALL_FILE_VERSION, version)) is not None:
        raise sqlite3.DatabaseError(words)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version == 0 and tables:
        raise sqlite3.DatabaseError("it is another program's database")


def _prepare(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        with connection:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {CALL_FILE_VERSION}")
