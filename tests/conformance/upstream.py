"""The upstream of the conformance tests: an MCP server that passes the official suite when it is asked directly.

    python -m tests.conformance.upstream [--port N | --stdio] [--legacy-only | --modern-only]

Over HTTP it says `listening on <url>` on stderr once it does. It speaks both eras, or one: then it answers the other
as real servers of one era do.
"""

import argparse
import socket
import sys
import warnings
from collections.abc import Mapping
from itertools import count
from typing import Any, Literal

import anyio
import mcp_types as types
import uvicorn
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import PromptsListChanged, ServerEvent
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.conformance import skills
from tests.conformance.asking import Call, Failed, InputNeeded
from tests.conformance.behaviours import RESOURCES, TEMPLATE, Lists, contents

Era = Literal["legacy", "modern"]
NAME = "conformance-upstream"
RETRY = 100
"""Milliseconds after which a host comes back for the rest of a stream that was closed."""


class Kept(EventStore):
    """The events of all streams, in their order: what a host that comes back is sent."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: dict[str, tuple[str, types.JSONRPCMessage | None]] = {}

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        number = str(next(self._numbers))
        self._events[number] = (stream_id, message)
        return number

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if last_event_id not in self._events:
            return None
        stream = self._events[last_event_id][0]
        for number, (its_stream, message) in list(self._events.items()):
            if its_stream == stream and int(number) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, number))
        return stream


class Hosts:
    """Everybody who is told of changes: streams of `subscriptions/listen`, and sessions of the handshake revisions."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.sessions: list[ServerSession] = []

    async def joined(self, context: ServerRequestContext[Any, Any], params: types.NotificationParams) -> None:
        self.sessions.append(context.session)

    async def announce(self, event: ServerEvent) -> None:
        await self.bus.publish(event)
        for session in self.sessions:
            if isinstance(event, PromptsListChanged):
                await session.send_prompt_list_changed()
            else:
                await session.send_tool_list_changed()


class Changeable(Server[Any]):
    """A server whose lists change, and which says so to hosts of the handshake revisions too."""

    def create_initialization_options(self, *arguments: Any, **more: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(True, True, True), **more)


def make_server() -> Server[Any]:
    """The server, for any transport."""
    hosts = Hosts()
    lists = Lists(hosts.announce)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        tools = [
            {"name": name, "description": offer.about, "inputSchema": offer.schema}
            for name, offer in lists.tools.items()
        ]
        return types.ListToolsResult.model_validate({"tools": tools})

    async def call_tool(context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        offer = lists.tools.get(params.name)
        if offer is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name!r} here")
        try:
            return types.CallToolResult.model_validate({"content": await offer.run(call_of(context, params), lists)})
        except InputNeeded as needed:
            return needed.result
        except Failed as failure:
            content = [{"type": "text", "text": str(failure)}]
            return types.CallToolResult.model_validate({"content": content, "isError": True})

    async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
        prompts = [
            {
                "name": name,
                "description": offer.about,
                "arguments": [{"name": argument, "required": True} for argument in offer.schema.get("properties", {})],
            }
            for name, offer in lists.prompts.items()
        ]
        return types.ListPromptsResult.model_validate({"prompts": prompts})

    async def get_prompt(context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams) -> Any:
        offer = lists.prompts.get(params.name)
        if offer is None:
            raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name!r} here")
        try:
            messages = await offer.run(call_of(context, params), lists)
        except InputNeeded as needed:
            return needed.result
        except Failed as failure:
            raise MCPError(types.INVALID_PARAMS, str(failure)) from failure
        return types.GetPromptResult.model_validate({"messages": messages})

    def input_schema(name: str) -> Mapping[str, Any] | None:
        return lists.tools[name].schema if name in lists.tools else None

    async def done(context: Any, params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    server = Changeable(
        NAME,
        version="1.0.0",
        cache_hints={"tools/list": CacheHint(ttl_ms=1_000, scope="public")},
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(hosts.bus),
        on_subscribe_resource=done,
        on_unsubscribe_resource=done,
        on_set_logging_level=done,
    )
    server.add_notification_handler("notifications/initialized", types.NotificationParams, hosts.joined)
    skills.add_skills(server)
    key = b"the key of a server that is gone when its test is done"
    server.middleware.append(RequestStateBoundary(RequestStateSecurity(keys=[key]), default_audience=NAME))
    return server


def call_of(context: ServerRequestContext[Any, Any], params: Any) -> Call:
    """A request as the tools see it."""
    return Call(context, params.arguments or {}, params.input_responses or {}, params.request_state)


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    """The resources that are listed."""
    resources = [
        {"uri": uri, "name": uri.removeprefix("test://"), "mimeType": resource["mimeType"]}
        for uri, resource in RESOURCES.items()
    ]
    return types.ListResourcesResult.model_validate({"resources": [*resources, *skills.listed()]})


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    """The one template."""
    template = {"uriTemplate": TEMPLATE, "name": "data", "mimeType": "application/json"}
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})


