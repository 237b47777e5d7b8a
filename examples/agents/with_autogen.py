"""An agent of AutoGen with a gateway as its MCP server: `python -m examples.agents.with_autogen`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. AutoGen hands
its model text alone: the picture is a line with its handle, and the model proxy of the gateway puts the picture in
its place. So $OPENAI_BASE_URL is the address of the proxy (docs/framework-notes.md).
"""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/autogen")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"
ABLE = ModelInfo(
    vision=True, function_calling=True, json_output=True, structured_output=True, family=ModelFamily.UNKNOWN
)


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    model = OpenAIChatCompletionClient(model=MODEL, model_info=ABLE)
    async with McpWorkbench(StreamableHttpServerParams(url=GATEWAY)) as tools:
        agent = AssistantAgent("looker", model, workbench=tools, reflect_on_tool_use=True)
        answer = (await agent.run(task=PROMPT)).messages[-1].to_text()
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
