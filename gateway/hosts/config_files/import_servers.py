"""Putting servers of hosts behind the gateway: which become upstreams, their names, and the resulting text."""

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gateway.config.foreign import upstream_name
from gateway.config.logins import through_mcp_remote, url_behind, with_time_to_log_in
from gateway.config.setting_types import OWN_NAME
from gateway.config.toml_text import table_text
from gateway.core.model.json_values import as_object, is_dict
from gateway.errors import ConfigError, ConfigMalformed
from gateway.hosts.config_files.keyring_secrets import PlainSecret, plain_secrets, with_references, with_values
from gateway.hosts.config_files.login_probe import at_a_url_without_credentials
from gateway.hosts.config_files.servers import Server

What = Literal["new", "twin", "known", "own", "unusable"]
"""The plans for a server.

new: becomes an upstream. twin: equal to an earlier one. known: already in mcp-gateway.toml. own: the gateway itself.
unusable: cannot be called by the gateway.
"""

_IDENTITY: Mapping[str, Any] = {"command": None, "args": [], "env": {}, "cwd": None, "url": None, "headers": {}}


@dataclass(frozen=True)
class Row:
    """The plan for one server; `upstream` is its name behind the gateway, if it is there."""

    server: Server
    what: What
    upstream: str | None = None


@dataclass(frozen=True)
class ImportPlan:
    """The plan for every server, and the resulting mcp-gateway.toml: `text` is the old one if there is nothing new."""

    rows: tuple[Row, ...]
    text: str

    @property
    def new(self) -> tuple[Row, ...]:
        """The servers that become upstreams."""
        return tuple(row for row in self.rows if row.what == "new")


def wants_login(server: Server, logins: Collection[str]) -> bool:
    """Whether a server requires a login (OAuth): its host's entry says so, or its url is among `logins`."""
    upstream = server.upstream or {}
    return at_a_url_without_credentials(upstream) and (server.logs_in or upstream["url"] in logins)


def plan_import(
    servers: Sequence[Server], text: str, where: str, *, logins: Collection[str] = (), mcp_remote: bool = False
) -> ImportPlan:
    """Plan to add the servers to `text`, the existing mcp-gateway.toml (or ""), which errors call `where`.

    Equal servers of several hosts are one upstream; it is enabled if one of them is. With `mcp_remote`, servers that
    require a login (`logins` are urls known to) become upstreams that log in through mcp-remote.

    Raises:
        ConfigError: `text` is not TOML, or its upstreams are written in a way that nothing can be added.
    """
    existing = _upstreams(text, where)
    names = {server_identity(with_values(as_object(upstream))): name for name, upstream in existing.items()}
    known = frozenset(names)
    taken = {OWN_NAME, *existing}
    rows: list[Row] = []
    reached = urls_behind(existing)
    for server in servers:
        if server.own or server.upstream is None:
            rows.append(Row(server, "own" if server.own else "unusable"))
            continue
        if server.upstream.get("url") in reached:
            rows.append(Row(server, "known", reached[server.upstream["url"]]))
            continue
        if mcp_remote and wants_login(server, logins) and server_identity(server.upstream) not in known:
            server = replace(server, upstream=_with_login(server.upstream))
            assert server.upstream is not None  # it was not before
        key = server_identity(server.upstream)
        if key in names:
            rows.append(Row(server, "known" if key in known else "twin", names[key]))
            if key not in known:
                _enable_twin(rows, names[key], server)
            continue
        names[key] = upstream_name(server.name, taken)
        taken.add(names[key])
        rows.append(Row(server, "new", names[key]))
    rows = _without_bridged(rows)
    return ImportPlan(tuple(rows), _with_upstreams(text, rows, where))


def with_keyring(plan: ImportPlan, text: str, where: str) -> tuple[ImportPlan, tuple[PlainSecret, ...]]:
    """Return the plan with references to the keyring in place of plain secrets, and these secrets, to be stored there.

    `text` and `where` are those of `plan_import`.
    """
    found = {row.upstream: tuple(_secrets_of(row)) for row in plan.new}
    rows = tuple(
        replace(row, server=replace(row.server, upstream=with_references(row.server.upstream or {}, secrets)))
        if row.what == "new" and (secrets := found.get(row.upstream))
        else row
        for row in plan.rows
    )
    moved = tuple(secret for secrets in found.values() for secret in secrets)
    return ImportPlan(rows, _with_upstreams(text, rows, where)), moved


