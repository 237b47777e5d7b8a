"""The pages of MCP Apps, drawn beside the calls that they belong to. The console is their host.

A page is hostile: it is drawn in a sandboxed frame, from an address outside of the console's own path, with nothing of
the browser's session. It reaches the gateway by what `static/apps.js` passes on, and there only its own upstream.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.content.store import URI_SCHEME
from gateway.core import apps
from gateway.core.model.base64_text import decoded
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_list, as_object
from gateway.core.wording import plain
from gateway.errors import InvalidRequest, TooManyCalls
from gateway.serving.console.app_policy import page_policy, usable_domains
from gateway.serving.console.call_arguments import given_arguments
from gateway.serving.console.calls import kept_call, page_uri
from gateway.serving.console.console import Console
from gateway.serving.console.drawn_pages import AT_ONCE, PAGES_PATH, DrawnPage
from gateway.serving.console.responses import as_json
from gateway.serving.console.submitted import submitted
from gateway.serving.console.views import View

_PROFILE = "default"


@dataclass(frozen=True)
class _App:
    """The page of a call: its URI as the upstream knows it, the upstream, and the caller that the page acts as."""

    uri: str
    upstream: str
    caller: Caller


async def _app(console: Console, request: Request) -> _App:
    call = await console.call(request.path_params["number"])
    uri, upstream = page_uri(console, call), call.record.upstream
    if uri is None or console.gateway.upstreams.get(upstream) is None:
        raise InvalidRequest(
            "this call has no page to draw",
            remedy="its tool declares none, its result is no longer kept, or its server is gone",
        )
    # The gateway's own tools and all other upstreams do not exist for it.
    grant = Grant(upstreams=(upstream,))
    return _App(uri, upstream, replace(console.operator(None), profile=_PROFILE, grant=grant))


async def _draw(console: Console, request: Request) -> Mapping[str, Any]:
    """The page of a call, at an address for its frame.

    `reach`: the domains that it asks for, by purpose; it has them if `is_online`. `permissions` are never given.
    """
    one = await _app(console, request)
    # A link could lead here as well, and a page must not come online by one: only the console's own button asks so.
    is_asked = "hx-request" in request.headers or "/api/" in request.scope["path"]
    is_online = is_asked and "online" in request.query_params
    params = {"uri": apps.outward(one.upstream, one.uri)}
    read = as_list((await console.gateway.router.respond("resources/read", params, one.caller)).get("contents"))
    contents = as_object(next(iter(read), None))
    facts, html = apps.page_facts(contents), _html(contents)
    if facts.faults or html is None:
        raise InvalidRequest(f"{plain(one.uri, 200)} cannot be drawn: {'; '.join(facts.faults) or 'it is not text'}")
    reach = usable_domains(facts.domains)
    name = console.pages.put(DrawnPage(html, page_policy(reach if is_online else {})))
    return {
        "number": request.path_params["number"],
        "uri": one.uri,
        "upstream": one.upstream,
        "address": f"{request.scope.get('root_path', '').rpartition('/')[0]}{PAGES_PATH}/{name}",
        "bytes": len(html),
        "reach": reach,
        "is_online": is_online,
        "permissions": list(facts.permissions[:20]),
        "has_border": as_object(as_object(contents.get("_meta")).get("ui")).get("prefersBorder") is not False,
    }


def _html(contents: Mapping[str, Any]) -> bytes | None:
    text, blob = contents.get("text"), contents.get("blob")
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    try:
        return decoded(blob) if isinstance(blob, str) else None
    except ValueError:
        return None


async def _given(console: Console, request: Request) -> Response:
    """What the page is told first: the arguments of its call, secrets masked, and the upstream's own result."""
    call = await kept_call(console, request)
    if call is None:
        return as_json({"error": "the result of this call is not kept"}, 404)
    return as_json(
        {"arguments": given_arguments(console.gateway, console.operator(None), call) or {}, "result": call.result}
    )


async def _call(console: Console, request: Request) -> Mapping[str, Any]:
    """A tool of the page's own upstream, called by the upstream's name for it, if pages may."""
    one, sent = await _app(console, request), (await submitted(request)).data or {}
    name = sent.get("name")
    # A page may be drawn long after its tools were listed last.
    await console.gateway.router.respond("tools/list", {}, one.caller)
    routes = console.gateway.router.catalogue(one.caller).own_names.get(name, ()) if isinstance(name, str) else ()
    if not any(route.upstream == one.upstream for route in routes):
        raise InvalidRequest(f"{plain(str(name), 100)!r} is not a tool of {one.upstream} that its pages may call")
    return await _asked(console, "tools/call", {"name": name, "arguments": sent.get("arguments")}, one)


async def _read(console: Console, request: Request) -> Mapping[str, Any]:
    """A resource of the page's own upstream."""
    one, sent = await _app(console, request), (await submitted(request)).data or {}
    uri = sent.get("uri")
    if not isinstance(uri, str) or uri.startswith(URI_SCHEME):
        raise InvalidRequest("this is not the uri of a resource that pages may read")
    return await _asked(console, "resources/read", {"uri": uri}, one)


async def _asked(console: Console, method: str, params: Mapping[str, Any], one: _App) -> Mapping[str, Any]:
    try:
        console.pages.calling.acquire_nowait()
    except anyio.WouldBlock:
        raise TooManyCalls(f"pages are waiting for {AT_ONCE} answers already", remedy="wait for one") from None
    try:
        return {"result": await console.gateway.router.respond(method, params, one.caller)}
    finally:
        console.pages.calling.release()


def app_routes(console: Console) -> list[Route]:
    """Return the route of what pages are told first."""

    async def given(request: Request) -> Response:
        return await _given(console, request)

    return [Route("/api/calls/{number:number}/page/given", given)]


VIEWS = (
    View("/calls/{number:number}/page", "app.html", _draw, "calls"),
    View("/calls/{number:number}/page/call", "app_answer.html", _call, "calls", method="POST"),
    View("/calls/{number:number}/page/read", "app_answer.html", _read, "calls", method="POST"),
)
