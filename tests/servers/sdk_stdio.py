"""A server on the official SDK's own stdio loop, which speaks both eras: one tool, `add`."""

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_tools(context, params):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    return types.ListToolsResult(tools=[types.Tool(name="add", input_schema=schema)])


async def call_tool(context, params):
    total = (params.arguments or {})["a"] + (params.arguments or {})["b"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(total))])


async def main():
    server = Server("sdk", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
