"""An agent of mcp-use with a gateway as its MCP server: `python -m examples.agents.with_mcp_use`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. OpenAI
Responses takes what LangChain, which asks the model, makes of an image. With API=openai_chat it is Chat Completions,
which does not: put `mcp-gateway proxy` before that.
"""

import asyncio
import os

from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/langchain")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") != "openai_chat"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    client = MCPClient({"mcpServers": {"gateway": {"url": GATEWAY}}})
    agent = MCPAgent(ChatOpenAI(model=MODEL, use_responses_api=RESPONSES), client)
    try:
        answer = await agent.run(PROMPT)
    finally:
        await client.close_all_sessions()
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
