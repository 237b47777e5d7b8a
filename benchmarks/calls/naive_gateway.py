"""A gateway of 60 lines on the MCP SDK: what one would write in an afternoon, and the base of most ratios.

    python -m benchmarks.calls.naive_gateway (stdio | PORT) ERA (URL | COMMAND ARGS...)

It hands tools on and does nothing else: no profiles, no limits, no second try, no notifications. uvicorn runs as the
SDK brings it along, without uvloop and httptools.
"""

import os
import sys
from functools import partial
from typing import Any

import anyio
import uvicorn
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

HANDSHAKE = "2025-11-25"
"""As in `benchmarks.calls.wire`, which is not imported here: what it needs would count as this gateway's memory."""


def server_for(upstream: Client) -> Server[Any]:
    """A server with the upstream's tools."""

    async def list_tools(_: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return await upstream.list_tools(cursor=params.cursor if params else None)

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return await upstream.call_tool(params.name, params.arguments)

    return Server("naive", on_list_tools=list_tools, on_call_tool=call_tool)


async def main(front: str, era: str, *target: str) -> None:
    """Serve until killed, or until the input ends."""
    mode = "legacy" if era == HANDSHAKE else era
    command = StdioServerParameters(command=target[0], args=list(target[1:]), env=dict(os.environ))
    async with Client(target[0] if target[0].startswith("http") else stdio_client(command), mode=mode) as upstream:
        server = server_for(upstream)
        if front == "stdio":
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
        else:
            config = uvicorn.Config(
                server.streamable_http_app(), port=int(front), loop="asyncio", http="h11", log_level="warning"
            )
            await uvicorn.Server(config).serve()


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
