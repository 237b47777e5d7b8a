"""Translating configuration files of other programs: `mcpServers` (most hosts) and `servers` (VS Code), as JSON.

Their fields differ by host; fields that are not listed here are specific to a host and ignored.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from gateway.config.problems import Location, Problem

_TABLES: tuple[tuple[str, ...], ...] = (("mcpServers",), ("servers",), ("mcp", "servers"))
"""The keys of the servers: in most hosts; in VS Code's mcp.json; in VS Code's settings.json."""

_AS_THEY_ARE = ("command", "args", "env", "cwd", "headers")
_URLS: Mapping[str, str | None] = {"url": None, "serverUrl": None, "httpUrl": "http"}
"""Keys for the address, and the transport that the key itself implies."""

_TRANSPORTS: Mapping[str, str] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
    "remote": "auto",
    "auto": "auto",
}

_NAME_LENGTH = 40


class Translation(NamedTuple):
    """The document in our own schema, problems, and a mapping back to the author's keys."""

    document: dict[str, Any]
    problems: tuple[Problem, ...]
    table: tuple[str, ...]
    names: Mapping[str, str]
    fields: Mapping[tuple[str, str], str]

    def written(self, location: Location) -> Location:
        """Return the location as the author of the file wrote it."""
        if len(location) < 2 or location[0] != "upstreams":
            return location
        upstream, rest = str(location[1]), location[2:]
        if rest:
            rest = (self.fields.get((upstream, str(rest[0])), rest[0]), *rest[1:])
        return (*self.table, self.names.get(upstream, upstream), *rest)


def translate_document(document: Mapping[str, Any]) -> Translation:
    """Translate a foreign document to our own schema; its servers' names are made valid and unique."""
    table = next((path for path in _TABLES if _at(document, path) is not None), None)
    if table is None:
        remedy = "a JSON file is read as other hosts write it; our own settings go into TOML"
        return Translation({}, (Problem((), "has neither mcpServers nor servers", remedy),), (), {}, {})
    servers = _at(document, table)
    if not isinstance(servers, Mapping):
        return Translation({}, (Problem(table, "must be an object of servers"),), table, {}, {})
    upstreams: dict[str, Any] = {}
    names: dict[str, str] = {}
    fields: dict[tuple[str, str], str] = {}
    problems: list[Problem] = []
    for name, server in _items(servers):
        upstream = upstream_name(name, upstreams)
        names[upstream] = name
        if isinstance(server, Mapping):
            upstreams[upstream] = _upstream(upstream, dict(_items(server)), (*table, name), fields, problems)
        else:
            problems.append(Problem((*table, name), "must be an object"))
    return Translation({"upstreams": upstreams}, tuple(problems), table, names, fields)


def upstream_name(text: str, taken: Iterable[str]) -> str:
    """Derive a valid upstream name from `text` that is not in `taken`."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text)
    plain = re.sub(r"[-_]{2,}", "-", plain).strip("-_")[:_NAME_LENGTH].rstrip("-_") or "upstream"
    name, count, used = plain, 2, set(taken)
    while name in used:
        ending = f"-{count}"
        name = plain[: _NAME_LENGTH - len(ending)].rstrip("-_") + ending
        count += 1
    return name


def _at(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = document
    for key in path:
        value = dict(_items(value)).get(key) if isinstance(value, Mapping) else None
    return value


def _items(table: Any) -> Iterable[tuple[str, Any]]:
    return cast("Mapping[str, Any]", table).items()


def _upstream(
    upstream: str,
    server: Mapping[str, Any],
    location: Location,
    fields: dict[tuple[str, str], str],
    problems: list[Problem],
) -> dict[str, Any]:
    """Translate one server; `fields` records which of our keys came from which of theirs."""
    translated = {key: server[key] for key in _AS_THEY_ARE if server.get(key) is not None}
    if isinstance(translated.get("env"), Mapping):
        translated["env"] = {key: _text(value) for key, value in _items(translated["env"]) if value is not None}
    addresses = [key for key in _URLS if server.get(key) is not None]
    for key in addresses[:1]:
        translated["url"] = server[key]
        fields[upstream, "url"] = key
        if (implied := _URLS[key]) is not None:
            translated["transport"] = implied
    if len(addresses) > 1:
        problems.append(Problem((*location, addresses[1]), f"a second address beside {addresses[0]}", "leave one"))
    for key in ("type", "transport"):
        if server.get(key) is not None:
            fields[upstream, "transport"] = key
            transport = _TRANSPORTS.get(str(server[key]).casefold())
            if transport is None:
                problems.append(Problem((*location, key), "must be 'stdio', 'http' or 'sse'"))
            else:
                translated["transport"] = transport
    if server.get("disabled") is True:
        translated["enabled"] = False
    return translated


def _text(value: Any) -> Any:
    """Convert numbers and booleans to text for an environment."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
