"""An agent of Semantic Kernel with a gateway as its MCP server: `python -m examples.agents.with_semantic_kernel`.

The gateway is at $GATEWAY_URL. $OPENAI_BASE_URL is the address of the proxy that `[model_proxy]` runs beside it, with
$OPENAI_API_KEY; the model is $MODEL.
"""

import asyncio
import os

from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/semantic-kernel")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call gateway-charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    async with MCPStreamableHttpPlugin("gateway", GATEWAY) as plugin:
        agent = ChatCompletionAgent(service=OpenAIChatCompletion(MODEL), name="agent", plugins=[plugin])
        answer = str(await agent.get_response(PROMPT))
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
