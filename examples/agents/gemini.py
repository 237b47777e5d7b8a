"""An agent loop on Gemini, with the tools of a gateway: `python -m examples.agents.gemini`.

The client reads its address and key from $GOOGLE_GEMINI_BASE_URL and $GEMINI_API_KEY; the model is $MODEL.
"""

import os
from pathlib import Path

import anyio
from google import genai

import gateway

CONFIG = Path(__file__).with_name("mcp-gateway.toml")
MODEL = os.environ.get("MODEL", "gemini-3-pro")
PROMPT = "call charts__draw_chart {}\nThen tell me what you see. Begin with: I see N image"


async def main() -> None:
    """Let the model draw a chart, and look at it."""
    async with gateway.open(CONFIG) as gw, genai.Client().aio as client:
        tools = gw.toolset(api="gemini", model=MODEL)
        config, contents = {"tools": await tools.schemas()}, [{"role": "user", "parts": [{"text": PROMPT}]}]
        while True:
            response = await client.models.generate_content(model=MODEL, contents=contents, config=config)
            contents += await tools.respond(response)
            if not tools.has_tool_calls(response):
                break
    answer = response.text
    print(answer)
    assert "I see 1 image" in answer, "the model saw no image"


if __name__ == "__main__":
    anyio.run(main)
