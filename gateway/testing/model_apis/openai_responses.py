"""Stand-in for OpenAI's Responses API.

Types: openai 3.52.0, `types.responses`: the output of a function call is a string or a list of input_text, input_image
and input_file, and no message has sound. Pairing is from the API's own error texts ("No tool output found ...").

Functions may be in a namespace, and be found only by `tool_search`, as Codex 0.169.0 offers those of MCP servers: here
such a function is called `namespace/name`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from gateway.core.model.json_values import is_list
from gateway.testing.model_apis.openai_chat import IMAGES
from gateway.testing.model_apis.read_request import Conversation, Dialect, Kind, Media, Message, Ref, from_uri, lines
from gateway.testing.model_apis.rules import named, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Tagged
from gateway.testing.model_apis.strict_tools import strict_tools

SEARCH = "tool_search"
"""The tool with which the model looks for functions that are not offered yet."""
_INPUT = {
    "input_text": {"text": str, **OTHERS},
    "input_image": {
        "image_url?": str,
        "file_id?": str,
        "detail?": frozenset({"auto", "low", "high", "original"}),
        **OTHERS,
    },
    "input_file": {"file_data?": str, "file_id?": str, "file_url?": str, "filename?": str, **OTHERS},
}
_CONTENT = AnyOf((str, [Tagged(_INPUT)]))
_SPOKEN = AnyOf((str, [Tagged({"output_text": {"text": str, **OTHERS}, "refusal": {"refusal": str, **OTHERS}})]))
_MESSAGE = Tagged(
    {
        **{role: {"content": _CONTENT, **OTHERS} for role in ("user", "system", "developer")},
        "assistant": {"content": _SPOKEN, **OTHERS},
    },
    "role",
)
_ITEMS = Tagged(
    {
        "message": _MESSAGE,
        "function_call": {"call_id": str, "name": str, "arguments": str, **OTHERS},
        "function_call_output": {
            "call_id": str,
            "output": _CONTENT,
            "id?": str,
            "status?": frozenset({"in_progress", "completed", "incomplete"}),
        },
        "reasoning": {"summary": list, **OTHERS},
        "item_reference": {"id": str},
        "tool_search_call": {"call_id?": str, "execution?": str, "arguments": object, **OTHERS},
        "tool_search_output": {"call_id?": str, "execution?": str, "tools": list, **OTHERS},
    },
    default="message",
)


def _read(request: Mapping[str, Any]) -> list[Message]:
    items = request["input"]
    if isinstance(items, str):
        return [Message("input", "user", items)]
    return [_item(f"input[{number}]", item) for number, item in enumerate(items)]


def _item(where: str, item: Mapping[str, Any]) -> Message:
    match item.get("type", "message"):
        case "function_call":
            return Message(where, "assistant", calls=(Ref(item["call_id"], item["name"]),), raw=item)
        case "function_call_output":
            text, media = _content(f"{where}.output", item["output"])
            return Message(where, "tool", text, answers=(Ref(item["call_id"], ""),), media=media, raw=item)
        case "tool_search_call" if item.get("call_id"):
            return Message(where, "assistant", calls=(Ref(item["call_id"], SEARCH),), raw=item)
        case "tool_search_output" if item.get("call_id"):
            return Message(where, "tool", answers=(Ref(item["call_id"], ""),), raw=item)
        case "message":
            text, media = _content(f"{where}.content", item["content"])
            return Message(where, item["role"], text, media=media, raw=item)
        case _:
            return Message(where, "assistant", raw=item)


_CARRIERS: tuple[tuple[str, Kind], ...] = (("image_url", "image"), ("file_data", "document"))


def _content(where: str, content: Any) -> tuple[str, tuple[Media, ...]]:
    if isinstance(content, str):
        return content, ()
    parts: list[Mapping[str, Any]] = content
    media: list[Media] = []
    for number, part in enumerate(parts):
        for name, kind in _CARRIERS:
            if part.get(name):
                media += from_uri(f"{where}[{number}].{name}", kind, part[name])
    return lines(part.get("text") for part in parts), tuple(media)


def _outputs(conversation: Conversation) -> Iterable[str]:
    """Every call must have an output with its id, and every output a call, anywhere in the input."""
    request = conversation.request
    earlier = request.get("previous_response_id") or request.get("conversation")
    called: set[str] = set()
    given: set[str] = set()
    for message in conversation.messages:
        called |= {call.id for call in message.calls}
        for answer in message.answers:
            given.add(answer.id)
            if answer.id not in called and not earlier:
                yield f"{message.where}: No tool call found for function call output with call_id {answer.id}."
    for call in sorted(called - given):
        yield f"No tool output found for function call {call}."


def _something(conversation: Conversation) -> Iterable[str]:
    wanted = {"input_image": ("image_url", "file_id"), "input_file": ("file_data", "file_id", "file_url")}
    for message in conversation.messages:
        raw = message.raw or {}
        content: Any = raw.get("content") or raw.get("output")
        parts = cast("list[Mapping[str, Any]]", content if isinstance(content, list) else [])
        for number, part in enumerate(parts):
            names = wanted.get(str(part.get("type")), ())
            if names and not any(part.get(name) for name in names):
                yield f"{message.where}[{number}]: one of {', '.join(names)} is required"


def _functions(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [tool for tool in request.get("tools") or () if tool["type"] == "function" and tool.get("name")]


def _tools(request: Mapping[str, Any]) -> list[str]:
    items: Any = request["input"]
    found = [
        tool
        for item in cast("list[Mapping[str, Any]]", items if isinstance(items, list) else [])
        if item.get("type") == "tool_search_output"
        for tool in item["tools"]
    ]
    return list(dict.fromkeys(_names([*(request.get("tools") or ()), *found])))


def _names(tools: Iterable[Mapping[str, Any]], space: str = "") -> Iterable[str]:
    for tool in tools:
        match tool:
            case {"type": "namespace", "name": str(name), "tools": inner} if is_list(inner):
                yield from _names(inner, f"{name}/")
            case {"type": "function", "name": str(name)} if name:
                yield space + name
            case {"type": "tool_search", "execution": "client"}:
                yield SEARCH
            case _:
                pass


OPENAI_RESPONSES = Dialect(
    {
        "input": AnyOf((str, [_ITEMS])),
        # Functions are flat here, and other tools (web_search, mcp ...) have forms of their own.
        "tools?": [AnyOf((Tagged({"function": {"name": str, **OTHERS}}), {"type": str, "name?": str, **OTHERS}))],
        **OTHERS,
    },
    _read,
    (
        _outputs,
        _something,
        whole_base64,
        *IMAGES,
        named(r"(?:[a-zA-Z0-9_-]{1,64}/)?[a-zA-Z0-9_-]{1,64}"),
        strict_tools(_functions),
    ),
    _tools,
)
