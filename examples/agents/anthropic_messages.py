"""An agent loop on Anthropic Messages, with the tools of a gateway: `python -m examples.agents.anthropic_messages`.

The client reads its address and key from $ANTHROPIC_BASE_URL and $ANTHROPIC_API_KEY; the model is $MODEL.
"""

import os
from pathlib import Path

import anyio
from anthropic import AsyncAnthropic

import gateway

CONFIG = Path(__file__).with_name("mcp-gateway.toml")
MODEL = os.environ.get("MODEL", "claude-opus-4-8")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the model draw a chart, and look at it."""
    async with gateway.open(CONFIG) as gw, AsyncAnthropic() as client:
        tools = gw.toolset(api="anthropic_messages", model=MODEL, base_url=str(client.base_url))
        schemas, messages = await tools.schemas(), [{"role": "user", "content": PROMPT}]
        while True:
            message = await client.messages.create(model=MODEL, max_tokens=4096, messages=messages, tools=schemas)
            messages += await tools.respond(message)
            if not tools.has_tool_calls(message):
                break
    answer = "".join(block.text for block in message.content if block.type == "text")
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
