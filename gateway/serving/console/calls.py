"""Calls for the console: a list of the newest, and one with everything that it carried."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.requests import Request

from gateway.config.moments import moment_text
from gateway.content.shaping.shaper import lift_within
from gateway.core import apps
from gateway.core.model.caller import CONSOLE_CLIENT
from gateway.core.model.json_values import as_list, as_object, as_text
from gateway.errors import InvalidRequest
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.serving.console.call_arguments import given_arguments, secrets_of, tool_of
from gateway.serving.console.call_test import MOST, test_of_call
from gateway.serving.console.console import Console
from gateway.serving.console.host_views import ViewedCall, viewed_hosts
from gateway.serving.console.offers import address, offered_name
from gateway.serving.console.parts import characters, envelope_parts, json_part
from gateway.serving.console.views import View, number_in
from gateway.telemetry.call_history import CallHistory, PastCall

PAGE = 100
_LONGEST = 500
_EMBEDDED = 8
_AS_IT_CAME = (apps.AS_IT_CAME.kind, apps.AS_IT_CAME.text)


class CallFilter(NamedTuple):
    """Which calls to show: those whose tool, host, principal or upstream contains `text`, and with this outcome.

    `outcome` is one of `gateway.telemetry.calls.Outcome`, or `failed` for all that are not `ok`.
    """

    text: str = ""
    outcome: str = ""

    def fits(self, call: PastCall) -> bool:
        """Whether the call is one of them."""
        record = call.record
        if self.outcome == "failed":
            if call.is_running or record.outcome == "ok":
                return False
        elif self.outcome and (call.is_running or record.outcome != self.outcome):
            return False
        wanted = self.text.casefold()
        told = (record.tool, record.host, call.principal, record.upstream, record.profile)
        return not wanted or any(wanted in one.casefold() for one in told)


def list_calls(history: CallHistory, chosen: CallFilter, before: int | None = None) -> dict[str, Any]:
    """Return up to 100 calls, the newest first: `calls`, and `before`, with which to ask for more (null: no more).

    `kept` is the number of all calls that are kept, `newest` the number of the newest, 0 without any.
    """
    found = _fitting(history, chosen, before)
    calls = [call_row(call) for call in islice(found, PAGE)]
    more = next(found, None) is not None
    return {
        "calls": calls,
        "before": calls[-1]["number"] if more else None,
        "kept": len(history),
        "newest": newest(history),
    }


def newest(history: CallHistory) -> int:
    """Return the number of the newest call, 0 without any."""
    return next((call.number for call in history.newest_first()), 0)


def _fitting(history: CallHistory, chosen: CallFilter, before: int | None) -> Iterator[PastCall]:
    for call in history.newest_first():
        if (before is None or call.number < before) and chosen.fits(call):
            yield call


def call_row(call: PastCall) -> dict[str, Any]:
    """Return what a line about a call says."""
    record = call.record
    return {
        "number": call.number,
        "began": moment_text(call.began, "milliseconds"),
        "is_running": call.is_running,
        "outcome": None if call.is_running else record.outcome,
        "tool": record.tool,
        "upstream": record.upstream or None,
        "upstream_tool": record.upstream_tool or None,
        "host": record.host,
        "host_version": call.client_version,
        "revision": record.revision,
        "profile": record.profile,
        "principal": call.principal,
        "milliseconds": None if call.is_running else round(record.seconds * 1_000),
        "bytes_in": record.bytes_in,
        "bytes_raw": record.bytes_raw,
        "bytes_out": record.bytes_out,
        "blocks": record.blocks,
        "notes": len(record.notes),
        "tokens": None if record.tokens is None else {**asdict(record.tokens), "formula": record.token_formula},
        "error": record.error,
        "is_of_page": _is_of_page(call),
        # The console is a host of its own, as whichever it was told to be.
        "played": record.profile if record.host == CONSOLE_CLIENT else None,
    }


def _is_of_page(call: PastCall) -> bool:
    """Whether a page made the call, as is known once its result has gone there."""
    return any((note.kind, note.text) == _AS_IT_CAME for note in call.record.notes)


def show_call(console: Console, call: PastCall) -> dict[str, Any]:
    """Return a call with its arguments, secrets masked, the parts of its own result, the notes, and hosts to compare.

    `parts` and `arguments` are null if they are not kept, or not yet there. `page` is the URI of the page (MCP Apps)
    that its tool shows the result with, or null; `embedded` has the pages in the result. `again` is the name of its
    tool for Try, as a part of an address, or null, and `again_as` the profile, null for the default. `test` is a test
    in Python that makes the same call; it is null if that is not possible any more.
    """
    result = call.result
    given = given_arguments(console.gateway, console.operator(None), call)
    arguments = None if given is None else json_part(given)
    envelope = None if result is None else lift_within(result, console.gateway.settings.limits.blocks)
    parts = None if envelope is None else envelope_parts(envelope, console.shelf)
    hosts = viewed_hosts(console.gateway.settings)
    chosen = compared(call, {host.name for host in hosts})
    return {
        **call_row(call),
        "is_kept": call.is_whole,
        "arguments": arguments,
        "parts": parts,
        "characters": characters(parts or []),
        "is_error": envelope is not None and envelope.is_error,
        "result_notes": [note.model_dump(exclude_none=True) for note in call.record.notes],
        "hosts": [host._asdict() for host in hosts],
        "compared": chosen,
        **_again(console, call),
        "page": page_uri(console, call),
        "embedded": [
            {"block": place, "uri": apps.outward(call.record.upstream, as_text(page.get("uri")) or "")}
            for place, page in embedded_pages(result).items()
        ],
        "test": _test(console, call, chosen, given, arguments["characters"] if arguments else 0),
    }


def compared(call: PastCall, known: set[str]) -> list[str]:
    """Return the hosts to begin a comparison with: that of the call, and those that most people have."""
    wanted = (call.record.profile, "claude-desktop", "claude-code", "codex")
    return [name for name in dict.fromkeys(wanted) if name in known][:3]


def _again(console: Console, call: PastCall) -> dict[str, str | None]:
    """Return the tool for Try and the profile of the call, or none where its tool would not be offered."""
    if not call.is_whole:
        return {"again": None, "again_as": None}
    router, record = console.gateway.router, call.record
    is_other = record.profile != router.profile_of(console.operator(None)).name
    for profile in (record.profile, None) if is_other and record.profile in router.profile_names else (None,):
        name = offered_name(console, record.upstream, record.upstream_tool, profile)
        if name is not None:
            return {"again": address(name), "again_as": profile}
    return {"again": None, "again_as": None}


def viewed_call(console: Console, call: PastCall) -> ViewedCall:
    """Return a call as hosts are to view it. Raises InvalidRequest if its result is not kept."""
    if (result := call.result) is None:
        raise InvalidRequest("the result of this call is not kept", remedy="[console] max_bytes keeps more")
    tool = tool_of(console.gateway, console.operator(None), call)
    is_tried = call.record.host == CONSOLE_CLIENT
    return ViewedCall(result, tool, _is_of_page(call), call.record.profile, call.declares_pages, is_tried)


def page_uri(console: Console, call: PastCall) -> str | None:
    """Return the URI of the page that a call's result is shown with, as hosts read it; None without any."""
    if call.result is None or not call.record.upstream_tool:
        return None
    tool = tool_of(console.gateway, console.operator(None), call)
    if not apps.for_the_model(tool):  # its result is for a page that is open already
        return None
    found = (*apps.pages(tool), *apps.pages(call.result))
    uri = next((uri for uri in found if uri.startswith(apps.SCHEME)), None)
    return None if uri is None else apps.outward(call.record.upstream, uri)


