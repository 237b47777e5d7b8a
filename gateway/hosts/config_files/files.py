"""Reading and replacing a user's files atomically, keeping mode and owner, and following symlinks."""

import contextlib
import os
import stat
from pathlib import Path

from gateway.config.documents import decoded
from gateway.errors import ConfigError, ConfigFileUnreadable
from gateway.system.files import replacing

_NEW_FILE_MODE = 0o600
"""Configurations contain secrets sooner or later."""


def read_bytes(path: Path) -> bytes | None:
    """Return the file's content, or None if there is no file.

    Raises:
        ConfigFileUnreadable: it is there all the same.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigFileUnreadable(f"cannot be read: {_cause(error)}", where=str(path)) from None


def decoded_text(content: bytes | None, path: Path) -> str:
    """Decode the content, keeping a byte order mark and line ends; "" if there is none.

    Raises:
        ConfigError: it is not UTF-8.
    """
    return decoded(content or b"", str(path))


def replace_file(path: Path, content: bytes, *, expected: bytes | None) -> tuple[Path, ...]:
    """Put `content` into the file, atomically; return the folders that had to be created.

    A symlink stays one: its target is replaced. Mode and owner stay; a new file is accessible only to its owner.

    Raises:
        ConfigError: it cannot be written, or no longer holds `expected` (None: no file).
    """
    target = Path(os.path.realpath(path))
    try:
        made = _make_folders(target.parent)
        if target.exists() and not os.access(target, os.W_OK):
            raise ConfigError("is write-protected", where=str(path), remedy="make it writable first")
        with replacing(target) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            _like(target, Path(file.name))
            if read_bytes(target) != expected:
                raise ConfigError("was changed by another program just now", where=str(path), remedy="try again")
    except OSError as error:
        raise ConfigError(f"cannot be written: {_cause(error)}", where=str(path)) from None
    return made


def remove_file(path: Path, *, expected: bytes) -> None:
    """Remove a file that holds `expected`.

    Raises:
        ConfigError: it cannot be removed, or holds something else.
    """
    if read_bytes(path) != expected:
        raise ConfigError("was changed by another program just now", where=str(path), remedy="try again")
    try:
        Path(os.path.realpath(path)).unlink()
    except OSError as error:
        raise ConfigError(f"cannot be removed: {_cause(error)}", where=str(path)) from None


def _make_folders(folder: Path) -> tuple[Path, ...]:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir()
    return tuple(missing)


def _like(target: Path, new: Path) -> None:
    """Give the new file the mode and the owner of the file that it replaces."""
    if not target.exists():
        new.chmod(_NEW_FILE_MODE)
        return
    status = target.stat()
    with contextlib.suppress(OSError, AttributeError):  # only root may do so, and Windows has no such owners
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(stat.S_IMODE(status.st_mode))


def _cause(error: OSError) -> str:
    return (error.strerror or "unknown cause").lower()
