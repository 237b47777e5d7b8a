"""An agent of Microsoft Agent Framework with a gateway as its server: `python -m examples.agents.with_agent_framework`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. With
API=openai_responses it is asked by the Responses API, otherwise by Chat Completions, which shows it no images: put
`mcp-gateway proxy` before that. The whole conversation is sent each time, which an API that keeps none needs.
"""

import asyncio
import os

from agent_framework import Agent, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/agent-framework")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") == "openai_responses"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    client = OpenAIChatClient(MODEL) if RESPONSES else OpenAIChatCompletionClient(MODEL)
    client.function_invocation_configuration["include_detailed_errors"] = True  # else: "Error: Function failed."
    async with MCPStreamableHTTPTool("gateway", GATEWAY, approval_mode="never_require") as tools:
        agent = Agent(client, tools=tools, default_options={"store": False})
        answer = (await agent.run(PROMPT)).text
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
