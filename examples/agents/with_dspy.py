"""An agent of DSPy with a gateway as its MCP server: `python -m examples.agents.with_dspy`.

The gateway is at $GATEWAY_URL. $OPENAI_BASE_URL is the address of the proxy that `[model_proxy]` runs beside it, with
$OPENAI_API_KEY; the model is $MODEL.
"""

import asyncio
import os

import dspy
from mcp import Client

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8484/mcp/dspy")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the agent draw a chart, and look at it."""
    model = dspy.LM(f"openai/{MODEL}", cache=False, num_retries=0)
    adapter = dspy.ChatAdapter(use_native_function_calling=True)
    async with Client(GATEWAY) as client:
        tools = [dspy.Tool.from_mcp_tool(client, tool) for tool in (await client.list_tools()).tools]
        with dspy.context(lm=model, adapter=adapter):
            answer = str(await dspy.ReActV2("request -> answer", tools).acall(request=PROMPT))
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    asyncio.run(main())
