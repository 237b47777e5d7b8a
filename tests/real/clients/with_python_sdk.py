"""The official Python SDK's client: `with_python_sdk.py JOB`, see `tests/real/conftest.py`."""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

job = json.loads(sys.argv[1])


def server():
    match job["transport"]:
        case "stdio":
            command, *arguments = job["command"]
            return StdioServerParameters(command=command, args=arguments, env=job["env"])
        case "http":
            return job["url"]
        case "sse":
            return sse_client(job["url"])


async def main():
    async with Client(server(), mode=job["mode"]) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(job["tool"], job["arguments"])
        outcome = {
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "texts": [block.text for block in result.content if block.type == "text"],
            "images": [[block.mime_type, block.data] for block in result.content if block.type == "image"],
        }
    print(json.dumps(outcome))


anyio.run(main)
