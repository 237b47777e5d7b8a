"""LangChain's `langchain.mcp` with a gateway as its MCP server: `python -m examples.agents.with_langchain_mcp`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. OpenAI
Responses takes what LangChain makes of an image. With API=openai_chat it is Chat Completions, which does not: put
`mcp-gateway proxy` before that.
"""

import asyncio
import os

from langchain.agents import create_agent
from langchain.mcp import MCPAdapter
from langchain_openai import ChatOpenAI

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/langchain")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") != "openai_chat"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    model = ChatOpenAI(model=MODEL, use_responses_api=RESPONSES)
    async with MCPAdapter(GATEWAY) as adapter:
        agent = create_agent(model, await adapter.list_tools())
        ended = await agent.ainvoke({"messages": [("user", PROMPT)]})
    answer = ended["messages"][-1].text
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
