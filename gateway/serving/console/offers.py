"""What a host is offered, for the console: tools by their upstreams, prompts, resources, and forms for their arguments.

A chosen profile decides, as it does for the host that it describes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gateway.config.builtin_profiles import load_profiles
from gateway.core.model.json_values import as_object, objects_in
from gateway.core.model.wire import WireObject
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.catalogue import OWN, Catalogue, Route
from gateway.errors import InvalidRequest, UnknownPrompt, UnknownTool
from gateway.serving.console.console import Console
from gateway.serving.console.parts import json_part
from gateway.serving.console.schema_form import ABSENT, Field, form_of
from gateway.serving.console.uri_template import variables

PAGE = 100
_LISTED = 200
_LONGEST = 300
_HINTS = (  # MCP 2025-11-25, ToolAnnotations; hints are the server's own words
    ("readOnlyHint", True, "reads only", "good"),
    ("destructiveHint", True, "may destroy", "bad"),
    ("idempotentHint", True, "safe to repeat", "kept"),
    ("openWorldHint", True, "reaches outside", "poor"),
)


def profiles_of(console: Console, chosen: str | None) -> dict[str, Any]:
    """Return the profiles to choose from, `profile` (that chosen, or empty), and `in_force`, which then counts.

    `default` is the profile that counts if none is chosen, and `default_title` its title.

    `toolsets` are the names of those to choose in place of a profile, as `auto/NAME`.

    Raises:
        ProfileError: the chosen one does not exist.
        UnknownToolset: the chosen toolset does not exist.
    """
    router = console.gateway.router
    titles = load_profiles(console.gateway.settings)
    names = sorted(router.profile_names)
    default = router.profile_of(console.operator(None)).name
    return {
        "profile": chosen or "",
        "in_force": router.profile_of(console.operator(chosen)).name,
        "default": default,
        "default_title": (titles[default].title if default in titles else None) or default,
        "profiles": [
            {"name": name, "title": (titles[name].title if name in titles else None) or name} for name in names
        ],
        "toolsets": list(console.gateway.settings.toolsets),
    }


async def prepare_tools(console: Console, profile: str | None) -> None:
    """Have the tools that a profile is offered at hand, as its host's own request for them does: in a thread if many.

    Waits for servers that are starting, as long as that host would. Raises ProfileError.
    """
    await console.gateway.router.respond("tools/list", {}, console.operator(profile))


def list_tools(console: Console, profile: str | None, text: str, page: int) -> dict[str, Any]:
    """Return up to 100 tools whose name, title or description has `text`, grouped by upstream.

    `count` is the number of those that fit, `offered` that of all; `pages` of them, and `page`, from 1.
    """
    catalogue = console.gateway.router.catalogue(console.operator(profile))
    wanted = text.casefold()
    fitting = [tool for tool in catalogue.tools if _fits(tool, wanted)]
    fitting.sort(key=lambda tool: catalogue.routes[tool["name"]].upstream == OWN)
    pages = max(1, -(-len(fitting) // PAGE))
    page = min(max(1, page), pages)
    groups: dict[str, list[dict[str, Any]]] = {}
    for tool in fitting[(page - 1) * PAGE : page * PAGE]:
        route = catalogue.routes[tool["name"]]
        groups.setdefault(route.upstream, []).append(_row(tool, route))
    return {
        "groups": [{"upstream": name, "is_own": name == OWN, "tools": tools} for name, tools in groups.items()],
        "count": len(fitting),
        "offered": len(catalogue.tools),
        "page": page,
        "pages": pages,
    }


def _fits(item: WireObject, wanted: str) -> bool:
    told = (item.get(key) for key in ("name", "title", "description", "uri", "uriTemplate"))
    return not wanted or any(isinstance(one, str) and wanted in one.casefold() for one in told)


def _row(tool: WireObject, route: Route) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "path": address(tool["name"]),
        "title": _title(tool),
        "description": _short(tool.get("description")),
        "hints": [*_page_hints(route), *_hints(tool)],
    }


def address(name: str) -> str:
    """Return a name as a part of an address."""
    return quote(name, safe="", errors="replace")


def _title(item: WireObject) -> str | None:
    title = item.get("title") or as_object(item.get("annotations")).get("title")
    return title if isinstance(title, str) and title != item.get("name") else None


def _short(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _hints(tool: WireObject) -> list[dict[str, str]]:
    said = as_object(tool.get("annotations"))
    return [{"words": words, "tone": tone} for key, value, words, tone in _HINTS if said.get(key) is value]


def _page_hints(route: Route) -> list[dict[str, str]]:
    if route.audience == "app":
        return [{"words": "only for pages", "tone": "poor"}]
    return [{"words": "has a page", "tone": "kept"}] if route.shows_page else []


def tool_of(console: Console, name: str, profile: str | None) -> WireObject:
    """Return a tool as it is offered. Raises UnknownTool."""
    catalogue = console.gateway.router.catalogue(console.operator(profile))
    listed = _listed_name(catalogue, name)
    found = next((tool for tool in catalogue.tools if tool["name"] == listed), None)
    if found is not None:
        return found
    known = console.gateway.router.catalogue(console.operator(None)).routes.get(name)
    if known is not None and known.only_app:
        raise UnknownTool(
            "only pages call this tool, and a host of this profile shows none",
            remedy="choose the default, or the profile of a host that shows pages",
        )
    raise UnknownTool(
        "this tool is not offered, or not now",
        remedy="its server may have ended, or another profile may name it so",
    )


def _listed_name(catalogue: Catalogue, name: str) -> str:
    """Return the name by which a tool is listed: for some hosts, those for pages have the name that pages know."""
    route = catalogue.routes.get(name)
    if route is None or not route.only_app or route.tool not in catalogue.listed_for_pages:
        return name
    own = catalogue.routes[route.tool]
    return route.tool if own.upstream == route.upstream else name


def offered_name(console: Console, upstream: str, tool: str, profile: str | None = None) -> str | None:
    """Return the name under which the console is offered a tool, by the upstream's own; None if it is not."""
    routes = console.gateway.router.catalogue(console.operator(profile)).routes
    return next((name for name, route in routes.items() if (route.upstream, route.tool) == (upstream, tool)), None)


