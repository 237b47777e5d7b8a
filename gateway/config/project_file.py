"""`.mcp-gateway.toml` in the folder of a project: the toolset that hosts on stdio have there. Standard library only.

Whoever wrote the project wrote the file, so it is not trusted: it can name a toolset of the user's configuration, which
takes away, and nothing else.
"""

import os
import stat
from pathlib import Path

from gateway.config.documents import decoded, from_toml
from gateway.core.model.toolset_scope import broken_toolset, problem_in
from gateway.errors import ConfigError

PROJECT_FILE = ".mcp-gateway.toml"

_KEY = "toolset"
_LARGEST = 64 * 1024
_LONGEST_NAME = 200
_DEEPEST = 64
_REPOSITORY = ".git"


def project_file(folder: Path) -> Path | None:
    """Return the file for a folder: there, or in a folder above it within the same repository or home folder."""
    folder = folder.absolute()
    home = Path(os.path.expanduser("~"))
    for place in (folder, *folder.parents)[:_DEEPEST]:
        if os.path.lexists(found := place / PROJECT_FILE):
            return found
        if place == home or os.path.lexists(place / _REPOSITORY):
            return None
    return None


def read_project_file(file: Path) -> str | None:
    """Return the toolset that the file names, if any.

    Raises:
        ConfigError: it cannot be read, is malformed, or has anything else in it.
    """
    where = str(file)
    try:
        # A pipe or a device would never end.
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise ConfigError("is not a regular file", where=where)
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=where) from None
    if len(content) > _LARGEST:
        raise ConfigError(f"has more than {_LARGEST:,} bytes", where=where, remedy=f"it only names a {_KEY}")
    remedy = f'it may only have one line: {_KEY} = "NAME", for a toolset of your configuration'
    text = decoded(content, where).removeprefix("\ufeff")
    document = from_toml(text, where, remedy)
    if others := sorted(set(document) - {_KEY}):
        raise ConfigError(f"has the key {others[0][:80]!r}", where=_place(where, text, others[0]), remedy=remedy)
    name = document.get(_KEY)
    if name is not None and not _may_be_name(name):
        place = _place(where, text, _KEY)
        raise ConfigError(f"{_KEY} must be the name of a toolset, in quotes", where=place, remedy=remedy)
    return name


def _may_be_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and problem_in(value) is None


def _place(where: str, text: str, key: str) -> str:
    """Return the file with the first line that begins with a key or with its table, if there is one."""
    begun = (number for number, line in enumerate(text.splitlines(), 1) if line.lstrip(" \t[\"'").startswith(key))
    line = next(begun, None)
    return where if line is None else f"{where}:{line}"


def toolset_of_project(file: Path) -> str | None:
    """Return the toolset that the file names, if any; with a file that cannot be used, a name that none has.

    So a host gets nothing there, rather than more than the project asked for, and the name says why
    (`gateway.core.model.toolset_scope.problem_in`).
    """
    try:
        return read_project_file(file)
    except ConfigError as error:
        return broken_toolset(str(error))


def project_file_here() -> Path | None:
    """Return the file for the working folder, if there are both."""
    try:
        return project_file(Path.cwd())
    except OSError:  # the folder is gone
        return None


def toolsets_here(chosen: str | None, folder: Path | None = None) -> tuple[str, ...]:
    """Return the toolsets of a host on stdio: the one that it was started with, and that of its project."""
    file = project_file_here() if folder is None else project_file(folder)
    named = (chosen, None if file is None else toolset_of_project(file))
    return tuple(dict.fromkeys(name for name in named if name is not None))