def embedded_pages(result: Mapping[str, Any] | None) -> dict[int, Mapping[str, Any]]:
    """Return the pages of HTML that a result has embedded (mcp-ui), at most 8, by the place of their blocks."""
    resources = (as_object(as_object(block).get("resource")) for block in as_list(as_object(result).get("content")))
    found = ((place, one) for place, one in enumerate(resources) if _is_html_page(one))
    return dict(islice(found, _EMBEDDED))


def _is_html_page(resource: Mapping[str, Any]) -> bool:
    uri, media_type = (as_text(resource.get(key)) or "" for key in ("uri", "mimeType"))
    return apps.is_embedded_page(uri, media_type) and media_type.partition(";")[0].strip().lower() == "text/html"


def _test(console: Console, call: PastCall, compared_hosts: list[str], given: Any, size: int) -> str | None:
    settings = console.gateway.settings
    upstream = settings.upstreams.get(call.record.upstream)
    if upstream is None or upstream.openapi is not None or call.arguments is None or not call.record.upstream_tool:
        return None
    hosts = [name for name in compared_hosts if name in SIMULATORS] or ["unknown"]
    return test_of_call(
        upstream, call.record.upstream_tool, given if size <= MOST else None, hosts, secrets_of(console.gateway)
    )


def filter_in(request: Request) -> CallFilter:
    """Return the filter that a request asks for."""
    query = request.query_params
    return CallFilter(query.get("text", "")[:_LONGEST], query.get("outcome", "")[:_LONGEST])


async def _calls(console: Console, request: Request) -> Mapping[str, Any]:
    chosen = filter_in(request)
    return {**list_calls(console.history, chosen, number_in(request, "before")), "chosen": chosen._asdict()}


async def _call(console: Console, request: Request) -> Mapping[str, Any]:
    call = await console.call(request.path_params["number"])
    # In a thread: a large result takes most of a second, in which hosts would wait.
    return await to_thread.run_sync(show_call, console, call)


async def kept_call(console: Console, request: Request) -> PastCall | None:
    """Return the call that a request names, if its result is kept."""
    try:
        call = await console.call(request.path_params["number"])
    except InvalidRequest:
        return None
    return None if call.result is None else call


async def _seen(console: Console, request: Request) -> Mapping[str, Any]:
    call = await console.call(request.path_params["number"])
    return await console.views.view(viewed_call(console, call), request.path_params["host"], console.gateway.settings)


VIEWS = (
    View("/calls", "calls.html", _calls, "calls", "Calls"),
    View("/calls/{number:number}", "call.html", _call, "calls"),
    View("/calls/{number:number}/seen/{host}", "seen.html", _seen, "calls"),
)
