"""The values of one profile in a TOML text: setting and removing them, keeping all comments and formatting.

A value may stand in many places: `sets = { "image.max_edge" = 1 }`, `sets.image.max_edge = 1`, below
`[profiles.NAME.sets]` or `[profiles.NAME.sets.image]`, and among the `sets` of a fact. It is changed where it stands; a
new one joins the other `sets`. A value of a fact is moved out of it: the evidence is not that of the new value.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.config.toml_text import inline, key_text, table_header, value_text
from gateway.core.model.json_values import is_object
from gateway.hosts.config_files import toml_tables
from gateway.hosts.config_files.toml_edits import NotEditable, edited

_TABLE = "profiles"


def with_values(text: str, name: str, changes: Mapping[str, Any]) -> str:
    """Set the values `changes` of the profile, by dotted path; None removes one.

    Raises:
        NotEditable: the text cannot be edited.
    """
    missing = {path: value for path, value in changes.items() if value is not None}
    for table in reversed(_regions(text, name)):

        def edit(document: Any) -> None:
            for path in _changed_in(document, name, changes):
                missing.pop(path, None)

        part = edited(text[table.start : table.end], edit)
        text = text[: table.start] + part + text[table.end :]
    return _with_missing(text, name, missing) if missing else text


def _regions(text: str, name: str) -> list[toml_tables.Table]:
    """Return the tables of the profile; the whole text if it has no header of its own."""
    tables = [one for one in toml_tables.tables(text) if one.path[:2] == (_TABLE, name)]
    return tables if _own(text, name) else [toml_tables.Table((), 0, len(text))]


def _own(text: str, name: str) -> toml_tables.Table | None:
    return next((one for one in toml_tables.tables(text) if one.path == (_TABLE, name)), None)


def _changed_in(document: Any, name: str, changes: Mapping[str, Any]) -> Iterator[str]:
    """Change the values that stand in this part, and yield the paths of those that have their new value now."""
    profile = document.get(_TABLE, {}).get(name)
    if profile is None:
        return
    for path, value in changes.items():
        found = _holder(profile.get("sets", {}), path)
        if found is not None:
            holder, key = found
            if value is None:
                del holder[key]
                _tidy(profile)
            else:
                holder[key] = inline(value)
                yield path
        facts = profile.get("fact", [])
        for fact in [facts] if is_object(facts) else facts:
            found = _holder(fact.get("sets", {}), path)
            if found is not None:
                del found[0][found[1]]


def _holder(table: Any, path: str) -> tuple[Any, str] | None:
    """Return the table that has the value at a dotted path, and its key there; keys may be dotted themselves."""
    for key in list(table):
        if key == path:
            return table, key
        if path.startswith(f"{key}.") and is_object(table[key]):
            found = _holder(table[key], path.removeprefix(f"{key}."))
            if found is not None:
                return found
    return None


def _with_missing(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Add values: to the table `sets` if there is one, or else to the table of the profile."""
    path = (_TABLE, name)
    sets = next((one for one in toml_tables.tables(text) if one.path == (*path, "sets")), None)
    if sets is not None:
        return _with_lines(text, sets, values, "")
    own = _own(text, name)
    below = next((one for one in toml_tables.tables(text) if one.path[:2] == path), None)
    if own is None and below is not None:
        return text[: below.start] + f"{table_header([*path, 'sets'])}\n{_lines(values, '')}\n" + text[below.start :]
    if own is None:
        return edited(text, lambda document: _add(document[_TABLE][name], values))
    part = text[own.start : own.end]
    if _has_inline_sets(part, name):
        part = edited(part, lambda document: _add(document[_TABLE][name], values))
        return text[: own.start] + part + text[own.end :]
    return _with_lines(text, own, values, "sets.")


def _has_inline_sets(part: str, name: str) -> bool:
    import tomlkit

    profile: Any = tomlkit.parse(part)[_TABLE]
    return _is_inline(profile[name].get("sets"))


def _is_inline(table: Any) -> bool:
    from tomlkit.items import InlineTable

    return isinstance(table, InlineTable)


def _add(profile: Any, values: Mapping[str, Any]) -> None:
    before: Mapping[str, Any] = profile["sets"].unwrap() if "sets" in profile else {}
    profile["sets"] = inline({**before, **values})


def _tidy(profile: Any) -> None:
    """Write the inline table of values again: the blanks around a removed one stay otherwise."""
    if _is_inline(profile["sets"]):
        _add(profile, {})


def _with_lines(text: str, table: toml_tables.Table, values: Mapping[str, Any], prefix: str) -> str:
    """Add a line for each value at the end of a table."""
    before = text[: table.end]
    return before + ("" if before.endswith("\n") else "\n") + _lines(values, prefix) + text[table.end :]


def _lines(values: Mapping[str, Any], prefix: str) -> str:
    try:
        return "".join(f"{prefix}{key_text(path)} = {value_text(value)}\n" for path, value in values.items())
    except ValueError as error:
        raise NotEditable from error
