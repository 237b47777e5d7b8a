"""Reading a configuration file: TOML, or JSON as other programs write it (with comments and trailing commas)."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, cast

from gateway.errors import ConfigError

_TOML_PLACE = re.compile(r" ?\(at line (\d+), column (\d+)\)\Z")
_TOML_END = " (at end of document)"
_JSON_EXTRAS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)


def read_document(path: Path) -> dict[str, Any]:
    """The file's content as plain values.

    Raises:
        ConfigError: it cannot be read or is malformed, with file, line and column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("there is no such file", where=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=str(path)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", where=f"{path}:{line}", remedy="save the file as UTF-8") from None
    return _json(path, text) if path.suffix.lower() == ".json" else _toml(path, text)


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        if place := _TOML_PLACE.search(message):
            where, message = f"{path}:{place[1]}:{place[2]}", message[: place.start()]
        else:
            where, message = f"{path}:{text.count(chr(10)) + 1}", message.removesuffix(_TOML_END)
        raise ConfigError(f"is not TOML: {message[:1].lower()}{message[1:]}", where=where) from None


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        document = json.loads(_JSON_EXTRAS.sub(_blank, text), object_pairs_hook=_without_twins)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise ConfigError(f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", where=where) from None
    except _TwinKeys as twins:
        raise ConfigError(f"the key {twins.args[0]!a} stands twice in one object", where=str(path)) from None
    if not isinstance(document, dict):
        raise ConfigError("is no JSON object", where=str(path))
    return cast("dict[str, Any]", document)


class _TwinKeys(Exception):
    """A key that stands twice in one object."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _TwinKeys(key)
        table[key] = value
    return table


def _blank(found: re.Match[str]) -> str:
    """Strings stay; comments and trailing commas become blanks, so that places in error messages stay right."""
    return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])
