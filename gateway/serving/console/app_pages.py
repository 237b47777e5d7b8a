"""The pages of MCP Apps, drawn beside the calls that they belong to. The console is their host.

A page is hostile: it is drawn in a sandboxed frame, from an address outside of the console's own path, with nothing of
the browser's session. It reaches the gateway by what `static/apps.js` passes on, and there only its own upstream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.config.builtin_profiles import load_profiles
from gateway.content.store import URI_SCHEME
from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.base64_text import decoded
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_list, as_object, as_text
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import let_by
from gateway.errors import InvalidRequest, TooManyCalls
from gateway.serving.console.app_policy import frame_features, page_policy, usable_domains, usable_permissions
from gateway.serving.console.call_arguments import given_arguments
from gateway.serving.console.calls import embedded_pages, kept_call, page_uri
from gateway.serving.console.console import Console
from gateway.serving.console.drawn_pages import AT_ONCE, PAGES_PATH, DrawnPage
from gateway.serving.console.responses import as_json
from gateway.serving.console.submitted import submitted
from gateway.serving.console.tries import Try
from gateway.serving.console.views import View
from gateway.serving.console.watch_policy import watching

_PROFILE = "default"
_WAITING_SECONDS = 20.0
_LEAVES = ("online", "code", "grants")
"""What a page may do by leave: reach its domains, run code that it makes or brings, use its permissions."""


@dataclass(frozen=True)
class _App:
    """A page of a call: its URI as hosts know it, the upstream, and the caller that the page acts as.

    `at`: where it is below the address of the call. `embedded`: the resource of the result that it is; None for the
    page of the tool, which has to be read.
    """

    uri: str
    upstream: str
    caller: Caller
    at: str
    embedded: Mapping[str, Any] | None


async def _app(console: Console, request: Request) -> _App:
    call, block = await console.call(request.path_params["number"]), request.path_params.get("block")
    embedded = None if block is None else embedded_pages(call.result).get(block)
    uri = page_uri(console, call) if block is None else as_text(as_object(embedded).get("uri"))
    upstream = call.record.upstream
    if uri is not None and block is not None:
        uri = apps.outward(upstream, uri)
    if uri is None or console.gateway.upstreams.get(upstream) is None:
        raise InvalidRequest(
            "this call has no page to draw",
            remedy="its tool declares none, its result is no longer kept, or its server is gone",
        )
    # The gateway's own tools and all other upstreams do not exist for it.
    caller = replace(console.operator(None), profile=_PROFILE, grant=Grant(upstreams=(upstream,)))
    return _App(uri, upstream, caller, "page" if block is None else f"embedded/{block}", embedded)


async def _draw(console: Console, request: Request) -> Mapping[str, Any]:
    """Return where a page is drawn from (`address`), which is only for its frame.

    `reach`: the domains that it asks for, by purpose. `permissions` that it asks for: those that it can be given are
    `grantable`. `leaves`: whether it may do each of `_LEAVES`. `hosts`: who is known to let pages do it.
    """
    one = await _app(console, request)
    # A link could lead here as well, and a page must not get leave by one: only the console's own button asks so.
    is_asked = "hx-request" in request.headers or "/api/" in request.scope["path"]
    leaves = {leave: is_asked and leave in request.query_params for leave in _LEAVES}
    contents = await _contents(console, one)
    facts, html = apps.page_facts(contents), _html(contents)
    faults = facts.faults if one.embedded is None else ()
    if faults or not html:
        raise InvalidRequest(f"{plain(one.uri, 200)} cannot be drawn: {'; '.join(faults) or 'it has no text'}")
    reach = usable_domains(facts.domains)
    grantable = usable_permissions(facts.permissions)
    profiles = await to_thread.run_sync(
        load_profiles, console.gateway.settings
    )  # of the user's own, it reads the files
    granted = grantable if leaves["grants"] else ()
    policy = page_policy(reach if leaves["online"] else {}, runs_code=leaves["code"])
    name = console.pages.put(DrawnPage(watching(html), policy, granted))
    return {
        "number": request.path_params["number"],
        "at": one.at,
        "uri": one.uri,
        "upstream": one.upstream,
        "address": f"{request.scope.get('root_path', '').rpartition('/')[0]}{PAGES_PATH}/{name}",
        "bytes": len(html),
        "reach": reach,
        "leaves": leaves,
        "permissions": list(facts.permissions[:20]),
        "grantable": grantable,
        "features": frame_features(granted),
        "hosts": _hosts(profiles, grantable),
        "has_border": as_object(as_object(contents.get("_meta")).get("ui")).get("prefersBorder") is not False,
    }


def _hosts(profiles: Mapping[str, Profile], permissions: Sequence[str]) -> dict[str, Any]:
    """Return which hosts let pages run code, and have those of the permissions of which something is known."""
    return {
        "eval": let_by(profiles, lambda rules: rules.runs_eval),
        "data": let_by(profiles, lambda rules: rules.runs_data),
        "permissions": {
            one: let_by(profiles, lambda rules, one=one: None if rules.grants is None else one in rules.grants)
            for one in permissions
        },
    }


async def _contents(console: Console, one: _App) -> Mapping[str, Any]:
    """Return the resource that is the page, read from its upstream if the result does not have it."""
    if one.embedded is not None:
        return one.embedded
    read = await console.gateway.router.respond("resources/read", {"uri": one.uri}, one.caller)
    return as_object(next(iter(as_list(read.get("contents"))), None))


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
    """A tool of the page's own upstream, called by the upstream's name for it, if pages may.

    The answer has its `result`, or the `run` that goes on: `is_asking` if the upstream asks something, which the page
    of the console has to show (`/try/runs/RUN`). Sending `run` again waits for the result.
    """
    one, sent = await _app(console, request), (await submitted(request)).data or {}
    if (run := as_text(sent.get("run"))) is not None:
        return await _result_of(console.app_tries.find(run))
    name = sent.get("name")
    # A page may be drawn long after its tools were listed last.
    await console.gateway.router.respond("tools/list", {}, one.caller)
    routes = console.gateway.router.catalogue(one.caller).own_names.get(name, ()) if isinstance(name, str) else ()
    if not any(route.upstream == one.upstream for route in routes):
        raise InvalidRequest(f"{plain(str(name), 100)!r} is not a tool of {one.upstream} that its pages may call")
    params = {"name": name, "arguments": sent.get("arguments")}
    return await _result_of(console.app_tries.begin("tools/call", params, one.caller))


async def _result_of(one: Try) -> Mapping[str, Any]:
    """Wait for the end of a call, or until it asks something. Raises GatewayError if it failed."""
    with anyio.move_on_after(_WAITING_SECONDS):
        await (one.ended if one.questions else one.stirred).wait()
    if one.state == "cancelled":
        raise InvalidRequest("the call was cancelled")
    if one.error is not None:
        raise one.error
    if one.result is None:
        return {"result": None, "run": one.id, "is_asking": bool(one.questions)}
    return {"result": one.result}


async def _read(console: Console, request: Request) -> Mapping[str, Any]:
    """A resource of the page's own upstream."""
    one, sent = await _app(console, request), (await submitted(request)).data or {}
    uri = sent.get("uri")
    if not isinstance(uri, str) or uri.startswith(URI_SCHEME):
        raise InvalidRequest("this is not the uri of a resource that pages may read")
    try:
        console.pages.calling.acquire_nowait()
    except anyio.WouldBlock:
        raise TooManyCalls(f"pages are waiting for {AT_ONCE} answers already", remedy="wait for one") from None
    try:
        return {"result": await console.gateway.router.respond("resources/read", {"uri": uri}, one.caller)}
    finally:
        console.pages.calling.release()


_PATHS = ("/calls/{number:number}/page", "/calls/{number:number}/embedded/{block:number}")


def app_routes(console: Console) -> list[Route]:
    """Return the routes of what pages are told first."""

    async def given(request: Request) -> Response:
        return await _given(console, request)

    return [Route(f"/api{path}/given", given) for path in _PATHS]


VIEWS = tuple(
    view
    for path in _PATHS
    for view in (
        View(path, "app.html", _draw, "calls"),
        View(f"{path}/call", "app_answer.html", _call, "calls", method="POST"),
        View(f"{path}/read", "app_answer.html", _read, "calls", method="POST"),
    )
)
