"""Changing one table of a TOML text, or removing it, keeping all comments and formatting.

A table with a header is found with its own lines (`toml_tables`), and tomlkit edits only these: with the whole text, it
counts the comment above the next table as a part of the previous one. Inline and dotted tables are edited in place.
tomlkit is imported only when something is edited: commands that edit nothing do not pay for it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway.config.toml_text import inline, table_text
from gateway.core.model.json_values import as_object, is_list
from gateway.hosts.config_files import toml_tables

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_COMMENT_ABOVE = re.compile(r"(?:(?<=\n)|\A)(?:[ \t]*#[^\n]*\n)+\Z")


class NotEditable(Exception):
    """The text is written in a way that tomlkit cannot edit."""


def changed(text: str, path: Sequence[str], values: Mapping[str, Any], *, without: Sequence[str] = ()) -> str:
    """Set these values of the table at `path`, and remove the keys in `without` unless they are set.

    Raises:
        NotEditable: the text cannot be edited.
    """
    for key in without:
        text = toml_tables.without_tables(text, toml_tables.begins_with([*path, key]))
    own = next((one for one in toml_tables.tables(text) if one.path == tuple(path)), None)

    def edit(document: "TOMLDocument") -> None:
        table = table_at(document, *path)
        for key in without:
            if key in table and key not in values:
                del table[key]
        for key, value in values.items():
            _set(table, key, value)

    return edited(text, edit) if own is None else edited_at(text, own, edit)


def with_new(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Add a table at `path`: with a header at the end, or as a key if what it belongs to is one inline table.

    Raises:
        NotEditable: neither is possible.
    """
    *above, name = path
    if any(one.path[: len(above)] == tuple(above) for one in toml_tables.tables(text)) or not _is_inline(text, above):
        text = text[:-1] if text.endswith("\n\n") else text
        return toml_tables.with_table(text, table_text(path, table))

    def edit(document: "TOMLDocument") -> None:
        table_at(document, *above)[name] = inline(table)

    return edited(text, edit)


def without_table(text: str, path: Sequence[str]) -> str:
    """Remove the table at `path` from the text, and a comment right above it; any other comment stays.

    Raises:
        NotEditable: the text cannot be edited.
    """
    belongs = toml_tables.begins_with(path)
    own = next((one for one in toml_tables.tables(text) if belongs(one.path)), None)
    if own is None:
        return edited(text, lambda document: table_at(document, *path[:-1]).pop(path[-1]))
    before = _COMMENT_ABOVE.sub("", text[: own.start])
    return toml_tables.without_tables(before + text[own.start :], belongs)


def table_at(document: "TOMLDocument", *path: str) -> Any:
    """Return the table at `path`. Raises LookupError if there is none."""
    table: Any = document
    for key in path:
        table = table[key]
    return table


def edited_at(text: str, table: toml_tables.Table, edit: "Callable[[TOMLDocument], object]") -> str:
    """Return the text with the lines of one table as `edit` changes them. Raises NotEditable if tomlkit cannot."""
    return text[: table.start] + edited(text[table.start : table.end], edit) + text[table.end :]


def edited(text: str, edit: "Callable[[TOMLDocument], object]") -> str:
    """Return the text as `edit` changes it. Raises NotEditable if tomlkit cannot."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        return document.as_string()
    except (TOMLKitError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise NotEditable from error


def _is_inline(text: str, path: Sequence[str]) -> bool:
    """Whether the table is before the first header, as `upstreams = { ... }` or `upstreams.NAME = { ... }`."""
    import tomllib

    first = next((one.start for one in toml_tables.tables(text)), len(text))
    table: Any = tomllib.loads(text[:first])
    for key in path:
        table = as_object(table).get(key)
    return table is not None


def _set(table: Any, key: str, value: Any) -> None:
    """Set a value; in a list of the same length only the items that differ, so that comments between them stay."""
    before = table.get(key)
    if is_list(value) and is_list(before) and len(value) == len(before):
        for place, item in enumerate(value):
            if before[place] != item:
                before[place] = item
    else:
        table[key] = inline(value)
