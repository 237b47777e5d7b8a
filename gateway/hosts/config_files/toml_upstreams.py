"""The tables in that of one upstream in a TOML text, such as its `tools`. The rest is in `toml_edits`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway.config.toml_text import inline, table_text
from gateway.hosts.config_files import toml_tables
from gateway.hosts.config_files.toml_edits import edited, edited_at, table_at

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_TABLE = "upstreams"


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
        upstream = table_at(document, *path[:2])
        if key not in upstream:
            upstream[key] = inline(values)
            return
        for each in without:
            upstream[key].pop(each, None)
        for each, value in values.items():
            upstream[key][each] = inline(value)

    if nested is not None:
        return edited_at(text, nested, edit)
    if own is None:
        return edited(text, edit)
    if key in _names_in(text[own.start : own.end], path[:2]):
        return edited_at(text, own, edit)
    added = table_text(path, values)
    return f"{text[: own.end].rstrip(chr(10))}\n\n{added}{text[own.end :]}"


def _names_in(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    import tomllib

    table: Any = tomllib.loads(text)
    for key in path:
        table = table[key]
    return table