async def read_resource(context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams) -> Any:
    """A resource, listed or by the template."""
    found = contents(str(params.uri)) or skills.contents(str(params.uri))
    if found is None:
        code = types.INVALID_PARAMS if context.protocol_version in MODERN_PROTOCOL_VERSIONS else -32002
        raise MCPError(code, "Resource not found", {"uri": str(params.uri)})
    return types.ReadResourceResult.model_validate({"contents": [found]})


async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Values that begin as the argument does."""
    values = [value for value in ("paris", "park", "party") if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


class OneEra:
    """In front of the HTTP side: hosts of the other era are answered as by a server that has never heard of it."""

    def __init__(self, app: ASGIApp, era: Era) -> None:
        self._app = app
        self._era = era

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (answer := self._refusal(scope)) is not None:
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        revision = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
        if self._era == "legacy":
            if revision in ("", *HANDSHAKE_PROTOCOL_VERSIONS):
                return None
            message = f"Bad Request: Unsupported protocol version: {revision}"
            return JSONResponse(error(-32000, message), status_code=400)
        if scope["method"] != "POST":
            return Response(status_code=405, headers={"Allow": "POST"})
        if revision not in ("", *HANDSHAKE_PROTOCOL_VERSIONS):
            return None
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": revision}
        return JSONResponse(error(types.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported version", data), status_code=400)


def error(code: int, message: str, data: Any = None) -> dict[str, Any]:
    """An answer to a request that was not read."""
    told = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": None, "error": told}


async def no_handshake(context: ServerRequestContext[Any, Any], call_next: Any) -> Any:
    """On stdio, what a server of 2026-07-28 alone says to `initialize`."""
    if context.method == "initialize":
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
        raise MCPError(types.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported version", data)
    return await call_next(context)


async def serve_stdio(server: Server[Any], era: Era | None) -> None:
    """Until stdin ends."""
    options = server.create_initialization_options()
    async with stdio_server() as (read, write):
        if era == "legacy":
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            if era == "modern":
                refusing: Any = no_handshake
                server.middleware.append(refusing)
            await server.run(read, write, options)


def serve_http(server: Server[Any], era: Era | None, port: int) -> None:
    """Until it is killed."""
    app: ASGIApp = server.streamable_http_app(event_store=Kept(), retry_interval=RETRY)
    if era is not None:
        app = OneEra(app, era)
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        # httptools leaves the space at the end of a header's value, which HTTP says is not part of it.
        config = uvicorn.Config(app, http="h11", log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


def main() -> None:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--stdio", action="store_true")
    eras = parser.add_mutually_exclusive_group()
    eras.add_argument("--legacy-only", dest="era", action="store_const", const="legacy")
    eras.add_argument("--modern-only", dest="era", action="store_const", const="modern")
    asked = parser.parse_args()
    # The suite still asks for what 2026-07-28 has deprecated.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = make_server()
    if asked.stdio:
        anyio.run(serve_stdio, server, asked.era)
    else:
        serve_http(server, asked.era, asked.port)


if __name__ == "__main__":
    main()
