"""Recognise the forms in which clients pass on a tool's result, and read them as an envelope.

These are a CallToolResult printed as JSON (google-adk, Cline), lists of blocks in the form of MCP, OpenAI, Anthropic,
the AI SDK (`file` parts) or LangChain, Gemini's inline data, and any of them wrapped as `{"result": ...}`, `{"output":
...}` or `{"error": ...}`, as values or as strings. Anything else is text, and is left to `gateway.core.results.rescue`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from gateway.core.model import media_types
from gateway.core.model.base64_text import URI_PREFIX, URL_SAFE, mend
from gateway.core.model.blocks import AudioBlock, ImageBlock, ResourceBlock
from gateway.core.model.contents import found_in
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.model.turn import DETAIL_KEY, DETAILS
from gateway.core.results.lift_result import lift
from gateway.core.results.rescue import block_for, rescue

_DEEPEST = 6
"""Maximum number of nested wrappers that are removed."""
_SHORTEST = 16
_BASE64_START = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
_WRAPPERS = ("result", "output", "response", "tool_result", "error")
_OF_RESULTS = frozenset(
    {"content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta", "annotations"}
    | {"resultType", "result_type", "type", "tool_use_id"}
)
"""Members of a CallToolResult, also as clients print it; an object with any other member is something else."""
_TEXTS = frozenset({"text", "input_text", "output_text"})
_TYPE_KEYS = ("mimeType", "mime_type", "mediaType", "media_type", "contentType", "content_type")
_NAME_KEYS = ("filename", "fileName", "name", "title", "displayName")
_FORMATS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_BYTES = (
    *("data", "base64", "blob", "file_data", "b64_json", "url", "image_url", "source", "resource", "file"),
    *("input_audio", "audio_url", "video_url", "inlineData", "inline_data", "image", "audio"),
)
"""Members that hold bytes as base64 or as a data URI, or an object that does."""

_ALPHABETS = {"source": (), "input_audio": (), "data": (), "inlineData": (URL_SAFE,), "inline_data": (URL_SAFE,)}
"""Alphabets that an API accepts beside plain base64 in its own part with this member; for others, data URIs."""


def envelope_of(value: Any, *, is_error: bool = False) -> Envelope:
    """Read the envelope of a tool's result in a request: a string, a list or an object. Never raises."""
    result = _result_in(value, 0)
    if result is None:
        text = value if isinstance(value, str) else _dumped(value)
        result = {"content": [_text(text)]}
    envelope = rescue(lift(result))
    return envelope.model_copy(update={"is_error": True}) if is_error and not envelope.is_error else envelope


def has_media(envelope: Envelope) -> bool:
    """Whether there are bytes in an envelope."""
    return any(
        isinstance(block, ImageBlock | AudioBlock)
        or (isinstance(block, ResourceBlock) and block.resource.blob is not None)
        for block in envelope.blocks
    )


def is_exact(part: Mapping[str, Any]) -> bool:
    """Whether a part in an API's own form holds base64 as the API requires it, of the type that it declares."""
    payload = _payload(part, None, 0)
    if payload is None:
        return False
    mended = mend(payload[0])
    found = found_in(mended, payload[1])
    declared_types = (mended.media_type, payload[1])
    taken = next((taken for key, taken in _ALPHABETS.items() if key in part), (URI_PREFIX,))
    return found is not None and {*declared_types} <= {None, found.media_type} and {*mended.mended} <= {*taken}


def block_of(part: Any) -> dict[str, Any] | None:
    """Return a part with media or text in any known form as an MCP block; None if it is neither."""
    if not is_dict(part):
        return None
    if _is_text(part) and isinstance(part.get("text"), str):
        return _text(part["text"])
    if _is_mcp(part):
        return part
    payload = _payload(part, None, 0)
    if payload is None:
        return None
    data, declared = payload
    found = found_in(mend(data), declared)
    if found is None:
        return {"type": "image", "data": data, "mimeType": declared} if declared else None
    block = block_for(found).wire()
    if block["type"] == "image" and (detail := _detail(part)):
        block["_meta"] = {DETAIL_KEY: detail}
    name = _name(part, 0)
    if block["type"] == "resource" and name:
        block["resource"]["uri"] = f"file:///{name}"
    return block


