"""Toolsets in the console: what each has of every server and what it hides, who uses it, and what a changed one has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request

from gateway.config.schema import Settings
from gateway.core.model.json_values import as_object
from gateway.core.model.toolset_scope import ToolsetScope
from gateway.core.tokens import list_tokens
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.core.tools.catalogue.repair import shown_name
from gateway.serving.console.console import Console
from gateway.serving.console.views import View

if TYPE_CHECKING:
    from gateway.upstream import Upstream

_NAMED = 200
"""Tools of one server that are named on each side."""
_COUNTED = 5_000
"""Tools of one toolset above which their tokens are not counted."""


async def show_toolsets(console: Console) -> dict[str, Any]:
    """Return the `toolsets`, each with its `servers` and its users, and how many `tools` there are without any.

    `outside` are the servers of which a toolset has nothing, and `unclear` the tools whose names are not as shown.
    `config` is the file in which they are written, and `upstreams` are the names of all servers.
    """
    report = await console.report()
    return await to_thread.run_sync(_toolsets, console, report["hosts"])


def toolset_effect(console: Console, scope: ToolsetScope) -> dict[str, Any]:
    """Return what a toolset would have: `tools` of all (`of`), their `tokens`, and the `servers` that they are of.

    Blocks.
    """
    upstreams = list(console.gateway.upstreams.values())
    offered = {upstream.name: _offered(upstream) for upstream in upstreams}
    has = _toolset(scope, upstreams, offered)
    servers = [server["name"] for server in has["servers"]]
    return {"tools": has["tools"], "of": sum(map(len, offered.values())), "tokens": has["tokens"], "servers": servers}


def _toolsets(console: Console, hosts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    settings, upstreams = console.gateway.settings, list(console.gateway.upstreams.values())
    offered = {upstream.name: _offered(upstream) for upstream in upstreams}
    return {
        "toolsets": [
            {
                **_toolset(toolset.scope(name), upstreams, offered),
                "users": _users(settings, name),
                "hosts": [str(host["name"] or "") for host in hosts if name in host["toolsets"]],
            }
            for name, toolset in settings.toolsets.items()
        ],
        "tools": sum(map(len, offered.values())),
        "config": None if console.operation.config is None else str(console.operation.config),
        "upstreams": list(offered),
    }


def _offered(upstream: "Upstream") -> dict[str, Mapping[str, Any]]:
    """Return the tools of an upstream that its settings choose, by its own names for them."""
    choice = ToolChoice(upstream.settings.tools.include, upstream.settings.tools.exclude)
    named = ((shown_name(tool, place), as_object(tool)) for place, tool in enumerate(upstream.tools(), 1))
    return {name: tool for name, tool in named if choice.has(name)}


def _toolset(
    scope: ToolsetScope, upstreams: Iterable["Upstream"], offered: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    servers, outside, declared = list[dict[str, Any]](), list[dict[str, Any]](), list[Mapping[str, Any]]()
    for upstream in upstreams:
        tools = offered[upstream.name]
        has = [name for name in tools if scope.has_tool(upstream.name, name)]
        hides = [name for name in tools if not scope.has_tool(upstream.name, name)]
        declared += [tools[name] for name in has]
        server = {
            "name": upstream.name,
            "has": {"count": len(has), "names": has[:_NAMED]},
            "hides": {"count": len(hides), "names": hides[:_NAMED]},
            "unclear": [name for name, tool in tools.items() if tool.get("name") != name][:_NAMED],
        }
        if not scope.has(upstream.name):
            outside.append(server)
            continue
        servers.append(
            {
                **server,
                "is_whole": scope.has_whole(upstream.name),
                "prompts": _part(upstream.prompts(), "name", lambda one, of=upstream.name: scope.has_prompt(of, one)),
                "resources": _part(
                    upstream.resources(), "uri", lambda one, of=upstream.name: scope.has_resource(of, one)
                ),
            }
        )
    return {
        "name": scope.name,
        "patterns": {key: list(value) for key, value in scope._asdict().items() if key != "name" and value},
        "servers": servers,
        "outside": outside,
        "tools": len(declared),
        "tokens": list_tokens(declared) if len(declared) <= _COUNTED else None,
    }


def _part(items: Iterable[Any], key: str, has: Callable[[str], bool]) -> dict[str, int]:
    """Return how many of an upstream's prompts or resources are in a toolset, and how many there are."""
    names = [name for item in items if isinstance(name := as_object(item).get(key), str)]
    return {"has": sum(map(has, names)), "of": len(names)}


def _users(settings: Settings, name: str) -> list[dict[str, str]]:
    """Return the tokens, people and issuers that the configuration gives a toolset to."""
    access = settings.access
    tables = (("token", access.tokens), ("person", access.people), ("issuer", access.issuers))
    return [
        {"kind": kind, "name": user} for kind, table in tables for user, one in table.items() if one.toolset == name
    ]


async def _view(console: Console, _: Request) -> Mapping[str, Any]:
    return await show_toolsets(console)


VIEWS = (View("/toolsets", "toolsets.html", _view, "hosts"),)
