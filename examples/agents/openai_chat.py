"""An agent loop on OpenAI Chat Completions, with the tools of a gateway: `python -m examples.agents.openai_chat`.

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
    async with gateway.open(CONFIG) as gw, AsyncOpenAI() as client:
        tools = gw.toolset(api="openai_chat", model=MODEL, base_url=str(client.base_url))
        schemas, messages = await tools.schemas(), [{"role": "user", "content": PROMPT}]
        while True:
            completion = await client.chat.completions.create(model=MODEL, messages=messages, tools=schemas)
            messages += await tools.respond(completion)
            if not tools.has_tool_calls(completion):
                break
    answer = completion.choices[0].message.content
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
