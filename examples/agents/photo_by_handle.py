"""A program's own tool that takes a photo by its handle, in six steps: `python -m examples.agents.photo_by_handle`.

1. The photo is put into a store. 2. A note tells the model which content there is. 3. The tool's schema asks for an
image. 4. The model gives the handle, a plain string. 5. The handle becomes the photo. 6. The tool works on its bytes,
and the picture that it returns reaches the model. Nothing here needs a model or a network: step 4 is written down.
"""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import anyio
from PIL import Image, ImageDraw

import gateway

SCHEMA = gateway.image_input("photo", "the photo to analyze for objects")


def photo() -> bytes:
    """A white picture with one dark square in it."""
    picture = Image.new("RGB", (320, 200), "white")
    ImageDraw.Draw(picture).rectangle((200, 60, 259, 119), fill="navy")
    written = BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()


def analyze_photo(photo: dict[str, Any]) -> dict[str, Any]:
    """Finds the square; the result says where, and shows it."""
    picture = Image.open(BytesIO(b64decode(photo["source"]["data"]))).convert("RGB")
    box = picture.convert("L").point(lambda grey: 255 if grey < 128 else 0).getbbox()
    ImageDraw.Draw(picture).rectangle(box or (0, 0, 0, 0), outline="magenta", width=3)
    overlay = BytesIO()
    picture.save(overlay, "PNG")
    return {
        "content": [
            {"type": "text", "text": f"One object at {box} in {photo['display_name']}. Annotated overlay below:"},
            {"type": "image", "data": b64encode(overlay.getvalue()).decode(), "mimeType": "image/png"},
        ],
        "structuredContent": {"box": box},
    }


async def main() -> None:
    """The six steps."""
    store = gateway.MemoryStore()
    stored = await store.put(photo(), owner="local", media_type="image/png", name="square.png")  # 1

    note = gateway.directory_note(await store.list(owner="local"))  # 2
    assert stored.handle in note
    assert "square.png" in note

    tool = {"type": "function", "function": {"name": "analyze_photo", "parameters": SCHEMA}}  # 3
    assert tool["function"]["parameters"]["properties"]["photo"]["type"] == "string"

    given = {"photo": stored.handle}  # 4

    arguments = await gateway.resolve_arguments(SCHEMA, given, store)  # 5
    assert arguments["photo"]["kind"] == "image"
    assert arguments["photo"]["byte_size"] == stored.size

    result = analyze_photo(**arguments)  # 6
    turn = await gateway.lower_turn([{"id": "call_1", "name": "analyze_photo", "result": result}], "openai_chat")
    tool_message, user_message = turn.messages
    assert "One object at (200, 60, 260, 120) in square.png" in str(tool_message["content"])
    shown = user_message["content"][1]["image_url"]["url"]
    overlay = Image.open(BytesIO(b64decode(shown.partition(",")[2])))
    assert overlay.convert("RGB").getpixel((200, 60)) == (255, 0, 255)
    print(f"I see 1 image: {overlay.size[0]}x{overlay.size[1]}, {tool_message['content']}")


if __name__ == "__main__":
    anyio.run(main)
