"""The profiles measured by `mcp-gateway calibrate` or edited in the console: one file each in the user's own folder."""

import logging
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from gateway.config.find_config import PROFILES_VARIABLE, profiles_folder
from gateway.config.toml_text import value_text
from gateway.core.profiles.profile import ProfileSource
from gateway.errors import ConfigError
from gateway.system.files import write_file

logger = logging.getLogger(__name__)

_MOST = 1_000
_LARGEST = 256 * 1024
_ENDING = ".toml"

_MEASURED = "# Written by `mcp-gateway calibrate`. Delete this file to forget what was measured."
_EDITED = "# Edited with mcp-gateway. Delete this file to return to the profile that it extends."


def load_local(environ: Mapping[str, str]) -> dict[str, ProfileSource]:
    """Return these profiles by name, in the order of their names.

    An unusable file only causes a warning: nobody has to be able to write them by hand.
    """
    folder = profiles_folder(environ)
    found: dict[str, ProfileSource] = {}
    for path in _files(folder) if folder is not None else ():
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST).decode("utf-8")
            found[path.name.removesuffix(_ENDING)] = ProfileSource.model_validate(tomllib.loads(text))
        except (OSError, ValueError, ValidationError) as error:
            logger.warning("the measured profile %s is ignored: %s", path, str(error).partition("\n")[0])
    return found


def local_path(environ: Mapping[str, str], name: str) -> Path:
    """Return the path of the file for a profile of this name. Raises ConfigError if there is no folder for it."""
    folder = profiles_folder(environ)
    if folder is None:
        raise ConfigError(f"${PROFILES_VARIABLE} is empty: measured profiles are not kept")
    return folder / f"{name}{_ENDING}"


def write_local(environ: Mapping[str, str], name: str, source: ProfileSource) -> Path:
    """Write a profile under this name, replacing an older one; return its path.

    Raises:
        ConfigError: there is no folder for it, or it cannot be written.
    """
    path = local_path(environ, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, as_toml(source).encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(_ENDING))
    except OSError:  # there is none yet
        return []
    return [folder / name for name in names[:_MOST]]


def as_toml(source: ProfileSource) -> str:
    """Format a profile, without its variants, as a file in the form of the built-in ones."""
    lines = [_MEASURED if source.fact else _EDITED, ""]
    lines += _pairs({"title": source.title, "about": source.about, "extends": source.extends})
    if source.match:
        lines += _pairs({"match": [_given(match) for match in source.match]})
    lines += [f"sets.{pair}" for pair in _pairs(source.sets)]
    for fact in source.fact:
        known = {key: value for key, value in _given(fact).items() if key != "sets"}
        lines += ["", "[[fact]]", *_pairs(known), *(f"sets.{pair}" for pair in _pairs(fact.sets))]
    return "\n".join(lines) + "\n"


def _given(rules: BaseModel) -> dict[str, Any]:
    return rules.model_dump(exclude_none=True)


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key} = {value_text(value)}" for key, value in values.items() if value is not None)
