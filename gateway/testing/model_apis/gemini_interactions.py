"""Stand-in for Gemini's Interactions API.

Types: google-genai 3.4.0, `interactions`: the steps and contents, and their media types. The result of a function is a
string, an object, or contents of any kind.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from gateway.core.model.json_values import is_object
from gateway.testing.model_apis.read_request import Conversation, Dialect, Kind, Media, Message, Ref, lines
from gateway.testing.model_apis.rules import named, types, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Many, Tagged

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"


def _all(top: str, names: str) -> frozenset[str]:
    return frozenset(f"{top}/{name}" for name in names.split())


TYPES: Mapping[Kind, frozenset[str]] = {
    "image": _all("image", "png jpeg webp heic heif gif bmp tiff"),
    "audio": _all("audio", "wav mp3 aiff aac ogg flac mpeg m4a l16 opus alaw mulaw webm"),
    "video": _all("video", "mp4 mpeg mpg mov avi x-flv webm wmv 3gpp"),
    "document": frozenset(
        {
            *_all("application", "pdf msword vnd.ms-excel vnd.ms-powerpoint"),
            *(f"{_OFFICE}.{kind}" for kind in ("presentationml.presentation", "spreadsheetml.sheet")),
            *(f"{_OFFICE}.wordprocessingml.{kind}" for kind in ("document", "template")),
            *(f"{_OPEN}.{kind}" for kind in ("presentation", "text", "spreadsheet")),
            "text/csv",
        }
    ),
}
_MEDIA = {"mime_type?": str, "data?": str, "uri?": str, **OTHERS}
_CONTENT = Tagged({"text": {"text": str, **OTHERS}, **dict.fromkeys(TYPES, _MEDIA)})
_STEP = Tagged(
    {
        **_CONTENT.kinds,
        "user_input": {"content": AnyOf((str, [_CONTENT])), **OTHERS},
        "model_output": {"content?": list, **OTHERS},
        "thought": OTHERS,
        "function_call": {"id": str, "name": str, "arguments": dict, "signature?": str},
        "function_result": {
            "call_id": str,
            "result": AnyOf((str, {"type?": str, **OTHERS}, Many(_CONTENT))),
            "name?": str,
            "is_error?": bool,
            "signature?": str,
        },
    }
)


def _read(request: Mapping[str, Any]) -> list[Message]:
    given = request["input"]
    if isinstance(given, str):
        return [Message("input", "user", given)]
    return [_step(f"input[{number}]", step) for number, step in enumerate(given)]


def _step(where: str, step: Mapping[str, Any]) -> Message:
    kind: str = step["type"]
    if kind == "function_call":
        return Message(where, "assistant", calls=(Ref(step["id"], step["name"]),), raw=step)
    if kind in ("model_output", "thought"):
        return Message(where, "assistant", raw=step)
    held = step if kind in _CONTENT.kinds else step.get("result" if kind == "function_result" else "content")
    # An object that is not a list of contents is the tool's own JSON, and has no media.
    parts = cast("list[Any]", held if isinstance(held, list) else [held])
    shown = () if kind == "function_result" and held is not parts else enumerate(parts)
    media = [found for number, part in shown for found in _media(f"{where}[{number}]", part)]
    text = lines(part if isinstance(part, str) else part.get("text") for part in parts)
    answers = (Ref(step["call_id"], step.get("name") or ""),) if kind == "function_result" else ()
    return Message(where, "tool" if answers else "user", text, answers=answers, media=tuple(media), raw=step)


def _media(where: str, part: Any) -> list[Media]:
    if not is_object(part):
        return []
    kinds: list[Kind] = [kind for kind in TYPES if kind == part.get("type") and part.get("data")]
    return [Media(f"{where}.data", kind, part.get("mime_type"), part["data"]) for kind in kinds]


def _known_calls(conversation: Conversation) -> Iterable[str]:
    called: set[str] = set()
    for message in conversation.messages:
        called |= {call.id for call in message.calls}
        for answer in message.answers:
            if answer.id not in called and not conversation.request.get("previous_interaction_id"):
                yield f"{message.where}: function_result with call_id {answer.id} has no function_call"
    for call in sorted(called - {answer.id for message in conversation.messages for answer in message.answers}):
        yield f"function_call {call} has no function_result"


def _in_a_list(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Wrap a single content, which is also allowed, in a list."""
    return {**request, "input": [request["input"]]} if isinstance(request.get("input"), Mapping) else request


def _tools(request: Mapping[str, Any]) -> list[str]:
    return [tool["name"] for tool in request.get("tools") or () if tool["type"] == "function" and tool.get("name")]


GEMINI_INTERACTIONS = Dialect(
    {"input": AnyOf((str, [_STEP])), "tools?": [{"type": str, "name?": str, **OTHERS}], **OTHERS},
    _read,
    (
        _known_calls,
        whole_base64,
        types(TYPES, "{where}: mime_type {type} is not supported"),
        named(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"),
    ),
    _tools,
    _in_a_list,
)
