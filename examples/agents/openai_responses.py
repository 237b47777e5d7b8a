"""An agent loop on OpenAI Responses, with the tools of a gateway: `python -m examples.agents.openai_responses`.

The client reads its address and key from $OPENAI_BASE_URL and $OPENAI_API_KEY; the model is $MODEL.
"""

import os
from pathlib import Path

import anyio
from openai import AsyncOpenAI

import gateway

CONFIG = Path(__file__).with_name("mcp-gateway.toml")
MODEL = os.environ.get("MODEL", "gpt-5.5")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the model draw a chart, and look at it."""
    # The history is kept here and not by the API, so the reasoning has to come along, encrypted.
    kept = {"store": False, "include": ["reasoning.encrypted_content"]}
    async with gateway.open(CONFIG) as gw, AsyncOpenAI() as client:
        tools = gw.toolset(api="openai_responses", model=MODEL, base_url=str(client.base_url))
        schemas, items = await tools.schemas(), [{"role": "user", "content": PROMPT}]
        while True:
            response = await client.responses.create(model=MODEL, input=items, tools=schemas, **kept)
            items += await tools.respond(response)
            if not tools.has_tool_calls(response):
                break
    answer = response.output_text
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
