"""Servers of hosts put behind the gateway: which become upstreams, under which names, and the text that says so."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from gateway.config.foreign import upstream_name
from gateway.config.schema import OWN_NAME
from gateway.errors import ConfigError
from gateway.registration.servers import Server
from gateway.registration.toml_text import table_text

What = Literal["new", "twin", "known", "own", "unusable"]
"""new: becomes an upstream. twin: equal to an earlier one. known: stands in mcp-gateway.toml already. own: the gateway
itself. unusable: cannot be called by the gateway."""

_IDENTITY: Mapping[str, Any] = {"command": None, "args": [], "env": {}, "cwd": None, "url": None, "headers": {}}


@dataclass(frozen=True)
class Row:
    """What becomes of one server; `upstream` is its name behind the gateway, if it is there."""

    server: Server
    what: What
    upstream: str | None = None


@dataclass(frozen=True)
class ImportPlan:
    """What becomes of every server, and mcp-gateway.toml with them: `text` is the old one where nothing is new."""

    rows: tuple[Row, ...]
    text: str

    @property
    def new(self) -> tuple[Row, ...]:
        """The servers that become upstreams."""
        return tuple(row for row in self.rows if row.what == "new")


def plan_import(servers: Sequence[Server], text: str, where: str) -> ImportPlan:
    """The servers added to `text`, the mcp-gateway.toml that there is ("": none yet), which errors call `where`.

    Equal servers of several hosts are one upstream; it is enabled if one of them is.

    Raises:
        ConfigError: `text` is no TOML, or its upstreams are written in a way that nothing can be added to.
    """
    existing = _upstreams(text, where)
    names = {identity(_table(upstream)): name for name, upstream in existing.items()}
    known = frozenset(names)
    taken = {OWN_NAME, *existing}
    rows: list[Row] = []
    for server in servers:
        if server.own or server.upstream is None:
            rows.append(Row(server, "own" if server.own else "unusable"))
            continue
        key = identity(server.upstream)
        if key in names:
            rows.append(Row(server, "known" if key in known else "twin", names[key]))
            if key not in known:
                _enable_twin(rows, names[key], server)
            continue
        names[key] = upstream_name(server.name, taken)
        taken.add(names[key])
        rows.append(Row(server, "new", names[key]))
    return ImportPlan(tuple(rows), _with_upstreams(text, rows, where))


def identity(upstream: Mapping[str, Any]) -> str:
    """What makes two upstreams the same server: program or address, and all that they are given."""
    return json.dumps({key: upstream.get(key) or empty for key, empty in _IDENTITY.items()}, sort_keys=True)


def known_to(text: str, where: str) -> frozenset[str]:
    """The identities of the upstreams in a mcp-gateway.toml."""
    return frozenset(identity(_table(one)) for one in _upstreams(text, where).values())


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _enable_twin(rows: list[Row], name: str, server: Server) -> None:
    upstream = server.upstream or {}
    if upstream.get("enabled") is False:
        return
    for place, row in enumerate(rows):
        if row.what == "new" and row.upstream == name and row.server.upstream is not None:
            first = {key: value for key, value in row.server.upstream.items() if key != "enabled"}
            rows[place] = replace(row, server=replace(row.server, upstream=first))


def _upstreams(text: str, where: str) -> dict[str, Any]:
    try:
        table: Any = tomllib.loads(text.removeprefix("\ufeff")).get("upstreams", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"is not TOML: {error}", where=where, remedy="mcp-gateway config check says more") from None
    if not isinstance(table, dict):
        raise ConfigError("must be a table", where=f"{where}: upstreams")
    return cast("dict[str, Any]", table)


def _with_upstreams(text: str, rows: Sequence[Row], where: str) -> str:
    added = {row.upstream: row for row in rows if row.what == "new" and row.upstream is not None}
    if not added:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    parts = [_commented(name, row.server) for name, row in added.items()]
    start = text if not text or text.endswith("\n") else text + newline
    whole = start + newline * bool(start) + "\n".join(parts).replace("\n", newline)
    expected = {**_upstreams(text, where), **{name: row.server.upstream for name, row in added.items()}}
    try:
        same = _upstreams(whole, where) == expected
    except ConfigError:
        same = False
    if not same:
        remedy = "give each upstream a table of its own, as [upstreams.name]"
        raise ConfigError("nothing can be added to its upstreams as they are written", where=where, remedy=remedy)
    return whole


def _commented(name: str, server: Server) -> str:
    upstream = server.upstream or {}
    lines = [f"from {server.host}: {server.file}" + (f" (project {server.project})" if server.project else "")]
    comments = "".join(f"# {_one_line(line)}\n" for line in [*lines, *server.remarks])
    return comments + table_text(["upstreams", name], upstream)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
