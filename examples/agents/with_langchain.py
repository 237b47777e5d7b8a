"""A loop of LangChain with a gateway as its MCP server: `python -m examples.agents.with_langchain`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. OpenAI
Responses takes what LangChain makes of an image. With API=openai_chat it is Chat Completions, which does not: put
`mcp-gateway proxy` before that.
"""

import asyncio
import os
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") != "openai_chat"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the model draw a chart, and look at it."""
    client = MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": GATEWAY}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    model = ChatOpenAI(model=MODEL, use_responses_api=RESPONSES).bind_tools(list(tools.values()))
    messages: list[Any] = [HumanMessage(PROMPT)]
    while (answer := await model.ainvoke(messages)).tool_calls:
        messages += [answer, *[await tools[call["name"]].ainvoke(call) for call in answer.tool_calls]]
    print(answer.text)
    assert "I see 1 image" in answer.text, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
