"""An agent of pydantic-ai, whose model calls one tool: `with_pydantic_ai.py JOB`, see `tests/real/conftest.py`."""

import base64
import json
import sys

import anyio
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent, BinaryContent, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import FunctionModel

job = json.loads(sys.argv[1])
outcome = {"revision": None}


def transport():
    match job["transport"]:
        case "stdio":
            command, *arguments = job["command"]
            return StdioTransport(command, arguments, env=job["env"])
        case "http":
            return StreamableHttpTransport(job["url"])
        case "sse":
            return SSETransport(job["url"])


def model(messages, info):
    """Call the tool; when its result is there, keep what the model is given of it."""
    returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if not returned:
        outcome["tools"] = [tool.name for tool in info.function_tools]
        return ModelResponse([ToolCallPart(job["tool"], job["arguments"])])
    content = returned[0].content
    parts = content if isinstance(content, list) else [content]
    outcome["texts"] = [part for part in parts if isinstance(part, str)]
    outcome["images"] = [
        [part.media_type, base64.b64encode(part.data).decode()] for part in parts if isinstance(part, BinaryContent)
    ]
    return ModelResponse([TextPart("done")])


async def main():
    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(transport())])
    await agent.run("Show me the picture.")
    print(json.dumps(outcome))


anyio.run(main)
