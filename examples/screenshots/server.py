"""A pretended browser: screenshots of the pages of a shop, old and new, and a tool that compares two pictures.

Pillow is imported inside the tools: a host that only lists them does not wait for it.
"""

import random
from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gateway import image_input

PAGES = 10
CHANGED = 7
"""The only page whose new version looks different."""
SIZE = (1280, 800)

READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
SCREENSHOT = types.Tool(
    name="screenshot",
    title="Take a screenshot",
    description="Takes a screenshot of a page.",
    input_schema={
        "type": "object",
        "properties": {
            "site": {"enum": ["old", "new"], "description": "Which version of the shop."},
            "page": {"type": "integer", "minimum": 1, "maximum": PAGES, "description": "Which page."},
        },
        "required": ["site", "page"],
    },
    annotations=READS,
)
FIRST, SECOND = (image_input(name, "a picture to compare") for name in ("first", "second"))
COMPARE = types.Tool(
    name="compare",
    title="Compare two pictures",
    description="Tells which share of two pictures differs.",
    input_schema={
        "type": "object",
        "properties": {**FIRST["properties"], **SECOND["properties"]},
        "required": ["first", "second"],
    },
    output_schema={"type": "object", "properties": {"difference": {"type": "number"}}, "required": ["difference"]},
    annotations=READS,
)


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Both tools."""
    return types.ListToolsResult(tools=[SCREENSHOT, COMPARE])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """A picture, or a number."""
    given = params.arguments or {}
    if params.name == SCREENSHOT.name:
        data = b64encode(drawn(given["site"], given["page"])).decode()
        return types.CallToolResult(content=[types.ImageContent(type="image", data=data, mime_type="image/png")])
    first, second = (b64decode(given[name]["source"]["data"], validate=True) for name in ("first", "second"))
    share = difference(first, second)
    words = types.TextContent(type="text", text=f"{share:.2%} of the pixels differ")
    return types.CallToolResult(content=[words], structured_content={"difference": share})


def drawn(site: str, page: int) -> bytes:
    """A page with a heading, products and a button, which stands elsewhere on the changed page of the new site."""
    from PIL import Image, ImageDraw, ImageFont

    image, chance = Image.new("RGB", SIZE, "white"), random.Random(page)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(22)
    draw.rectangle((0, 0, SIZE[0], 70), fill="#203040")
    draw.text((40, 22), f"The shop, page {page}", fill="white", font=font)
    for row in range(3):
        for column in range(4):
            left, top = 40 + column * 310, 100 + row * 210
            draw.rectangle((left, top, left + 270, top + 130), fill=f"hsl({chance.randrange(360)}, 45%, 60%)")
            draw.text((left, top + 142), f"Thing {chance.randrange(1_000)}", fill="black", font=font)
            draw.text((left, top + 170), f"{chance.randrange(5, 90)}.00", fill="#606060", font=font)
    moved = site == "new" and page == CHANGED
    left = 40 if moved else 1_080
    draw.rectangle((left, 735, left + 160, 785), fill="#c03030" if moved else "#208040")
    draw.text((left + 55, 747), "Buy", fill="white", font=font)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def difference(first: bytes, second: bytes) -> float:
    """The share of the pixels of two pictures of one size that are not the same."""
    from PIL import Image, ImageChops

    one, other = (Image.open(BytesIO(each)).convert("RGB") for each in (first, second))
    changed = ImageChops.difference(one, other).convert("L").histogram()
    return 1 - changed[0] / (one.width * one.height)


async def main() -> None:
    """Serve one host over stdio."""
    server = Server("screenshots", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
