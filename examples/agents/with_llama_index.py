"""An agent of LlamaIndex with a gateway as its MCP server: `python -m examples.agents.with_llama_index`.

The gateway is at $GATEWAY_URL, the model at $OPENAI_BASE_URL with $OPENAI_API_KEY; the model is $MODEL. LlamaIndex
hands its model text alone: the picture is a line with its handle, and the model proxy of the gateway puts the picture
in its place. So $OPENAI_BASE_URL is the address of the proxy (docs/framework-notes.md).
"""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/llama-index")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    tools = await McpToolSpec(client=BasicMCPClient(GATEWAY)).to_tool_list_async()
    model = OpenAI(model=MODEL, api_base=os.environ.get("OPENAI_BASE_URL"))
    answer = str(await FunctionAgent(tools=tools, llm=model).run(PROMPT))
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
