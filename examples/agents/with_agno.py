"""An agent of Agno with a gateway as its MCP server: `python -m examples.agents.with_agno`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL.
With API=openai_responses it is asked by the Responses API, otherwise by Chat Completions; the whole
conversation is sent each time, which an API that keeps none needs.
"""

import asyncio
import os

from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.tools.mcp import MCPTools

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/agno")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") == "openai_responses"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    async with MCPTools(url=GATEWAY, transport="streamable-http") as tools:
        model = OpenAIResponses(id=MODEL, use_previous_response_id=False) if RESPONSES else OpenAIChat(id=MODEL)
        agent = Agent(model=model, tools=[tools], telemetry=False)
        answer = str((await agent.arun(PROMPT)).content)
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
