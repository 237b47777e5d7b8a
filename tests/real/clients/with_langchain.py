"""langchain-mcp-adapters, on version 1 of the Python SDK: `with_langchain.py JOB`, see `tests/real/conftest.py`."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient

job = json.loads(sys.argv[1])


def connection():
    match job["transport"]:
        case "stdio":
            command, *arguments = job["command"]
            return {"transport": "stdio", "command": command, "args": arguments, "env": job["env"]}
        case "http":
            return {"transport": "streamable_http", "url": job["url"]}
        case "sse":
            return {"transport": "sse", "url": job["url"]}


async def main():
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"gateway": connection()}).get_tools()}
    call = {"type": "tool_call", "id": "1", "name": job["tool"], "args": job["arguments"]}
    message = await tools[job["tool"]].ainvoke(call)
    outcome = {
        "revision": None,
        "tools": list(tools),
        "texts": [block["text"] for block in message.content if block["type"] == "text"],
        "images": [[block["mime_type"], block["base64"]] for block in message.content if block["type"] == "image"],
    }
    print(json.dumps(outcome))


asyncio.run(main())
