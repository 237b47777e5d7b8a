"""Writing plain values as TOML: strings, numbers, dates, lists, and tables of them.

tomlkit is imported only when something is written: most commands write nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from gateway.core.model.json_values import is_object

if TYPE_CHECKING:
    from tomlkit.items import Item, Table

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value_text(value: Any) -> str:
    """Format a value on one line.

    Raises:
        ValueError: TOML has no such value: null, half a surrogate pair.
    """
    return inline(value).as_string()


def key_text(key: str) -> str:
    """Format a key: one with dots is quoted, so that it cannot clash with another one. Raises as `value_text` does."""
    return key if _BARE.fullmatch(key) else value_text(key)


def table_header(path: Sequence[str]) -> str:
    """Format the header of a table: `[access.tokens.alice]`. Raises as `value_text` does."""
    return f"[{'.'.join(map(key_text, path))}]"


def table_text(path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Format a table with its header; tables in it get headers of their own. Ends with a newline.

    Raises:
        ValueError: TOML has no such value.
    """
    import tomlkit

    nested: Mapping[str, Any] = _table(table)
    for key in reversed(path):
        nested = {key: nested}
    return tomlkit.dumps(nested)


def inline(value: Any) -> "Item":
    """Convert the value for tomlkit, with tables on one line.

    Raises:
        ValueError: TOML has no such value.
    """
    import tomlkit

    if isinstance(value, str):
        value.encode("utf-8")
    if value is None:
        raise ValueError("TOML has no NoneType")
    if is_object(value):
        table = tomlkit.inline_table()
        for key, item in value.items():
            table[key] = inline(item)
        return table
    if isinstance(value, list | tuple):
        array: Any = tomlkit.array()
        for item in cast("Sequence[Any]", value):
            array.append(inline(item))
        return array
    return tomlkit.item(value)


def _table(values: Mapping[str, Any]) -> "Table":
    import tomlkit

    table = tomlkit.table()
    for key, value in values.items():
        table[key] = _table(value) if is_object(value) else inline(value)
    return table
