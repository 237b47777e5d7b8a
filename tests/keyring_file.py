"""A keyring in a file, for tests: the machine's own may be locked, missing, or somebody's."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    """Keeps everything in the file `$KEYRING_FILE`; while it contains `locked`, nothing can be read or written."""

    priority = 1  # pyright: ignore[reportAssignmentType]  # as the library's documentation tells its authors

    def get_password(self, service: str, username: str) -> str | None:
        return self._entries().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._entries(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        entries = self._entries()
        if entries.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("no such entry")
        self._write(entries)

    def _entries(self) -> dict[str, str]:
        file = self._file()
        text = file.read_text("utf-8") if file.exists() else "{}"
        if text == "locked":
            raise KeyringLocked("the collection is locked")
        return json.loads(text)

    def _write(self, entries: dict[str, str]) -> None:
        self._file().write_text(json.dumps(entries), "utf-8")

    def _file(self) -> Path:
        return Path(os.environ["KEYRING_FILE"])
