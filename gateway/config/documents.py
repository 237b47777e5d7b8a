"""Reading a configuration file: TOML, or JSON as other programs write it (with comments and trailing commas)."""

import re
import tomllib
from pathlib import Path
from typing import Any

from gateway.core.model.json_values import is_dict
from gateway.errors import ConfigError, ConfigFileMissing, ConfigFileUnreadable, ConfigMalformed

_TOML_PLACE = re.compile(r" ?\(at line (\d+), column (\d+)\)\Z")
_TOML_END = " (at end of document)"


def read_document(path: Path) -> dict[str, Any]:
    """Read the file as plain values.

    Raises:
        ConfigError: it cannot be read or is malformed, with file, line and column.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigFileMissing("there is no such file", where=str(path)) from None
    except OSError as error:
        reason = (error.strerror or "unknown cause").lower()
        raise ConfigFileUnreadable(f"cannot be read: {reason}", where=str(path)) from None
    text = decoded(content, str(path)).removeprefix("\ufeff")
    return from_json(text, str(path), strict=True) if path.suffix.lower() == ".json" else from_toml(text, str(path))


def decoded(content: bytes, where: str) -> str:
    """Decode the content, keeping a byte order mark and line ends; `where` names the file in errors.

    Raises:
        ConfigError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", where=f"{where}:{line}", remedy="save the file as UTF-8") from None


def from_toml(text: str, where: str, remedy: str | None = None) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        ConfigError: it is malformed, with line and column.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigMalformed("is not TOML: it nests too deeply", where=where, remedy=remedy) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        if place := _TOML_PLACE.search(message):
            line, message = f"{where}:{place[1]}:{place[2]}", message[: place.start()]
        else:
            line, message = f"{where}:{text.count(chr(10)) + 1}", message.removesuffix(_TOML_END)
        raise ConfigMalformed(f"is not TOML: {message[:1].lower()}{message[1:]}", where=line, remedy=remedy) from None


def from_json(text: str, where: str, remedy: str | None = None, *, strict: bool = False) -> dict[str, Any]:
    """Parse a JSON object that may have comments and trailing commas.

    With `strict`, an empty text is an error (otherwise an empty object), and so is a duplicate key in an object
    (otherwise the last one counts).

    Raises:
        ConfigError: it is malformed, with line and column, or not an object.
    """
    from gateway.config import jsonc  # here, because few files are JSON

    try:
        document = jsonc.parse_jsonc(text, strict=strict)
    except jsonc.Malformed as error:
        place = f"{where}:{error.line}:{error.column}"
        raise ConfigMalformed(f"is not JSON: {error.what}", where=place, remedy=remedy) from None
    if not is_dict(document):
        raise ConfigError("is not a JSON object", where=where)
    return document
