"""FastMCP's client: `with_fastmcp.py JOB`, see `tests/real/conftest.py`."""

import json
import sys

import anyio
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

job = json.loads(sys.argv[1])


def transport():
    match job["transport"]:
        case "stdio":
            command, *arguments = job["command"]
            return StdioTransport(command, arguments, env=job["env"])
        case "http":
            return StreamableHttpTransport(job["url"])
        case "sse":
            return SSETransport(job["url"])


async def main():
    async with Client(transport()) as client:
        tools = await client.list_tools()
        result = await client.call_tool(job["tool"], job["arguments"])
        outcome = {
            "revision": client.session.protocol_version,
            "tools": [tool.name for tool in tools],
            "texts": [block.text for block in result.content if block.type == "text"],
            "images": [[block.mime_type, block.data] for block in result.content if block.type == "image"],
        }
    print(json.dumps(outcome))


anyio.run(main)
