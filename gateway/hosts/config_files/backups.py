"""Backups of hosts' files before the gateway changes them, in the user's data folder, readable only by the user."""

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gateway.core.model.format_versions import newer_than
from gateway.errors import ConfigError
from gateway.hosts.config_files.files import read_bytes, replace_file

_KEPT = 5

RECORD_VERSION = 1


@dataclass(frozen=True)
class BackupRecord:
    """How a file was changed: it then held `written` (a digest), with the gateway under `names`.

    `existed`: there was a file before. `exact`: nobody else changed it between our own changes, so that restoring the
    backup undoes them all. `taken_out` are the other servers that were removed, `made_folders` the folders that were
    created.
    """

    file: str
    existed: bool
    written: str
    names: tuple[str, ...]
    exact: bool = True
    taken_out: tuple[str, ...] = ()
    made_folders: tuple[str, ...] = ()
    version: int = RECORD_VERSION


class Backups:
    """The backups in a folder, one of each host's file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls) -> "Backups":
        """Return those of the user who runs this process."""
        import platformdirs  # here, because few commands need it

        return cls(platformdirs.user_data_path("mcp-gateway", appauthor=False) / "backups")

    def place(self, host: str, file: Path) -> Path:
        """Return the path of the original content; there is no such file if the host had none."""
        return self._home(host, file) / "before"

    def record(self, host: str, file: Path) -> BackupRecord | None:
        """Return the record of changes to the file, if it was changed and the change is not undone."""
        content = read_bytes(self._home(host, file) / "record.json")
        try:
            said: dict[str, Any] = json.loads(content or b"null") or {}
            newer = newer_than(RECORD_VERSION, said.get("version"))
            lists = {key: tuple(said.get(key, ())) for key in ("names", "taken_out", "made_folders")}
            fields: dict[str, Any] = {**said, **lists}
            if newer is None:
                return BackupRecord(**fields) if said else None
        except (ValueError, TypeError, AttributeError):
            newer = None
        what = "is damaged" if newer is None else f"cannot be read: {newer}"
        where = str(self._home(host, file))
        raise ConfigError(what, where=where, remedy="its file `before` is the host's old file")

    def before(self, host: str, file: Path) -> bytes | None:
        """Return the original content."""
        return read_bytes(self.place(host, file))

    def keep(self, host: str, file: Path, content: bytes | None) -> None:
        """Store what the file holds before it is changed; older backups are renamed, and a few are kept."""
        self._step_back(host, file)
        if content is not None:
            self._write(self.place(host, file), content)

    def write(self, host: str, file: Path, record: BackupRecord) -> None:
        """Store the record of a change."""
        self._write(self._home(host, file) / "record.json", json.dumps(asdict(record), indent=2).encode())

    def forget(self, host: str, file: Path, *, drop_content: bool) -> None:
        """Remove the record of an undone change; `drop_content` removes the backup too, as the host has it again."""
        (self._home(host, file) / "record.json").unlink(missing_ok=True)
        if drop_content:
            self.place(host, file).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it contains older backups
            self._home(host, file).rmdir()

    def _home(self, host: str, file: Path) -> Path:
        digest = hashlib.sha256(os.path.realpath(file).encode("utf-8", "surrogateescape")).hexdigest()
        return self.folder / f"{host}-{digest[:12]}"

    def _step_back(self, host: str, file: Path) -> None:
        place = self.place(host, file)
        for number in range(_KEPT - 1, 0, -1):
            older = place.with_name(f"before.{number}")
            if older.exists():
                older.replace(place.with_name(f"before.{number + 1}"))
        if place.exists():
            place.replace(place.with_name("before.1"))

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content, expected=read_bytes(path))
        path.chmod(0o600)


def digest(content: bytes) -> str:
    """Return the digest by which a file's content is recognised."""
    return hashlib.sha256(content).hexdigest()
