"""The facts that decide which lists hosts are given, besides the hosts themselves. Standard library only.

`serve` reads them before anything is loaded. A list that was given under the same facts may be given again at once
(`gateway.serving.mcp.early_lists`); if one of them has changed, that list is not found.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gateway._version import __version__
from gateway.config.expansion import variables_named
from gateway.config.find_config import find_file, profiles_folder, state_folder
from gateway.core.model.json_values import as_list, as_object
from gateway.system.runtime_dir import existing_folders

CALIBRATE_FILE = "calibrate.wish"
"""In the runtime directory: the request to calibrate hosts, who are then offered more tools."""

_MOST_FILES = 1_000
_LARGEST = 4 * 1024 * 1024
_SEALED = "sealed"


class ListFacts(NamedTuple):
    """A digest of all facts, and the time (seconds since 1970) at which the last of their files was changed.

    A gateway that was started before that time may know others. `toolsets` are the names of those among the facts.
    """

    digest: str
    changed: float
    toolsets: tuple[str, ...] = ()


def read_list_facts(
    path: Path | None, environ: Mapping[str, str], arguments: Sequence[str], toolsets: Sequence[str] = ()
) -> ListFacts | None:
    """Read the facts for the configuration that `load_settings` would read; None if they are not known for sure.

    `arguments` are those of the command line, `toolsets` those that narrow what the host is offered.
    """
    found = find_file(path, environ=environ)
    if found is None:
        return None
    try:
        config, content = _stamp(found), _content(found)
        text, state = content.decode("utf-8", "replace"), state_folder(environ)
        profiles = _profiles(profiles_folder(environ))
        # Only pins that hold tools decide, and only the configuration can want that.
        pins = _stamps(state / "pins", ".json") if state is not None and "pins" in text else {}
        facts = {
            "version": __version__,
            "arguments": list(arguments),
            "toolsets": list(toolsets),
            "config": [str(found.absolute()), config, hashlib.sha256(content).hexdigest()],
            "variables": {name: environ.get(name) for name in sorted(variables_named(text))},
            "profiles": profiles,
            "pins": pins,
            "logins": _logins(state / "logins.json") if state is not None else None,
            # Only what is there: the folders themselves are made by the first gateway after a login.
            "calibrating": [one for one in map(_calibration, existing_folders()) if one is not None],
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()
    except (OSError, ValueError, RecursionError):
        return None
    stamps = [config, *profiles.values(), *pins.values()]
    return ListFacts(digest, max(one[0] for one in stamps if one is not None) / 1e9, tuple(toolsets))


_Stamp = tuple[int, int, int]
"""The time of the last change in nanoseconds, the size, and the number of the file."""


def _stamp(path: Path) -> _Stamp | None:
    """Return the stamp of a file; None if there is none. Raises OSError if it cannot be looked at."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _calibration(folder: Path) -> _Stamp | None:
    return _stamp(folder / CALIBRATE_FILE)


def _content(path: Path) -> bytes:
    """Return the content of a file. Raises OSError, or ValueError if it is not a file or too large."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("not a file")
    with path.open("rb") as opened:
        content = opened.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError("too large")
    return content


def _profiles(folder: Path | None) -> dict[str, _Stamp | None]:
    """Return the stamps of the profiles' files, and of their folder: one may have been removed."""
    return {} if folder is None else {str(folder): _stamp(folder), **_stamps(folder, ".toml")}


def _stamps(folder: Path, ending: str) -> dict[str, _Stamp | None]:
    """Return the stamps of a folder's files by their paths. Raises ValueError if there are too many."""
    try:
        paths = [one.path for one in os.scandir(folder) if one.name.endswith(ending)]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(paths) > _MOST_FILES:
        raise ValueError("too many files")
    return {path: _stamp(Path(path)) for path in sorted(paths)}


def _logins(path: Path) -> list[dict[str, object]] | None:
    """Return whose logins there are, not the tokens: these are renewed all the time. Raises OSError, ValueError."""
    if _stamp(path) is None:
        return None
    entries = as_list(as_object(json.loads(_content(path))).get("logins"))
    return [{key: value for key, value in as_object(one).items() if key != _SEALED} for one in entries]
