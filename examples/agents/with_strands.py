"""An agent of Strands with a gateway as its MCP server: `python -m examples.agents.with_strands`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. Needs
requirements/strands.in.
"""

import os

from mcp.client.streamable_http import streamable_http_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/strands")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


def main() -> None:
    """Let the agent draw a chart, and look at it."""
    with MCPClient(lambda: streamable_http_client(GATEWAY)) as gateway:
        agent = Agent(OpenAIModel(model_id=MODEL), tools=gateway.list_tools_sync(), callback_handler=None)
        answer = str(agent(PROMPT))
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    main()
