"""An agent of Google's ADK with a gateway as its MCP server: `python -m examples.agents.with_google_adk`.

The gateway is at $GATEWAY_URL, Gemini at $GOOGLE_GEMINI_BASE_URL with $GEMINI_API_KEY; the model is $MODEL. With
API=openai_chat LiteLLM asks Chat Completions at $OPENAI_BASE_URL. ADK writes a result as JSON: put `mcp-gateway proxy`
before the model. Needs requirements/google-adk.in.
"""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp")
MODEL = os.environ.get("MODEL", "gemini-3-pro")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    tools = McpToolset(connection_params=StreamableHTTPConnectionParams(url=GATEWAY))
    model = LiteLlm(f"openai/{MODEL}") if os.environ.get("API") == "openai_chat" else MODEL
    events = await InMemoryRunner(LlmAgent(name="looker", model=model, tools=[tools])).run_debug(PROMPT, quiet=True)
    await tools.close()
    answer = "".join(part.text or "" for part in events[-1].content.parts)
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
