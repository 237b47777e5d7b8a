"""Servers in the console: each upstream with everything that is known of it, and what can be done with it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request

from gateway.config.logins import may_take_logins
from gateway.config.mask_toml import masked_configuration
from gateway.config.secrets import all_secrets
from gateway.config.toml_text import table_text
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, as_text
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.core.tools.catalogue.repair import shown_name, unusable
from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.call_rules import CallRules
from gateway.serving.console.config_changes import configuration_file
from gateway.serving.console.console import Console
from gateway.serving.console.submitted import submitted
from gateway.serving.console.views import View, number_in
from gateway.telemetry.sanitize import neutral
from gateway.upstream.connection.states import UpstreamState, what_to_do
from gateway.upstream.pin_files import Change, PinsDamaged

if TYPE_CHECKING:
    from gateway.upstream import Upstream

PAGE = 100
_LONGEST_DESCRIPTION = 600
_LONGEST_QUERY = 200
_LOG_READ = 3_000
_LOG_SHOWN = 60
_SERVERS = 60


def show_server(upstream: "Upstream", report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a card says of an upstream: its part of the status, with a `remedy` and what can be done.

    `report` is that part (`mcp-gateway status --json`).
    """
    state, settings = upstream.state, upstream.settings
    ready = state in (UpstreamState.READY, UpstreamState.SLEEPING)
    return {
        **report,
        "cause": upstream.cause if upstream.failure is None else upstream.failure.message,
        "remedy": None if ready else what_to_do(upstream.name, state, upstream.failure),
        "is_pending": state.is_pending,
        "is_enabled": settings.enabled,
        "server": as_text(as_object(upstream.server_info).get("name")),
        "server_version": as_text(as_object(upstream.server_info).get("version")),
        "may_log_in": settings.enabled and (upstream.is_personal or may_take_logins(settings)),
    }


def known_upstream(console: Console, request: Request) -> "Upstream":
    """Return the upstream in the path of a request. Raises InvalidRequest if there is none."""
    name = request.path_params["name"]
    upstream = console.gateway.upstreams.get(name)
    if upstream is None:
        raise InvalidRequest(f"there is no server {name!r}", remedy="it may have been removed or renamed")
    return upstream


async def _servers(console: Console, request: Request) -> Mapping[str, Any]:
    """Return all `servers`, where the configuration is (`config`), and how many calls wait for an approval."""
    report = await console.report()
    upstreams, start = console.gateway.upstreams, number_in(request, "from") or 0
    shown = report["upstreams"][start : start + _SERVERS]
    more = start + _SERVERS < len(report["upstreams"])
    return {
        "servers": [show_server(upstreams[one["name"]], one) for one in shown if one["name"] in upstreams],
        "count": len(report["upstreams"]),
        "from": start,
        "next": start + _SERVERS if more else None,
        "config": report["config"],
        "configuration": report["configuration"],
        "approvals": report["approvals"],
    }


async def _state(console: Console, request: Request) -> dict[str, Any]:
    """Return one upstream as its card shows it."""
    upstream = known_upstream(console, request)
    report = await console.report()
    mine = next(one for one in report["upstreams"] if one["name"] == upstream.name)
    return show_server(upstream, mine)


async def _server(console: Console, request: Request) -> Mapping[str, Any]:
    """Return one upstream in full: with its `tools`, what is `changed` since it was pinned, its `settings` as TOML."""
    upstream = known_upstream(console, request)
    changed, problem = await to_thread.run_sync(_changed, console, upstream)
    return {
        **await _state(console, request),
        "instructions": upstream.instructions,
        "listed": tools_page(upstream, request, _withheld(console, upstream, changed)),
        "pins": {
            "mode": console.gateway.pins.mode_of(upstream.settings),
            "changes": [change._asdict() for change in changed],
            "mark": _mark(changed),
            "problem": problem,
        },
        "settings": await to_thread.run_sync(_settings, console, upstream),
        "config": None if console.operation.config is None else str(console.operation.config),
    }


def tools_page(upstream: "Upstream", request: Request, withheld: Mapping[str, str]) -> dict[str, Any]:
    """Return up to 100 `tools` of an upstream whose name contains the query's `text`, `from` a number on.

    Each has its own `name`, `description` and hints; `is_chosen` by the settings; and `withheld`: why it is not offered
    although it is (`withheld` by rules and pins, by name).
    """
    text, start = request.query_params.get("text", "")[:_LONGEST_QUERY], number_in(request, "from") or 0
    tools = [(place, as_object(tool)) for place, tool in enumerate(upstream.tools(), 1)]
    found = [(place, tool) for place, tool in tools if text.casefold() in shown_name(tool, place).casefold()]
    chosen = ToolChoice(upstream.settings.tools.include, upstream.settings.tools.exclude)
    rows = [_tool(tool, place, chosen, withheld) for place, tool in found[start : start + PAGE]]
    return {
        "tools": rows,
        "count": len(tools),
        "fitting": len(found),
        "offered": sum(chosen.has(shown_name(tool, place)) for place, tool in tools),
        "text": text,
        "from": start,
        "next": start + PAGE if start + PAGE < len(found) else None,
    }