def _detail(part: Mapping[str, Any]) -> str | None:
    """Return the detail that the client wants for an image, given in the form of OpenAI Chat or Responses."""
    holder: Any = part.get("image_url")
    asked: Any = holder.get("detail") if is_dict(holder) else part.get("detail")
    return asked if asked in DETAILS else None


def _result_in(value: Any, depth: int) -> dict[str, Any] | None:
    """Find the CallToolResult in a value; None if it has no known form."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, str):
        parsed = _parsed(value)
        return None if parsed is None else _result_in(parsed, depth + 1)
    if is_list(value):
        return {"content": _blocks(value, depth)} if any(block_of(item) is not None for item in value) else None
    if not is_dict(value):
        return None
    if isinstance(value.get("content"), list) and set(value) <= _OF_RESULTS:
        return _call_tool_result(value, depth)
    for key in _WRAPPERS:
        if key in value and value[key] is not None and set(value) <= {*_WRAPPERS, "isError", "is_error"}:
            inner = _result_in(value[key], depth + 1) or {"content": _blocks([value[key]], depth)}
            return {**inner, "isError": True} if key == "error" or _says_error(value) else inner
    block = block_of(value)
    return None if block is None else {"content": [block]}


def _call_tool_result(members: Mapping[str, Any], depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {"content": _blocks(members["content"], depth), "isError": _says_error(members)}
    for key in ("structuredContent", "structured_content"):
        if members.get(key) is not None:
            result["structuredContent"] = members[key]
    return result


def _says_error(members: Mapping[str, Any]) -> bool:
    return members.get("isError") is True or members.get("is_error") is True


def _blocks(items: list[Any], depth: int) -> list[dict[str, Any]]:
    """Convert each item to a block; a text that is a result by itself is replaced by that result's blocks."""
    blocks: list[dict[str, Any]] = []
    for item in items:
        block = _text(item) if isinstance(item, str) else block_of(item) or _text(_dumped(item))
        inner = _result_in(block["text"], depth + 1) if block["type"] == "text" else None
        blocks += [block] if inner is None else inner["content"]
    return blocks


def _is_text(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in _TEXTS


def _is_mcp(item: Mapping[str, Any]) -> bool:
    match item.get("type"):
        case "image" | "audio":
            # Rescue has replaced the bytes by words in brackets.
            return isinstance(item.get("data"), str) and not item["data"].startswith("[")
        case "resource":
            resource = item.get("resource")
            return is_dict(resource) and isinstance(resource.get("uri"), str)
        case "resource_link":
            return isinstance(item.get("uri"), str)
        case _:
            return False


def _payload(item: Mapping[str, Any], inherited: str | None, depth: int) -> tuple[str, str | None] | None:
    """Return the bytes in an object, as base64, and the type declared beside them."""
    if _is_text(item):
        return None
    declared = next((item[key] for key in _TYPE_KEYS if isinstance(item.get(key), str)), inherited)
    format_name = item.get("format")
    declared = declared or (_FORMATS.get(format_name) if isinstance(format_name, str) else None)
    for key in _BYTES:
        value: Any = item.get(key)
        if isinstance(value, str) and _is_media(value, declared):
            return value, declared
        if is_dict(value) and depth < _DEEPEST:
            inner = _payload(value, declared, depth + 1)
            if inner is not None:
                return inner
    return None


def _is_media(text: str, declared: str | None) -> bool:
    beginning = text[:48].lstrip()
    if len(text) < _SHORTEST or (beginning[:5].lower() != "data:" and not _BASE64_START.fullmatch(beginning)):
        return False
    found = found_in(mend(text), declared)
    if found is None:
        return False
    return media_types.inspect_base64(found.data).media_type is not None or found.media_type is not None


def _name(item: Mapping[str, Any], depth: int) -> str | None:
    for key in _NAME_KEYS:
        if isinstance(item.get(key), str) and item[key]:
            return item[key]
    holders = (item.get(key) for key in ("file", "resource", "source"))
    objects = [holder for holder in holders if is_dict(holder)]
    return next((name for holder in objects if depth < 2 and (name := _name(holder, depth + 1))), None)


def _parsed(text: str) -> Any:
    start, end = text[:100].lstrip()[:1], text[-100:].rstrip()[-1:]
    if (start, end) not in (("{", "}"), ("[", "]")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(value: Any) -> str:
    try:
        return compact_json(value)
    except (ValueError, RecursionError):  # deeper than can be serialized
        return str(type(value).__name__)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
