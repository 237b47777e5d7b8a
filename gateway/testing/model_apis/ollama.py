"""Stand-in for Ollama's /api/chat: content must be a string, and images plain base64 of PNG, JPEG or WebP.

Types: ollama 0.6.3, `Message`: content, images (base64), tool_name. Calls have no ids, so pairing is not checked. Its
server decodes base64, and images with decoders for png, jpeg and webp.
"""

from collections.abc import Mapping
from typing import Any

from gateway.testing.model_apis.openai_chat import TOOL, tools_of
from gateway.testing.model_apis.read_request import Dialect, Media, Message, Ref
from gateway.testing.model_apis.rules import readable, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, Many

_DECODED = frozenset({"image/png", "image/jpeg", "image/webp"})
_MESSAGE = {
    "role": frozenset({"system", "user", "assistant", "tool"}),
    "content?": str,
    "images?": list,
    "tool_name?": str,
    "tool_calls?": [{"function": {"name": str, "arguments": dict, **OTHERS}, **OTHERS}],
    **OTHERS,
}


def _read(request: Mapping[str, Any]) -> list[Message]:
    return [_message(f"messages[{number}]", message) for number, message in enumerate(request["messages"])]


def _message(where: str, message: Mapping[str, Any]) -> Message:
    images = enumerate(message.get("images") or ())
    media = tuple(Media(f"{where}.images[{number}]", "image", None, str(data)) for number, data in images)
    calls = tuple(Ref("", call["function"]["name"]) for call in message.get("tool_calls") or ())
    answers = (Ref("", message.get("tool_name") or ""),) if message["role"] == "tool" else ()
    return Message(where, message["role"], message.get("content") or "", calls, answers, media, message)


OLLAMA = Dialect(
    {"messages": [_MESSAGE], "tools?": Many(TOOL), **OTHERS},
    _read,
    (whole_base64, readable(_DECODED, "{where}: image: unknown format")),
    tools_of,
)