def _tool(tool: Mapping[str, Any], place: int, chosen: ToolChoice, withheld: Mapping[str, str]) -> dict[str, Any]:
    name, hints = tool.get("name"), as_object(tool.get("annotations"))
    is_named = isinstance(name, str) and bool(name.strip())
    description = as_text(tool.get("description")) or ""
    why = unusable(tool)
    return {
        "name": name if is_named else shown_name(tool, place),
        "may_be_chosen": is_named and name == neutral(str(name)),
        "title": as_text(tool.get("title")) or as_text(hints.get("title")),
        "description": description[:_LONGEST_DESCRIPTION] + ("…" if len(description) > _LONGEST_DESCRIPTION else ""),
        "read_only": hints.get("readOnlyHint") is True,
        "destructive": hints.get("readOnlyHint") is not True and hints.get("destructiveHint") is not False,
        "is_chosen": is_named and chosen.has(str(name)),
        "withheld": why if why is not None else withheld.get(str(name)),
    }


def _withheld(console: Console, upstream: "Upstream", changed: Sequence[Change]) -> dict[str, str]:
    """Return why rules and pins withhold tools of an upstream from the operator's own hosts, by the tools' names."""
    gateway = console.gateway
    caller = Caller(principal=console.operation.principal)
    rules = CallRules(gateway.upstreams, gateway.settings)
    denied = {one.tool: one.why for one in rules.look(caller, {upstream.name: upstream.tools()})()}
    if gateway.pins.mode_of(upstream.settings) != "hold":
        return denied
    held = [change for change in changed if not change.is_wording]
    words = {
        change.tool: f"since it was pinned: {'; '.join(change.words)}" for change in held if change.tool is not None
    }
    return {**denied, **words}


def _changed(console: Console, upstream: "Upstream") -> tuple[Sequence[Change], str | None]:
    try:
        return console.gateway.pins.changes(upstream.name, upstream.settings), None
    except PinsDamaged as error:
        return (), str(error)


def _mark(changes: Sequence[Change]) -> str:
    return hashlib.sha256(json.dumps(changes).encode()).hexdigest()


def _settings(console: Console, upstream: "Upstream") -> dict[str, Any]:
    """Return the settings of an upstream as TOML: as they are in the file, or else as they are in force."""
    known = tuple(all_secrets(console.gateway.settings))
    with suppress(GatewayError, ValueError):
        written = configuration_file(console).text.upstreams().get(upstream.name)
        if written is not None:
            text = table_text(["upstreams", upstream.name], written)
            return {"text": masked_configuration(text, known), "is_written": True}
    text = table_text(["upstreams", upstream.name], _in_force(upstream.settings))
    return {"text": masked_configuration(text, known), "is_written": False}


def _in_force(settings: UpstreamSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)


async def _log(console: Console, request: Request) -> Mapping[str, Any]:
    """Return the newest `lines` of the gateway's log about one upstream."""
    name = known_upstream(console, request).name
    lines = await to_thread.run_sync(console.operation.log_lines, _LOG_READ)
    about = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    return {"name": name, "lines": [line for line in lines if about.search(line)][-_LOG_SHOWN:]}


async def _restart(console: Console, request: Request) -> Mapping[str, Any]:
    """Restart an upstream: running calls may finish, new ones wait for the new connection."""
    upstream = known_upstream(console, request)
    if not upstream.settings.enabled:
        raise InvalidRequest(f"{upstream.name} is disabled", remedy="enable it first")
    console.gateway.upstreams.restart(upstream.name)
    return await _state(console, request)


async def _log_in(console: Console, request: Request) -> Mapping[str, Any]:
    """Return the `url` of the page at which the operator's login to an upstream begins."""
    upstream = known_upstream(console, request)
    offer = await console.gateway.login_desk.offer(upstream.name, console.operation.principal)
    if offer is None:
        remedy = f"`mcp-gateway login {upstream.name}` logs in from a terminal"
        raise InvalidRequest("no browser could come back to this gateway", remedy=remedy)
    return {"name": upstream.name, "principal": offer.principal, "url": offer.url}


async def _log_out(console: Console, request: Request) -> Mapping[str, Any]:
    """Revoke and forget the login of a `principal` (default: the operator) to an upstream."""
    upstream, form = known_upstream(console, request), await submitted(request)
    principal = form.line("principal") or console.operation.principal
    await console.gateway.log_out(upstream.name, principal)
    return {"name": upstream.name, "principal": principal}


async def _approve_pins(console: Console, request: Request) -> Mapping[str, Any]:
    """Pin the tools of an upstream as they are now, if that is still what was seen (`mark`)."""
    upstream, form = known_upstream(console, request), await submitted(request)
    changed, problem = await to_thread.run_sync(_changed, console, upstream)
    if problem is not None:
        raise InvalidRequest(problem, remedy=f"mcp-gateway pins approve {upstream.name}")
    if not changed or form.line("mark") != _mark(changed):
        raise InvalidRequest("its tools have changed again, so nothing is approved", remedy="look at them once more")
    await to_thread.run_sync(console.gateway.pins.approve, upstream.name, upstream.settings, changed)
    console.gateway.router.upstream_changed(upstream.name, "tools")
    return {"name": upstream.name, "approved": len(changed)}


VIEWS = (
    View("/servers", "servers.html", _servers, "servers", "Servers"),
    View("/servers/{name}", "server.html", _server, "servers"),
    View("/servers/{name}/state", "server_state.html", _state, "servers"),
    View("/servers/{name}/log", "server_log.html", _log, "servers"),
    View("/servers/{name}/restart", "server_state.html", _restart, "servers", method="POST"),
    View("/servers/{name}/login", "login_begun.html", _log_in, "servers", method="POST"),
    View("/servers/{name}/logout", "logged_out.html", _log_out, "servers", method="POST"),
    View("/servers/{name}/pins", "pins_approved.html", _approve_pins, "servers", method="POST"),
)
