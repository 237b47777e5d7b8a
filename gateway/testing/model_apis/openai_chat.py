"""Stand-ins for OpenAI's Chat Completions and the many APIs of the same form.

Types: openai 3.52.0, `types.chat`. Pairing and the place of images:
https://github.com/All-Hands-AI/OpenHands/issues/7700 (400), https://github.com/openai/openai-openapi/issues/523
(GPT-5.2: accepted and not seen). The rules on empty arrays and image formats are from the API's own error texts.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from gateway.testing.model_apis.chat_templates import alternating, answered_first, tools_write
from gateway.testing.model_apis.read_request import (
    Conversation,
    Dialect,
    Kind,
    Media,
    Message,
    Ref,
    Rule,
    from_uri,
    lines,
)
from gateway.testing.model_apis.rules import RASTER, answered, named, readable, types, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Tagged
from gateway.testing.model_apis.strict_tools import strict_tools

_DETAIL = frozenset({"auto", "low", "high", "original"})
_URL = {"url": str, **OTHERS}
PARTS: Mapping[str, Any] = {
    "text": {"text": str, **OTHERS},
    # Strands writes the media type as `format` beside it, and OpenAI takes that: strands-agents/harness-sdk#320, #341.
    "image_url": {"image_url": {"url": str, "detail?": _DETAIL, "format?": str}, **OTHERS},
    "input_audio": {"input_audio": {"data": str, "format": frozenset({"wav", "mp3"})}, **OTHERS},
    "file": {"file": {"file_data?": str, "file_id?": str, "filename?": str}, **OTHERS},
    # vLLM's own (vllm-project/vllm, chat_utils.py, MM_PARSER_MAP); Together and Fireworks have video_url.
    "audio_url": {"audio_url": _URL, **OTHERS},
    "video_url": {"video_url": _URL, **OTHERS},
}
_FUNCTION = {"name": str, "arguments": str, **OTHERS}
CALLS = [{"id": str, "type?": frozenset({"function"}), "function": _FUNCTION, **OTHERS}]
TOOL = Tagged({"function": {"function": {"name": str, **OTHERS}}, "custom": OTHERS})

Reader: TypeAlias = Callable[[str, Mapping[str, Any], bool], tuple[Media, ...]]
"""Takes a part's place, the part, and whether the model sees it there; returns its media."""


def uri_part(kind: Kind, name: str) -> Reader:
    """Return a reader for parts with a URL under `name`, as a string or in an object with a `url`."""

    def read_part(where: str, part: Mapping[str, Any], shown: bool) -> tuple[Media, ...]:
        address = part[name] if isinstance(part[name], str) else part[name]["url"]
        return from_uri(f"{where}.{name}", kind, address, shown=shown)

    return read_part


def _audio(where: str, part: Mapping[str, Any], shown: bool) -> tuple[Media, ...]:
    sound = part["input_audio"]
    return (Media(f"{where}.input_audio", "audio", f"audio/{sound['format']}", sound["data"], shown),)


def _file(where: str, part: Mapping[str, Any], shown: bool) -> tuple[Media, ...]:
    data = part["file"].get("file_data")
    return from_uri(f"{where}.file", "document", data, shown=shown) if data else ()


READERS: Mapping[str, Reader] = {
    "image_url": uri_part("image", "image_url"),
    "input_audio": _audio,
    "file": _file,
    "audio_url": uri_part("audio", "audio_url"),
    "video_url": uri_part("video", "video_url"),
}


