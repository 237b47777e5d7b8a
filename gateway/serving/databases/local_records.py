"""Records that processes of one machine share in a SQLite file, with those commands of Redis that a cluster uses.

So what a cluster knows of sessions, owners and tasks has one implementation, whichever of the two it is kept in. The
file ends with the processes: it need not survive a crash of the machine, and a write takes some ten microseconds.
"""

import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from gateway.serving.databases.availability import Availability

ResultT = TypeVar("ResultT")

_BUSY_SECONDS = 2.0
_FOREVER = 9e15
_SWEEP_SECONDS = 60.0

_TABLES = """
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, value TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (key TEXT, member TEXT, PRIMARY KEY (key, member)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (key TEXT, field TEXT, number INTEGER, PRIMARY KEY (key, field)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS moments (key TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS moments_of ON moments (key, at);
"""


class LocalRecords:
    """The file at `path`, created if it is missing. `clock` returns seconds since 1970, alike in all processes.

    Raises:
        OSError: the file cannot be used.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.availability = Availability("what the workers share", "the other workers cannot be asked at present")
        try:
            self.connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.executescript(_TABLES)
        except sqlite3.Error as error:
            raise OSError(f"{path} cannot be used: {error}") from error
        self._commands = _Commands(self.connection, clock)

    @asynccontextmanager
    async def reached(self) -> AsyncGenerator[Any]:
        """Provide the commands (`SharedRecords.reached`)."""
        with self.used():
            yield _Client(self._commands)

    async def decided(self, decide: Callable[[Any], Awaitable[ResultT]], *watched: str) -> ResultT:
        """Read and write in one transaction (`SharedRecords.decided`).

        Nothing in `decide` waits, because no command does: so nobody else uses the connection meanwhile.
        """
        with self.used(), self.transaction():
            pipe = _Pipeline(self._commands, at_once=True)
            result = await decide(pipe)
            pipe.run()
            return result

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Context manager in which nothing else writes; what is written in it holds as a whole, or not at all."""
        with _transaction(self.connection):
            yield

    async def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def used(self) -> Generator[None]:
        """Context manager in which failures of the file are StateUnavailable; the log says once that it is away."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.availability.lost(str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise self.availability.lost("it has something that no gateway of this version has written") from error
        self.availability.found()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class _Commands:
    """The commands, named as in redis-py. Times are in seconds (`ex`) or milliseconds (`px`)."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self.connection = connection
        self._clock = clock
        self._swept = clock()

    def get(self, key: str) -> str | None:
        found = self._one("SELECT value FROM records WHERE key = ? AND until > ?", key, self._clock())
        return None if found is None else str(found)

    def mget(self, keys: list[str]) -> list[str | None]:
        return [self.get(key) for key in keys]

    def exists(self, key: str) -> int:
        return int(self.get(key) is not None)

    def set(
        self, key: str, value: str, *, nx: bool = False, ex: float | None = None, px: float | None = None
    ) -> bool | None:
        now = self._clock()
        seconds = ex if ex is not None else None if px is None else px / 1_000
        until = _FOREVER if seconds is None else now + seconds
        self._sweep(now)
        words = "INSERT INTO records VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
        words += "until = excluded.until" + (" WHERE records.until <= ?" if nx else "")
        changed = self.connection.execute(words, (key, value, until, *([now] if nx else []))).rowcount
        return True if changed else None

    def expire(self, key: str, seconds: float) -> int:
        now = self._clock()
        words = "UPDATE records SET until = ? WHERE key = ? AND until > ?"
        return self.connection.execute(words, (now + seconds, key, now)).rowcount

    def delete(self, *keys: str) -> int:
        return sum(self.connection.execute("DELETE FROM records WHERE key = ?", (key,)).rowcount for key in keys)

    def sadd(self, key: str, *members: str) -> int:
        words = "INSERT OR IGNORE INTO members VALUES (?, ?)"
        return sum(self.connection.execute(words, (key, one)).rowcount for one in members)

    def srem(self, key: str, *members: str) -> int:
        words = "DELETE FROM members WHERE key = ? AND member = ?"
        return sum(self.connection.execute(words, (key, one)).rowcount for one in members)

    def smembers(self, key: str) -> AbstractSet[str]:
        return {str(one) for (one,) in self.connection.execute("SELECT member FROM members WHERE key = ?", (key,))}

    def _one(self, words: str, *given: object) -> object:
        rows = self.connection.execute(words, given).fetchall()
        return rows[0][0] if rows else None

    def _sweep(self, now: float) -> None:
        """Remove what has expired, now and then."""
        if now - self._swept >= _SWEEP_SECONDS:
            self._swept = now
            self.connection.execute("DELETE FROM records WHERE until <= ?", (now,))
            self.connection.execute("DELETE FROM moments WHERE at <= ?", (now - _SWEEP_SECONDS,))


class _Client:
    """The commands, to be awaited as those of redis-py."""

    def __init__(self, commands: _Commands) -> None:
        self._commands = commands

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        command = getattr(self._commands, name)

        async def run(*given: Any, **options: Any) -> Any:
            return command(*given, **options)

        return run

    def pipeline(self, *, transaction: bool = True) -> "_Pipeline":
        return _Pipeline(self._commands)


class _Pipeline:
    """Commands that are run together by `execute`. `at_once`: until `multi`, each is run when it is awaited."""

    def __init__(self, commands: _Commands, *, at_once: bool = False) -> None:
        self._commands = commands
        self._at_once = at_once
        self._queue: list[tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]] = []

    async def __aenter__(self) -> "_Pipeline":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._queue.clear()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._commands, name)
        if self._at_once:
            return getattr(_Client(self._commands), name)

        def queue(*given: Any, **options: Any) -> _Pipeline:
            self._queue.append((command, given, options))
            return self

        return queue

    def multi(self) -> None:
        self._at_once = False

    async def execute(self) -> list[Any]:
        with _transaction(self._commands.connection):
            return self.run()

    def run(self) -> list[Any]:
        """Run what is queued, in the transaction that there is."""
        queue, self._queue = self._queue, []
        return [command(*given, **options) for command, given, options in queue]
