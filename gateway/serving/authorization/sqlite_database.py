"""The state of the authorization server in SQLite: opening the file, and transactions in a worker thread.

Several processes may have it open at once: a gateway, and the commands that list and revoke.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from gateway.config.schema import Settings
from gateway.core.model.format_versions import newer_than
from gateway.errors import ConfigError
from gateway.serving.authorization.sql_database import VERSION, Transaction, statements_from
from gateway.serving.databases.availability import Availability

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

FILE_NAME = "authorization.sqlite3"
_BUSY_SECONDS = 5.0


class SqliteDatabase:
    """One connection, used by one thread at a time. Without a path, the state is in memory, and ends with the process.

    A file that is removed while it is open is created again, empty: every host has to be approved again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._availability = Availability()

    async def run(self, work: Callable[[Transaction], ResultT], *, is_lookup: bool = False) -> ResultT:
        """Do the same as `run_now` in a worker thread. All work is done alone, lookups too."""
        return await to_thread.run_sync(self.run_now, work, limiter=self._one_at_a_time)

    def run_now(self, work: Callable[[Transaction], ResultT]) -> ResultT:
        """Do the work in one transaction.

        Raises:
            StateUnavailable: the database is locked, full, damaged, or cannot be opened.
        """
        with self._lock:
            try:
                connection = self._opened()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(connection)
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            except (sqlite3.Error, OSError) as error:
                self._close()
                raise self._availability.lost(str(error)) from error
            self._availability.found()
            return result

    def check(self) -> None:
        """Open the database, at the start.

        Raises:
            ConfigError: it cannot be opened, or is not one of this program's.
        """
        try:
            with self._lock:
                self._opened()
        except (sqlite3.Error, OSError) as error:
            where = f"access.authorization_server.database ({self._path})"
            remedy = "move the file away, or name another: hosts then have to be approved again"
            raise ConfigError(f"the database cannot be used: {error}", where=where, remedy=remedy) from error

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._identity = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._path is not None and _identity(self._path) != self._identity:
            logger.warning("%s has been removed or replaced: hosts may have to be approved again", self._path)
            self._close()
        if self._connection is None:
            self._connection = _connect(self._path)
            self._identity = None if self._path is None else _identity(self._path)
        return self._connection


def database_path(settings: Settings, state: Path | None) -> Path | None:
    """Return the file of the state; None if it is kept in memory, for want of a folder (`state`)."""
    server = settings.access.authorization_server
    if server is not None and server.database is not None:
        return server.database
    return None if state is None else state / FILE_NAME


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Created here, so that nobody else can read it at any time; SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(
        ":memory:" if path is None else path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        _back_up(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(path: Path) -> int:
    """Return the version of the tables in a file, without changing it; 0: it has none yet.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return version
    finally:
        connection.close()


def backup_path(path: Path, version: int) -> Path:
    """Return where a file of this version is copied before its tables are changed."""
    return path.with_name(f"{path.name}.format-{version}")


def _back_up(connection: sqlite3.Connection, path: Path | None) -> None:
    """Copy a file whose tables are older, before anything in it is changed. What was copied before stays."""
    version = _known_version(connection)
    if path is None or not 0 < version < VERSION:
        return
    backup = backup_path(path, version)
    if not backup.exists():
        os.close(os.open(backup, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(backup)) as copy:
            connection.backup(copy)
    logger.warning(
        "%s is of an older version of the gateway: its tables are brought up to date (format %d to %d); as it was, it "
        "is in %s",
        path,
        version,
        VERSION,
        backup,
    )


def _known_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (words := newer_than(VERSION, version)) is not None:
        raise sqlite3.DatabaseError(words)
    return version


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _known_version(connection)
        for statement in statements_from(version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
