"""An agent of AG2 with a gateway as its MCP server: `python -m examples.agents.with_ag2`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. On the
Responses API AG2 shows its model the picture. With API=openai_chat it is Chat Completions, where a picture would end
the run: there the profile is `ag2`, and the model proxy of the gateway puts the picture in its place
(docs/framework-notes.md).
"""

import asyncio
import os

from ag2 import Agent
from ag2.config import OpenAIConfig, OpenAIResponsesConfig
from ag2.tools import MCPToolkit

RESPONSES = os.environ.get("API") != "openai_chat"
GATEWAY = os.environ.get("GATEWAY_URL", f"http://127.0.0.1:8484/mcp/{'ag2-media' if RESPONSES else 'ag2'}")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    config = OpenAIResponsesConfig(MODEL) if RESPONSES else OpenAIConfig(MODEL)
    agent = Agent("looker", config=config, tools=[MCPToolkit(GATEWAY)])
    answer = (await agent.ask(PROMPT)).body or ""
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