def _secrets_of(row: Row) -> Iterator[PlainSecret]:
    if row.upstream is not None and row.server.upstream is not None:
        yield from plain_secrets(row.upstream, row.server.upstream)


def urls_behind(upstreams: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the upstreams that reach a url through mcp-remote, by that url."""
    found = {
        url_behind(as_object(one)): name
        for name, one in upstreams.items()
        if as_object(one).get("enabled") is not False
    }
    return {url: name for url, name in found.items() if url is not None}


def _with_login(upstream: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in upstream.items() if key not in ("url", "transport", "headers")}
    return with_time_to_log_in({**through_mcp_remote(upstream["url"]), **rest})


def _without_bridged(rows: Sequence[Row]) -> list[Row]:
    """Mark servers as twins of a server in another host that reaches their url by mcp-remote."""
    servers = {row.upstream: row.server.upstream for row in rows if row.what in ("new", "known") and row.upstream}
    reached = urls_behind(servers)
    return [
        replace(row, what="twin", upstream=reached[row.server.upstream["url"]])
        if row.what == "new" and row.server.upstream and row.server.upstream.get("url") in reached
        else row
        for row in rows
    ]


def server_identity(upstream: Mapping[str, Any]) -> str:
    """Return what makes two upstreams the same server: program or address, and everything passed to it."""
    return json.dumps({key: upstream.get(key) or empty for key, empty in _IDENTITY.items()}, sort_keys=True)


@dataclass(frozen=True)
class KnownServers:
    """The servers in a mcp-gateway.toml: the identities of all upstreams and of enabled ones, and mcp-remote's urls."""

    identities: frozenset[str]
    enabled: frozenset[str]
    urls: frozenset[str]

    def has(self, server: Server) -> bool:
        """Whether the server is an upstream."""
        return server.upstream is not None and (
            server_identity(server.upstream) in self.identities or self.logs_in_to(server)
        )

    def logs_in_to(self, server: Server) -> bool:
        """Whether an upstream reaches the server's url through mcp-remote."""
        return server.upstream is not None and server.upstream.get("url") in self.urls

    def is_off(self, server: Server) -> bool:
        """Whether the server is an upstream that is not enabled, although the server is enabled in its host."""
        upstream = server.upstream or {}
        on = (upstream.get("enabled") is not False or server.asks) and not self.logs_in_to(server)
        return on and server_identity(upstream) in self.identities - self.enabled


def known_to(text: str, where: str) -> KnownServers:
    """Return the servers in a mcp-gateway.toml.

    Raises:
        ConfigError: it is not TOML.
    """
    upstreams = {name: with_values(as_object(one)) for name, one in _upstreams(text, where).items()}
    on = (one for one in upstreams.values() if one.get("enabled") is not False)
    return KnownServers(
        frozenset(server_identity(one) for one in upstreams.values()),
        frozenset(server_identity(one) for one in on),
        frozenset(urls_behind(upstreams)),
    )


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
        raise ConfigMalformed(
            f"is not TOML: {error}", where=where, remedy="mcp-gateway config check says more"
        ) from None
    if not is_dict(table):
        raise ConfigError("must be a table", where=f"{where}: upstreams")
    return table


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
        remedy = "give each upstream a table of its own, such as [upstreams.name]"
        raise ConfigError("nothing can be added to its upstreams as they are written", where=where, remedy=remedy)
    return whole


def _commented(name: str, server: Server) -> str:
    upstream = server.upstream or {}
    lines = [f"from {server.host}: {server.file}" + (f" (project {server.project})" if server.project else "")]
    comments = "".join(f"# {_one_line(line)}\n" for line in [*lines, *server.remarks])
    return comments + table_text(["upstreams", name], upstream)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
