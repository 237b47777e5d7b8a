"""LangChain with a gateway as its MCP server: `python -m examples.agents.with_langchain`.

The gateway is at $GATEWAY_URL. What is shown is the message that LangChain gives whichever chat model is used.
"""

import asyncio
import os

from langchain_mcp_adapters.client import MultiServerMCPClient

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp")


async def main() -> None:
    """Call the tool as an agent does, and look at the message for its model."""
    client = MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": GATEWAY}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    call = {"type": "tool_call", "id": "1", "name": "charts__draw_chart", "args": {}}
    message = await tools[call["name"]].ainvoke(call)
    images = [block for block in message.content if block["type"] == "image"]
    print(f"I see {len(images)} image: {', '.join(block['mime_type'] for block in images)}")
    assert len(images) == 1, "the model would see no image"


if __name__ == "__main__":
    asyncio.run(main())
