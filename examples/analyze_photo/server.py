"""A tool that looks at a photo and gives back an annotated one: `analyze_photo`.

Its schema comes from `gateway.image_input`: the model gives the handle of an image, and in its place the tool finds the
image itself. Pillow is imported inside the tool: a host that only lists it does not wait for it.
"""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gateway import image_input

MARK = (255, 0, 200)
"""The colour of the frame around what was found."""

TOOL = types.Tool(
    name="analyze_photo",
    title="Analyze a photo",
    description="Finds what stands out in a photo, and shows where it is.",
    input_schema=image_input("photo", "the photo to analyze for objects"),
    annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
)


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """The one tool."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """What was found, for the caller as data and for the model as a picture."""
    photo = (params.arguments or {}).get("photo")
    # What was a handle is here {"kind": "image", "handle_id": ..., "mime_type": ..., "source": {"data": ...}}. Anything
    # else, such as a path that the model made up, arrives as it was given.
    if not isinstance(photo, dict) or photo.get("kind") != "image":
        return refused("photo: an image is required. Give the handle of one, such as img_7h3k2m9q4w8x")
    try:
        found, overlay = annotated(b64decode(photo["source"]["data"], validate=True))
    except OSError:  # of Pillow
        return refused(f"photo: {photo['handle_id']} cannot be read as an image. Give the handle of another")
    words = f"Found one object in {photo['handle_id']}, at {found['box']}. Annotated overlay below:"
    shown = types.ImageContent(type="image", data=b64encode(overlay).decode(), mime_type="image/png")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words), shown],
        structured_content={**found, "media_type": photo["mime_type"], "bytes": photo["byte_size"]},
    )


def refused(words: str) -> types.CallToolResult:
    """An error for the model: which argument is wrong, what is required, and what to give."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=True)


def annotated(photo: bytes) -> tuple[dict[str, Any], bytes]:
    """The size of a photo and the box (left, top, right, bottom) of all that is not background; the photo with a frame.

    Background is whatever has the colour of the first pixel.
    """
    from PIL import Image, ImageChops, ImageDraw

    image = Image.open(BytesIO(photo)).convert("RGB")
    background = Image.new("RGB", image.size, image.getpixel((0, 0)))
    left, top, right, bottom = ImageChops.difference(image, background).getbbox() or (0, 0, *image.size)
    box = [left, top, right - 1, bottom - 1]
    ImageDraw.Draw(image).rectangle(box, outline=MARK, width=4)
    file = BytesIO()
    image.save(file, "PNG")
    return {"width": image.width, "height": image.height, "box": box}, file.getvalue()


async def main() -> None:
    """Serve one host over stdio."""
    server = Server("photos", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
