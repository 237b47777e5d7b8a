"""An agent of the OpenAI Agents SDK with a gateway as its MCP server: `python -m examples.agents.with_openai_agents`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. The API is
OpenAI Responses. With API=openai_chat it is Chat Completions, where the SDK drops images: put `mcp-gateway proxy`
before that.
"""

import os

import anyio
from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp")
MODEL = os.environ.get("MODEL", "gpt-5.5")
API = {"openai_chat": "chat_completions"}.get(os.environ.get("API", ""), "responses")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    set_tracing_disabled(True)
    set_default_openai_api(API)
    async with MCPServerStreamableHttp({"url": GATEWAY}, client_session_timeout_seconds=60) as gateway:
        answer = (await Runner.run(Agent("looker", model=MODEL, mcp_servers=[gateway]), PROMPT)).final_output
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