def show_tool(console: Console, name: str, profile: str | None, value: Any = ABSENT) -> dict[str, Any]:
    """Return a tool with the `form` for its arguments, which has `value` if given, and its schemas.

    Raises:
        UnknownTool: there is no such tool.
    """
    tool = tool_of(console, name, profile)
    route = console.gateway.router.catalogue(console.operator(profile)).routes[name]
    output = tool.get("outputSchema")
    return {
        **_row(tool, route),
        "description": tool.get("description") or "",
        "upstream": route.upstream,
        "upstream_tool": route.tool,
        "is_own": route.upstream == OWN,
        "form": tool_form(console, name, profile, value),
        "schema": json_part(tool["inputSchema"]),
        "output_schema": json_part(output) if output else None,
    }


def tool_form(console: Console, name: str, profile: str | None, value: Any = ABSENT) -> Field:
    """Return the form for a tool's arguments. Raises UnknownTool."""
    route = console.gateway.router.catalogue(console.operator(profile)).routes.get(name)
    parameters: Iterable[Parameter] = () if route is None else route.parameters
    return form_of(tool_of(console, name, profile)["inputSchema"], value, content=parameters)


def argument_schema(console: Console, name: str, profile: str | None) -> WireObject:
    """Return the schema that a tool's arguments have to fit: its own, if what is offered accepts more."""
    catalogue = console.gateway.router.catalogue(console.operator(profile))
    return catalogue.originals.get(name) or tool_of(console, name, profile)["inputSchema"]


async def list_others(console: Console, profile: str | None, text: str) -> dict[str, Any]:
    """Return the prompts, resources and templates of resources that are offered and have `text`, up to 200 each."""
    wanted, caller = text.casefold(), console.operator(profile)
    router = console.gateway.router
    found: dict[str, Any] = {}
    for kind, method, key in (
        ("prompts", "prompts/list", "prompts"),
        ("resources", "resources/list", "resources"),
        ("templates", "resources/templates/list", "resourceTemplates"),
    ):
        listed = (await router.respond(method, {}, caller)).get(key)
        fitting = [_other_row(item) for item in objects_in(listed) if _fits(item, wanted)]
        found[kind], found[f"{kind}_count"] = fitting[:_LISTED], len(fitting)
    return found


def _other_row(item: WireObject) -> dict[str, Any]:
    uri = item.get("uri") or item.get("uriTemplate") or ""
    return {
        "name": str(item.get("name") or uri),
        "path": address(str(item.get("name") or "")),
        "title": _title(item),
        "description": _short(item.get("description")),
        "uri": uri,
        "address": address(str(uri)),
        "media_type": item.get("mimeType"),
    }


async def show_prompt(console: Console, name: str, profile: str | None) -> dict[str, Any]:
    """Return a prompt with the form for its arguments. Raises UnknownPrompt."""
    listed = (await console.gateway.router.respond("prompts/list", {}, console.operator(profile))).get("prompts")
    found = next((prompt for prompt in objects_in(listed) if prompt.get("name") == name), None)
    if found is None:
        raise UnknownPrompt("this prompt is not offered, or not now", remedy="its server may have ended")
    arguments = objects_in(found.get("arguments"))
    return {
        **_other_row(found),
        "description": found.get("description") or "",
        "form": form_of(_texts_schema(arguments)),
    }


def _texts_schema(arguments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of a prompt's arguments, which are texts."""
    named = [one for one in arguments if isinstance(one.get("name"), str)]
    return {
        "type": "object",
        "properties": {
            one["name"]: {"type": "string", "title": one.get("title"), "description": one.get("description")}
            for one in named
        },
        "required": [one["name"] for one in named if one.get("required") is True],
        "additionalProperties": False,
    }


async def show_resource(console: Console, uri: str, template: str, profile: str | None) -> dict[str, Any]:
    """Return what is listed of a resource, or of a template with the form for its variables.

    A resource need not be listed: servers have more than they list.

    Raises:
        InvalidRequest: neither is given.
    """
    if not uri and not template:
        raise InvalidRequest("which resource?", remedy="give its uri, or the template of one")
    method, key, member, wanted = (
        ("resources/list", "resources", "uri", uri)
        if uri
        else ("resources/templates/list", "resourceTemplates", "uriTemplate", template)
    )
    listed = (await console.gateway.router.respond(method, {}, console.operator(profile))).get(key)
    found = next((one for one in objects_in(listed) if one.get(member) == wanted), {member: wanted})
    names = [] if uri else variables(template)
    form = form_of(_texts_schema([{"name": name, "required": True} for name in names])) if names else None
    return {**_other_row(found), "template": "" if uri else template, "form": form}
