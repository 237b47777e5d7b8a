"""An agent of Haystack with a gateway as its MCP server: `python -m examples.agents.with_haystack`.

The gateway is at $GATEWAY_URL. $OPENAI_BASE_URL is the address of the proxy that `[model_proxy]` runs beside it, with
$OPENAI_API_KEY; the model is $MODEL. With API=openai_responses it is asked by the Responses API, otherwise by
Chat Completions.
"""

import os

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/haystack")
MODEL = os.environ.get("MODEL", "gpt-5.5")
RESPONSES = os.environ.get("API") == "openai_responses"
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


def main() -> None:
    """Let the agent draw a chart, and look at it."""
    tools = MCPToolset(StreamableHttpServerInfo(GATEWAY), eager_connect=True)
    url = os.environ.get("OPENAI_BASE_URL")
    generator = (OpenAIResponsesChatGenerator if RESPONSES else OpenAIChatGenerator)(model=MODEL, api_base_url=url)
    try:
        answer = Agent(chat_generator=generator, tools=tools).run([ChatMessage.from_user(PROMPT)])["last_message"].text
    finally:
        tools.close()
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    main()