def parts_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a message's content. A plain string is one text part."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def reader(
    readers: Mapping[str, Reader] = READERS, *, shown_on_tool: bool = True
) -> Callable[[Mapping[str, Any]], list[Message]]:
    """Return a reader for requests in the form of chat messages."""

    def read(request: Mapping[str, Any]) -> list[Message]:
        return [_message(f"messages[{number}]", message) for number, message in enumerate(request["messages"])]

    def _message(where: str, message: Mapping[str, Any]) -> Message:
        media: list[Media] = []
        for number, part in enumerate(parts_of(message)):
            if part["type"] in readers:
                shown = shown_on_tool or message["role"] != "tool"
                media += readers[part["type"]](f"{where}.content[{number}]", part, shown)
        calls = tuple(Ref(call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ())
        answers = (Ref(message["tool_call_id"], "") for _ in [0] if message["role"] == "tool")
        text = lines(part.get("text") for part in parts_of(message))
        return Message(where, message["role"], text, calls, tuple(answers), tuple(media), message)

    return read


def tools_of(request: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions that a request offers."""
    return [function["name"] for function in functions_of(request)]


def functions_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the functions that a request offers."""
    return [tool["function"] for tool in request.get("tools") or () if tool["type"] == "function"]


def messages_shape(user: Any, tool: Any, calls: Any = CALLS) -> Any:
    """Return the shape of a request whose messages have these contents."""
    plain = AnyOf((str, [Tagged({"text": PARTS["text"]})]))
    spoken = AnyOf((str, [Tagged({"text": OTHERS, "refusal": OTHERS, "thinking": OTHERS})]))
    by_role = {
        "system": {"content": plain, **OTHERS},
        "developer": {"content": plain, **OTHERS},
        "user": {"content": user, **OTHERS},
        "assistant": {"content?": spoken, "tool_calls?": calls, **OTHERS},
        "tool": {"content": tool, "tool_call_id": str, **OTHERS},
    }
    return {"messages": [Tagged(by_role, "role")], "tools?": [TOOL], **OTHERS}


# -- rules that are not in the types ------------------------------------------------------------

ANSWERED = answered(
    split=True,
    missing="{where}: An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    stray="{where}: messages with role 'tool' must be a response to a preceding message with 'tool_calls' ({id})",
)
IMAGES: tuple[Rule, ...] = (
    types({"image": RASTER}, "{where}: You uploaded an unsupported image: {type}. Use png, jpeg, gif or webp."),
    readable(RASTER, "{where}: You uploaded an unsupported image. Use png, jpeg, gif or webp."),
)
NAMED = named(r"[a-zA-Z0-9_-]{1,64}")


def speaks(conversation: Conversation) -> Iterable[str]:
    """An assistant's message must have text or tool calls."""
    for message in conversation.messages:
        raw = message.raw or {}
        if message.role == "assistant" and raw.get("content") is None and not (message.calls or raw.get("refusal")):
            yield f"{message.where}.content: expected a string, got null"


def text_only(allowed: frozenset[str], *, silent: str = "", refusing: str = "*") -> Rule:
    """Allow only parts in `allowed` in tool messages, for models that match `refusing` and not `silent`."""

    def rule(conversation: Conversation) -> Iterable[str]:
        model = conversation.model.lower()
        if fnmatchcase(model, silent) or not fnmatchcase(model, refusing):
            return
        for message in conversation.messages:
            kinds = {part["type"] for part in parts_of(message.raw or {})} if message.role == "tool" else set[str]()
            if "image_url" in kinds - allowed:
                yield f"{message.where}: Image URLs are only allowed for messages with role 'user'"
            for kind in sorted(kinds - allowed - {"image_url"}):
                yield f"{message.where}: '{kind}' is not allowed in messages with role 'tool'"

    return rule


def _blind(*models: str) -> Rule:
    """Refuse all parts but text for these models: 400, "unknown variant `image_url`, expected `text`"."""

    def rule(conversation: Conversation) -> Iterable[str]:
        if any(fnmatchcase(conversation.model.lower(), model) for model in models):
            for message in conversation.messages:
                for kind in sorted({part["type"] for part in parts_of(message.raw or {})} - {"text"}):
                    yield f"{message.where}: unknown variant `{kind}`, expected `text`"

    return rule


def _one_file(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        for part in parts_of(message.raw or {}):
            if part["type"] == "file" and not (part["file"].get("file_data") or part["file"].get("file_id")):
                yield f"{message.where}: a file needs file_data or file_id"


RULES: tuple[Rule, ...] = (ANSWERED, speaks, _one_file, whole_base64, *IMAGES, NAMED)


def dialect(user: str, *, tool: str = "text", rules: tuple[Rule, ...] = ()) -> Dialect:
    """Return a profile of this API with the parts of a user's message, and those of a tool's that its model sees."""
    kinds = Tagged({kind: PARTS[kind] for kind in user.split()})
    in_tool = Tagged({kind: PARTS[kind] for kind in [*user.split(), *tool.split()]})
    shape = messages_shape(AnyOf((str, [kinds])), AnyOf((str, [in_tool])))
    return Dialect(shape, reader(shown_on_tool=tool != "text"), (*RULES, *rules), tools_of)


_STRICT = text_only(frozenset({"text"}))
_ALL = "text image_url input_audio file"
_VLLM = "text image_url input_audio audio_url video_url"
_KIMI = text_only(
    frozenset({"text"}), refusing="*kimi*"
)  # its template: https://github.com/vllm-project/vllm/issues/43203
OPENAI_CHAT = dialect(_ALL, rules=(text_only(frozenset({"text"}), silent="gpt-5.[2-9]*"), strict_tools(functions_of)))
STRICT = dialect("text image_url", rules=(_STRICT,))
PROFILES: Mapping[str, Dialect] = {
    "openai_chat": OPENAI_CHAT,
    "azure": OPENAI_CHAT,
    "openai_compat": dialect("text image_url", tool="text image_url"),
    "openai_compat_strict": STRICT,
    # https://github.com/NousResearch/hermes-agent/pull/109707, https://github.com/jxxghp/MoviePilot/issues/5863
    "deepseek": dialect("text image_url", rules=(_STRICT, _blind("deepseek-chat*", "deepseek-reasoner*"))),
    "fal": STRICT,
    "perplexity": STRICT,
    "xai": dialect("text image_url file", rules=(_STRICT,)),  # xai-sdk 1.21.0: tool_result(result: str)
    "openrouter": dialect("text image_url file", rules=(_STRICT,)),
    "fireworks": dialect("text image_url video_url", rules=(_STRICT,)),  # fireworks-ai 1.2.28
    "together": dialect(_VLLM, rules=(_STRICT,)),  # together 3.1.1
    # chat_utils.py: read whatever the role
    "vllm": dialect(_VLLM, tool=_VLLM, rules=(_KIMI, answered_first, tools_write)),
    # ggml-org/llama.cpp#22536
    "llama_cpp": dialect("text image_url input_audio", tool="text image_url", rules=(alternating,)),
}
