"""Access for shaping one result: the upstream that its links lead to, tools that describe media, the host's folders.

All of this uses the sessions of the caller that gets the result.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from gateway.content.shaping import CallersTools, Reach
from gateway.core.apps import inward
from gateway.core.model.json_values import is_dict, is_list
from gateway.errors import HostRefused, InvalidRequest
from gateway.routing.ports import UpstreamPort, UpstreamsPort
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.host_requests import ROOTS
from gateway.upstream.connection.owners import host_of
from gateway.upstream.connection.request_context import RequestContext

_ROOTS_SECONDS = 5.0
_MOST_ROOTS = 20


def reach(bridge: Bridge, upstreams: UpstreamsPort, name: str | None, context: RequestContext) -> Reach:
    """Return the access for a result of the upstream `name`, or of the gateway itself if None."""

    async def ask(upstream: UpstreamPort, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        part = replace(context, is_part=True, on_progress=None)
        return await bridge.request(upstream, method, params, part)

    async def call(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if upstream not in upstreams:
            raise InvalidRequest(f"there is no upstream {upstream!r}", remedy="see describe.tool")
        return await ask(upstreams[upstream], "tools/call", {"name": tool, "arguments": arguments})

    folders, tools = partial(host_folders, context), CallersTools(host_of(context.caller), call)
    if name is None:
        return Reach(folders=folders, tools=tools)
    origin = upstreams[name]

    async def read(uri: str) -> Mapping[str, Any]:
        return await ask(origin, "resources/read", {"uri": inward(name, uri)})

    return Reach(read, folders, tools)


async def host_folders(context: RequestContext) -> tuple[str, ...]:
    """Return the host's roots as URIs; empty if it has none, or cannot be asked while a call of its own runs."""
    host, caller = context.host, context.caller
    if host is None or caller.is_modern or "roots" not in caller.capabilities:
        return ()
    if "roots" in context.profile.features.broken:
        return ()
    result: Mapping[str, Any] = {}
    with anyio.move_on_after(_ROOTS_SECONDS):
        try:
            result = await host.ask(ROOTS, {})
        except HostRefused:
            return ()
    roots: Any = result.get("roots")
    listed = roots[:_MOST_ROOTS] if is_list(roots) else []
    uris = [root.get("uri") for root in listed if is_dict(root)]
    return tuple(uri for uri in uris if isinstance(uri, str))
