"""What a host is told first, read before anything else is loaded. Standard library only.

`serve` over stdio answers its host's first message before the schema, and so the settings, can be imported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from gateway.config.documents import read_document
from gateway.config.expansion import expand
from gateway.config.finding import find_file
from gateway.errors import ConfigError

NAME = "mcp-gateway"


class Greeting(NamedTuple):
    """`[gateway] name` and `instructions`."""

    name: str = NAME
    instructions: str | None = None


def read_greeting(path: Path | None, environ: Mapping[str, str]) -> Greeting:
    """The greeting of the configuration that `load_settings` would read; the default one where it cannot be read.

    What is wrong with the file is said by `load_settings`, which comes after.
    """
    try:
        found = find_file(path, environ=environ)
        document = {} if found is None else read_document(found)
    except ConfigError:
        return Greeting()
    table: Any = document.get("gateway")
    if not isinstance(table, Mapping):
        return Greeting()
    expanded, _ = expand(cast("Mapping[str, Any]", table), environ)
    name, instructions = expanded.get("name"), expanded.get("instructions")
    return Greeting(name if isinstance(name, str) else NAME, instructions if isinstance(instructions, str) else None)
