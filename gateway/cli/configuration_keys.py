"""The keys of the configuration on a terminal, for `config keys`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.cli.exit_codes import refuse
from gateway.cli.terminal import remark, say, say_table
from gateway.config.reference import Table, tables
from gateway.core.near_names import which_name


def known_tables() -> dict[str, Table]:
    """Return every table by the name that is typed: `upstreams.timeout` for [upstreams.<name>.timeout]."""
    return {_typed(table.path): table for table in tables()}


def tables_named(names: Sequence[str], known: Mapping[str, Table]) -> Iterator[Table]:
    """Yield the tables of these names with those below them, and tables with a key of such a name, with it alone.

    Raises:
        typer.BadParameter: nothing has one of the names.
    """
    for given in names:
        name = _general(_typed(given), known)
        below = [table for path, table in known.items() if path == name or path.startswith(f"{name}.")]
        found = below or list(_with_key(name, known))
        if not found:
            refuse(f"there is no table or key {given!r}: {_meant(name, known)}")
        yield from found


def _general(name: str, known: Mapping[str, Table]) -> str:
    """Return a name without the names that are the user's own: `upstreams.charts.timeout` is `upstreams.timeout`."""
    parts = name.split(".")
    if name in known or len(parts) < 2:
        return name
    for path, table in known.items():
        pattern = _bare(table.path).split(".")
        fits = len(pattern) <= len(parts) and all(
            one in (other, "<name>") for one, other in zip(pattern, parts, strict=False)
        )
        if fits and "<name>" in pattern and parts[len(pattern) :] in ([], *([key.name] for key in table.keys)):
            return ".".join([path, *parts[len(pattern) :]])
    return name


def _meant(name: str, known: Mapping[str, Table]) -> str:
    """Return what may be meant by the name of a table or key that does not exist."""
    above, _, key = name.rpartition(".")
    if above in known and above:
        return which_name(key, [one.name for one in known[above].keys])
    keys = dict.fromkeys(key.name for table in known.values() for key in table.keys)
    return which_name(name, [*filter(None, known), *keys])


def _typed(path: str) -> str:
    return _bare(path).replace(".<name>", "")


def _bare(path: str) -> str:
    return path.replace("[", "").replace("]", "")


def _with_key(name: str, known: Mapping[str, Table]) -> Iterator[Table]:
    above, _, key = name.rpartition(".")
    for path, table in known.items():
        keys = tuple(one for one in table.keys if one.name == key)
        if keys and (path == above or not above):
            yield table._replace(keys=keys)


def table_as_json(table: Table) -> dict[str, Any]:
    """Return a table for programs. Types, defaults and meanings are Markdown."""
    return {"table": table.path, "meaning": table.meaning, "keys": [key._asdict() for key in table.keys]}


def say_tables(chosen: Sequence[Table]) -> None:
    """Print what each table is for."""
    rows = [(_typed(table.path), _first_sentence(table.meaning)) for table in chosen if table.path]
    say_table(("table", "what it is for"), rows)
    remark("its keys: `mcp-gateway config keys TABLE`")


def say_keys(table: Table) -> None:
    """Print a table's meaning and its keys."""
    if table.path:
        say(f"[{table.path}]")
        say(_unmarked(table.meaning))
    if table.keys:
        say_table(("key", "type", "default", "meaning"), [[_unmarked(cell) for cell in key] for key in table.keys])
    say()


def _unmarked(text: str) -> str:
    return text.replace("`", "")


def _first_sentence(meaning: str) -> str:
    return _unmarked(meaning.partition("\n")[0].partition(". ")[0].rstrip("."))
