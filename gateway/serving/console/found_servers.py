"""The servers of the hosts on this machine, which the gateway can take over: as `mcp-gateway import` finds them."""

from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread
from starlette.requests import Request

from gateway.errors import ConfigError, InvalidRequest
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.discover import DiscoveredServers, discover
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.import_servers import ImportPlan, Row, plan_import
from gateway.hosts.config_files.keyring_secrets import plain_secrets
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.upstream_edits import ConfigurationText
from gateway.serving.console.console import Console
from gateway.serving.console.submitted import Submitted
from gateway.serving.console.views import View
from gateway.system.listening_ports import listening_ports


def with_found_servers(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    """Return the configuration with the servers of hosts that a form chooses, by what they are called behind it.

    Raises:
        ConfigError: nothing can be added to the text.
        InvalidRequest: none is chosen, or one is no longer there.
    """
    if text.is_json:
        raise ConfigError("is a JSON file of another program", where=str(text.file), remedy="start with a .toml file")
    discovered, plan = _planned(text.text, str(text.file))
    chosen = frozenset(form.all("server"))
    if not chosen:
        raise InvalidRequest("no server is chosen", remedy="choose at least one")
    if gone := chosen - {str(row.upstream) for row in plan.new}:
        raise InvalidRequest(f"{min(gone)!r} is not among the servers of the hosts", remedy="look at them again")
    wanted = [
        server
        for server, row in zip(discovered.servers, plan.rows, strict=True)
        if row.what in ("new", "twin") and row.upstream in chosen
    ]
    return ConfigurationText(plan_import(wanted, text.text, str(text.file)).text, text.file)


def _planned(text: str, where: str) -> tuple[DiscoveredServers, ImportPlan]:
    discovered = discover((), Machine.here(listening_ports()))
    return discovered, plan_import(discovered.servers, text, where)


async def _found(console: Console, _: Request) -> Mapping[str, Any]:
    """Return the servers of the hosts: `servers`, the `files` that were read, and `problems` with them.

    Each has `name`, `host` and its `title`, `file`, `project`, `result` (as `mcp-gateway import --json` has it),
    `upstream` (its name behind the gateway), `starts`, `is_enabled`, `remarks`, `obstacle` and `has_plain_secrets`.
    """
    return await to_thread.run_sync(_looked, console)


def _looked(console: Console) -> Mapping[str, Any]:
    config = console.operation.config
    text = "" if config is None or config.suffix.lower() == ".json" else ConfigurationFile.read(config).text.text
    discovered, plan = _planned(text, str(config))
    return {
        "servers": [_row(row) for row in plan.rows],
        "files": [str(file) for file in discovered.files],
        "problems": discovered.problems,
        "config": None if config is None else str(config),
        "has_upstreams": bool(console.gateway.upstreams),
    }


def _row(row: Row) -> dict[str, Any]:
    upstream = row.server.upstream or {}
    host = HOSTS.get(row.server.host)
    return {
        "name": row.server.name,
        "host": row.server.host,
        "title": host.title if host is not None else row.server.host,
        "file": row.server.file,
        "project": row.server.project,
        "result": row.what,
        "upstream": row.upstream,
        "starts": _starts(upstream),
        "is_enabled": upstream.get("enabled") is not False,
        "remarks": list(row.server.remarks) if row.what == "new" else [],
        "obstacle": row.server.obstacle,
        "has_plain_secrets": any(plain_secrets(row.server.name, upstream)),
    }


def _starts(upstream: Mapping[str, Any]) -> str | None:
    """Name the program or the address's host, but no arguments, which may contain secrets."""
    if "url" in upstream:
        return str(upstream["url"]).partition("?")[0].rpartition("@")[2]
    return str(upstream["command"]) if "command" in upstream else None


VIEWS: Sequence[View] = (View("/found-servers", "found_servers.html", _found, "servers"),)
