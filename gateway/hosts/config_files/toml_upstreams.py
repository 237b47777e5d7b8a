"""The table of one upstream in a TOML text: adding, changing and removing it, keeping all comments and formatting.

`[upstreams.NAME]` is found with its own lines (`toml_tables`), and tomlkit edits only these: with the whole text, it
counts the comment above the next table as a part of the previous one. Inline and dotted tables are edited in place.
tomlkit is imported only when something is edited: commands that edit nothing do not pay for it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway.config.toml_text import inline, table_text
from gateway.core.model.json_values import is_list
from gateway.hosts.config_files import toml_tables

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_TABLE = "upstreams"
_COMMENT_ABOVE = re.compile(r"(?:(?<=\n)|\A)(?:[ \t]*#[^\n]*\n)+\Z")


class NotEditable(Exception):
    """The text is written in a way that tomlkit cannot edit."""


def with_upstream(text: str, name: str, upstream: Mapping[str, Any]) -> str:
    """Add an upstream to the text: a table at its end, or a key if all of them are one inline table.

    Raises:
        NotEditable: neither is possible.
    """
    if _has_header(text) or not _is_inline(text):
        text = text[:-1] if text.endswith("\n\n") else text
        return toml_tables.with_table(text, table_text([_TABLE, name], upstream))

    def edit(document: "TOMLDocument") -> None:
        _table_at(document, _TABLE)[name] = inline(upstream)

    return edited(text, edit)


def changed(text: str, name: str, values: Mapping[str, Any], *, without: Sequence[str] = ()) -> str:
    """Set these values of the upstream, and remove the keys in `without` unless they are set.

    Raises:
        NotEditable: the text cannot be edited.
    """
    path = (_TABLE, name)
    for key in without:
        text = toml_tables.without_tables(text, toml_tables.begins_with([*path, key]))
    own = next((one for one in toml_tables.tables(text) if one.path == path), None)

    def edit(document: "TOMLDocument") -> None:
        table = _table_at(document, *path)
        for key in without:
            if key in table and key not in values:
                del table[key]
        for key, value in values.items():
            _set(table, key, value)

    return edited(text, edit) if own is None else _edited_at(text, own, edit)


def with_subtable(text: str, name: str, key: str, values: Mapping[str, Any], *, without: Sequence[str] = ()) -> str:
    """Set these values of a table in an upstream, such as `tools`, and remove those in `without`.

    They are set where the table is written: with a header of its own, or in the upstream's; a new one gets a header.

    Raises:
        NotEditable: the text cannot be edited.
    """
    path = (_TABLE, name, key)
    own, nested = (
        next((one for one in toml_tables.tables(text) if one.path == wanted), None) for wanted in (path[:2], path)
    )

    def edit(document: "TOMLDocument") -> None:
        upstream = _table_at(document, *path[:2])
        if key not in upstream:
            upstream[key] = inline(values)
            return
        for each in without:
            upstream[key].pop(each, None)
        for each, value in values.items():
            upstream[key][each] = inline(value)

    if nested is not None:
        return _edited_at(text, nested, edit)
    if own is None:
        return edited(text, edit)
    if key in _names_in(text[own.start : own.end], path[:2]):
        return _edited_at(text, own, edit)
    added = table_text(path, values)
    return f"{text[: own.end].rstrip(chr(10))}\n\n{added}{text[own.end :]}"


def _set(table: Any, key: str, value: Any) -> None:
    """Set a value; in a list of the same length only the items that differ, so that comments between them stay."""
    before = table.get(key)
    if is_list(value) and is_list(before) and len(value) == len(before):
        for place, item in enumerate(value):
            if before[place] != item:
                before[place] = item
    else:
        table[key] = inline(value)


def _names_in(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    import tomllib

    table: Any = tomllib.loads(text)
    for key in path:
        table = table[key]
    return table


def without_upstream(text: str, name: str) -> str:
    """Remove the upstream from the text, and a comment right above its table; any other comment stays.

    Raises:
        NotEditable: the text cannot be edited.
    """
    path = (_TABLE, name)
    own = next((one for one in toml_tables.tables(text) if one.path[:2] == path), None)
    if own is None:
        return edited(text, lambda document: _table_at(document, _TABLE).pop(name))
    before = _COMMENT_ABOVE.sub("", text[: own.start])
    return toml_tables.without_tables(before + text[own.start :], toml_tables.begins_with(path))


def _has_header(text: str) -> bool:
    return any(one.path[:1] == (_TABLE,) for one in toml_tables.tables(text))


def _is_inline(text: str) -> bool:
    """Whether the upstreams are before the first header, as `upstreams = { ... }` or `upstreams.NAME = { ... }`."""
    import tomllib

    first = next((one.start for one in toml_tables.tables(text)), len(text))
    return _TABLE in tomllib.loads(text[:first])


def _table_at(document: "TOMLDocument", *path: str) -> Any:
    table: Any = document
    for key in path:
        table = table[key]
    return table


def _edited_at(text: str, table: toml_tables.Table, edit: "Callable[[TOMLDocument], object]") -> str:
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
