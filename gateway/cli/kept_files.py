"""The files that the gateway keeps for its user and cannot make again, with the versions of their formats."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gateway.config.find_config import state_folder
from gateway.config.load_settings import LoadedSettings
from gateway.config.schema import FILE_VERSION
from gateway.core.model.json_values import as_object
from gateway.errors import ConfigError
from gateway.hosts.config_files.backups import RECORD_VERSION, Backups
from gateway.serving.authorization.sql_database import VERSION as AUTHORIZATION_VERSION
from gateway.serving.authorization.sqlite_database import SqliteDatabase, backup_path, database_path, version_of
from gateway.serving.console.call_file import CALL_FILE_VERSION
from gateway.upstream.authorization.vault import FILE_NAME as LOGINS
from gateway.upstream.authorization.vault import LOGINS_VERSION
from gateway.upstream.pin_files import VERSION as PINS_VERSION


class KeptFile(NamedTuple):
    """A file: what is in it, the version of its format, and the version that this gateway writes."""

    what: str
    path: Path
    version: int | None
    """None: it cannot be read."""
    known: int
    migrate: Callable[[], Path] | None = None
    """Bring it up to date and return its copy as it was before. Raises ConfigError."""

    @property
    def is_older(self) -> bool:
        """Whether it is to be brought up to date."""
        return self.version is not None and self.version < self.known

    @property
    def is_newer(self) -> bool:
        """Whether this gateway is too old for it."""
        return self.version is not None and self.version > self.known


def kept_files(loaded: LoadedSettings, environ: Mapping[str, str]) -> list[KeptFile]:
    """Return those that exist, of this configuration and of the user."""
    return [file for file in _all(loaded, environ) if file.path.is_file()]


def _all(loaded: LoadedSettings, environ: Mapping[str, str]) -> Iterator[KeptFile]:
    settings, folder = loaded.settings, state_folder(environ)
    if loaded.path is not None:
        yield KeptFile("configuration", loaded.path, settings.version, FILE_VERSION)
    if (database := database_path(settings, folder)) is not None:
        version = _database_version(database)
        yield KeptFile("approved hosts", database, version, AUTHORIZATION_VERSION, lambda: _migrate(database))
    if settings.console.calls is not None:
        calls = settings.console.calls
        yield KeptFile("past calls", calls, _database_version(calls), CALL_FILE_VERSION)
    if folder is not None:
        yield KeptFile("logins", folder / LOGINS, _json_version(folder / LOGINS), LOGINS_VERSION)
        for pins in sorted((folder / "pins").glob("*.json")):
            yield KeptFile("pins", pins, _json_version(pins), PINS_VERSION)
    for record in sorted(Backups.of_user().folder.glob("*/record.json")):
        yield KeptFile("change of a host's file", record, _json_version(record, missing=1), RECORD_VERSION)


def _json_version(path: Path, *, missing: int | None = None) -> int | None:
    try:
        found = as_object(json.loads(path.read_bytes())).get("version", missing)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, int) else None


def _database_version(path: Path) -> int | None:
    try:
        return version_of(path) if path.is_file() else None
    except sqlite3.Error:
        return None


def _migrate(path: Path) -> Path:
    before = version_of(path)
    database = SqliteDatabase(path)
    database.check()
    database.close()
    if (backup := backup_path(path, before)).is_file():
        return backup
    raise ConfigError(f"{path} was not copied")
