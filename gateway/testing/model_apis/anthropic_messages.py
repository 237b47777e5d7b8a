"""Stand-in for Anthropic's Messages API.

Types: anthropic 2.11.0 (unknown members are refused). A message of the role `system` in between is what Claude Code
2.1.328 sends its API. tool_result blocks come first, in the next message:
https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use. With `is_error`, only text is allowed:
vellum#18387, copilot-api#196, markform#153. Text must not be blank:
https://github.com/anthropics/claude-code/issues/59812. The declared type must be that of the bytes:
https://github.com/anthropics/claude-code/issues/15746. Counts and pixels:
https://docs.claude.com/en/docs/build-with-claude/vision; 5 MB for an image is from users' reports, 32 MB for a request
https://docs.claude.com/en/api/errors.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gateway.testing.model_apis.read_request import Conversation, Dialect, Media, Message, Ref, lines
from gateway.testing.model_apis.rules import RASTER, answered, at_most, labelled, lighter, named, no_wider, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, AnyOf, Many, Tagged

_CACHED = {"cache_control?": dict}
_URL, _FILE = {"url": str}, {"file_id": str}
_IMAGE = {
    "source": Tagged({"base64": {"media_type": RASTER, "data": str}, "url": _URL, "file": _FILE}),
    "transformations?": dict,
    **_CACHED,
}
_TEXT = {"text": str, "citations?": list, **_CACHED}
_DOCUMENT = {
    "source": Tagged(
        {
            "base64": {"media_type": frozenset({"application/pdf"}), "data": str},
            "text": {"media_type": frozenset({"text/plain"}), "data": str},
            "content": {"content": AnyOf((str, list))},
            "url": _URL,
            "file": _FILE,
        }
    ),
    "title?": str,
    "context?": str,
    "citations?": dict,
    **_CACHED,
}
_SHOWN = {"text": _TEXT, "image": _IMAGE, "document": _DOCUMENT, "search_result": OTHERS}
_IN_RESULT = Tagged({**_SHOWN, "tool_reference": OTHERS, "browser_state": OTHERS})
_RESULT = {
    "tool_use_id": str,
    "content?": AnyOf((str, Many(_IN_RESULT))),
    "is_error?": bool,
    "toolset_name?": str,
    **_CACHED,
}
_USE = {"id": str, "name": str, "input": dict, "caller?": dict, "toolset_name?": str, **_CACHED}
_THOUGHT = {"thinking": {"thinking": str, "signature": str}, "redacted_thinking": {"data": str}}
_MESSAGE = Tagged(
    {
        "user": {"content": AnyOf((str, [Tagged({**_SHOWN, "tool_result": _RESULT})]))},
        "assistant": {"content": AnyOf((str, [Tagged({**_SHOWN, "tool_use": _USE, **_THOUGHT})]))},
        "system": {"content": AnyOf((str, [Tagged({"text": _TEXT})]))},
    },
    "role",
)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _read(request: Mapping[str, Any]) -> list[Message]:
    return [_message(f"messages.{number}", message) for number, message in enumerate(request["messages"])]


def _message(where: str, message: Mapping[str, Any]) -> Message:
    blocks = _blocks(message["content"])
    media: list[Media] = []
    for number, block in enumerate(blocks):
        at = f"{where}.content.{number}"
        inner = enumerate(_blocks(block.get("content"))) if block["type"] == "tool_result" else ()
        media += [found for place, one in inner for found in _media(f"{at}.tool_result.content.{place}", one)]
        media += _media(at, block)
    calls = tuple(Ref(block["id"], block["name"]) for block in blocks if block["type"] == "tool_use")
    answers = tuple(Ref(block["tool_use_id"], "") for block in blocks if block["type"] == "tool_result")
    text = lines(block["text"] for block in blocks if block["type"] == "text")
    return Message(where, message["role"], text, calls, answers, tuple(media), message)


def _media(where: str, block: Mapping[str, Any]) -> list[Media]:
    if block["type"] not in ("image", "document") or block["source"]["type"] != "base64":
        return []
    source = block["source"]
    return [Media(f"{where}.{block['type']}.source.base64", block["type"], source["media_type"], source["data"])]


def _each(check: Callable[[str, Mapping[str, Any]], Iterable[str]], kind: str) -> Any:
    """Return a rule for every block of a kind, including those inside tool results."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for message in conversation.messages:
            for number, block in enumerate(_blocks((message.raw or {})["content"])):
                at = f"{message.where}.content.{number}"
                nested = _blocks(block.get("content")) if block["type"] == "tool_result" else []
                inner = [(f"{at}.tool_result.content.{place}", one) for place, one in enumerate(nested)]
                for where, one in [(at, block), *inner]:
                    if one["type"] == kind:
                        yield from check(where, one)

    return rule


def _text(where: str, block: Mapping[str, Any]) -> Iterable[str]:
    if not block["text"]:
        yield f"{where}: text content blocks must be non-empty"
    elif not block["text"].strip():
        yield f"{where}: text content blocks must contain non-whitespace text"


def _error(where: str, block: Mapping[str, Any]) -> Iterable[str]:
    inside = _blocks(block.get("content"))
    if block.get("is_error") and not inside:
        yield f"{where}.tool_result: content cannot be empty if `is_error` is true"
    if block.get("is_error") and any(one["type"] != "text" for one in inside):
        yield f"{where}.tool_result: all content must be type `text` if `is_error` is true"


def _id(where: str, block: Mapping[str, Any]) -> Iterable[str]:
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
        yield f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"


def _results_first(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        kinds = [block["type"] == "tool_result" for block in _blocks((message.raw or {})["content"])]
        if kinds != sorted(kinds, reverse=True):
            yield f"{message.where}: `tool_result` blocks must come before all other content"


def _whole_request(conversation: Conversation) -> Iterable[str]:
    size = sum(len(media.data) for media in conversation.media)
    if size > 32_000_000:
        yield f"Request exceeds the maximum size: {size} bytes of media > 32000000 bytes"


def _many_are_small(conversation: Conversation) -> Iterable[str]:
    many = sum(media.kind == "image" for media in conversation.media) > 20
    return no_wider(2_000 if many else 8_000)(conversation)


ANTHROPIC_MESSAGES = Dialect(
    {"messages": [_MESSAGE], "max_tokens": int, "model?": str, "tools?": [{"name": str, **OTHERS}], **OTHERS},
    _read,
    (
        answered(
            missing="{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}",
            stray="{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id}",
        ),
        _results_first,
        _each(_text, "text"),
        _each(_error, "tool_result"),
        _each(_id, "tool_use"),
        whole_base64,
        labelled("{where}.data: Image does not match the provided media type {type}"),
        at_most(100, "image"),
        lighter(5 * 1024 * 1024, "image", encoded=True),
        _many_are_small,
        _whole_request,
        named(r"[a-zA-Z0-9_-]{1,128}"),
    ),
    lambda request: [tool["name"] for tool in request.get("tools") or ()],
)
