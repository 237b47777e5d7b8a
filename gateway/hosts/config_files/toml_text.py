"""Plain values as TOML: strings, numbers, lists, and tables of them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model.json_values import is_object

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key_text(key: str) -> str:
    """A key as TOML has it: bare where that is possible."""
    return key if _BARE.fullmatch(key) else value_text(key)


def value_text(value: Any) -> str:
    """A value on one line.

    Raises:
        ValueError: TOML has no such value: null, half a surrogate pair.
    """
    if isinstance(value, str):
        value.encode("utf-8")
        # JSON's escapes are TOML's too; U+007F is the one character that only TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if is_object(value):
        pairs = value.items()
        return "{ " + ", ".join(f"{key_text(key)} = {value_text(item)}" for key, item in pairs) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(value_text(item) for item in cast("Sequence[Any]", value)) + "]"
    raise ValueError(f"TOML has no {type(value).__name__}")


def table_text(path: Sequence[str], table: Mapping[str, Any]) -> str:
    """A table with its header; tables in it get headers of their own. Ends with a newline."""
    header = ".".join(key_text(part) for part in path)
    lines = [f"[{header}]"]
    inner: list[str] = []
    for key, value in table.items():
        if is_object(value):
            inner.append(table_text([*path, key], value))
        else:
            lines.append(f"{key_text(key)} = {value_text(value)}")
    return "\n".join(["\n".join(lines) + "\n", *inner])
