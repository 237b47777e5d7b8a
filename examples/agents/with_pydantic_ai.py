"""An agent of pydantic-ai with a gateway as its MCP server: `python -m examples.agents.with_pydantic_ai`.

The gateway is at $GATEWAY_URL, the model API at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. With
$API, OpenAI Responses or Anthropic (at $ANTHROPIC_BASE_URL) is asked in place of Chat Completions.
"""

import os

import anyio
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/pydantic-ai")
APIS = {"openai_chat": "openai-chat", "openai_responses": "openai-responses", "anthropic_messages": "anthropic"}
MODEL = f"{APIS[os.environ.get('API', 'openai_chat')]}:{os.environ.get('MODEL', 'gpt-5.5')}"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    agent = Agent(MODEL, toolsets=[MCPToolset(GATEWAY)])
    answer = (await agent.run(PROMPT)).output
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
