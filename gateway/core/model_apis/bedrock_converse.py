"""Amazon Bedrock Converse: the message in the output becomes the assistant's message unchanged.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; botocore 1.44.5 (ConverseResponse,
ToolSpecification).

- Completions: reasoning is returned whole, with its signature; boto3 uses bytes for redacted reasoning.
- Turns: `toolResult` blocks hold text, images, documents and video themselves:
  https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html. A document's name is
  limited to letters, digits, single spaces and - ( ) [ ], must be unique, and needs text beside it; text must not be
  blank. `bytes` is base64 here, as in the HTTP API. The AWS SDKs take the bytes themselves and encode what they are
  given: see `for_boto3`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pybase64

from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.model.turn import Answer, Media, Part, Turn, Words
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, completion_with, gathered, parsed, tool_call
from gateway.core.model_apis.sdk_json import objects_without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""ToolSpecification.name: `[a-zA-Z0-9_-]+`, 64 characters."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `toolConfig.tools` of a request: `{"toolSpec": {...}}` each."""
    return [{"toolSpec": _spec(tool)} for tool in tools]


def _spec(tool: Mapping[str, Any]) -> dict[str, Any]:
    # A description may be left out, but must not be empty.
    description = {"description": text} if (text := (tool.get("description") or "").strip()) else {}
    return {"name": tool["name"], **description, "inputSchema": {"json": parameters(tool)}}


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the toolUse blocks in order. Raises InvalidRequest: `completion` is not a response."""
    calls = [as_object(block.get("toolUse")) for block in _content(completion)]
    return tuple(tool_call(call.get("toolUseId"), call["name"], call.get("input")) for call in calls if "name" in call)


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the assistant's message; empty if the model said nothing, because content must not be empty."""
    # Responses sometimes contain blank text, which requests must not.
    content = [block for block in _content(completion) if "text" not in block or str(block["text"]).strip()]
    for block in content:
        if isinstance((call := as_object(block.get("toolUse"))).get("input"), str):
            block["toolUse"] = {**call, "input": {}}  # malformed, and answered as such; the API accepts only objects
    return [{"role": "assistant", "content": content}] if content else []


def _content(completion: Any) -> list[dict[str, Any]]:
    message = as_object(as_object(completion_with(completion, "output").get("output")).get("message"))
    return objects_without_nulls(message.get("content"))


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the events of `converse_stream` into a response. Raises InvalidRequest: there are no events.

    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html
    """
    blocks: dict[Any, dict[str, Any]] = {}
    for event in chunks_as_json(chunks):
        for piece, member in ((event.get("contentBlockStart"), "start"), (event.get("contentBlockDelta"), "delta")):
            block = as_object(piece)
            if block:
                gathered(blocks.setdefault(block.get("contentBlockIndex"), {}), as_object(block.get(member)))
    content = [_whole(block) for block in blocks.values() if block]
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """Convert a block to the form that `converse` returns: input as an object, reasoning text one level deeper."""
    call = as_object(block.get("toolUse"))
    if call:
        return {"toolUse": {**call, "input": parsed(call.get("input", ""))}}
    reasoning = as_object(block.get("reasoningContent"))
    if "text" in reasoning:
        return {"reasoningContent": {"reasoningText": dict(reasoning)}}
    return block


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
}


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the one user message that follows the assistant's."""
    content: list[dict[str, Any]] = [{"toolResult": _tool_result(answer)} for answer in turn.answers]
    content += [write_part(part) for part in turn.follow_up_parts]
    return [{"role": "user", "content": content}]


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts."""
    return {"role": "user", "content": [write_part(part) for part in parts]}


def _tool_result(answer: Answer) -> dict[str, Any]:
    if answer.raw is not None:
        blocks = answer.raw
    else:
        blocks = [write_part(part) for part in answer.parts if isinstance(part, Media) or part.text.strip()]
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        blocks = [{"text": answer.text}, *blocks]
    status = "error" if answer.is_error else "success"
    return {"toolUseId": answer.call.id, "status": status, "content": blocks}


def write_part(part: Part) -> dict[str, Any]:
    """Write one content block: `text`, `image`, `document` or `video`."""
    if isinstance(part, Words):
        return {"text": part.text}
    source = {"s3Location": {"uri": part.url}} if part.ref else {"bytes": part.data}
    file_format = _FORMATS.get(part.media_type, part.media_type.rsplit("/", 1)[-1])
    if part.kind == "document":
        return {"document": {"format": file_format, "name": _document_name(part), "source": source}}
    return {part.kind: {"format": file_format, "source": source}}


def _document_name(media: Media) -> str:
    """Return a name in the allowed characters, unique in the turn by the number of its label."""
    title = (media.title or "").rsplit(".", 1)[0]
    return " ".join(re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", f"{title[:150]} {media.label}").split())


_OPAQUE = frozenset({"input", "json", "additionalModelRequestFields"})
"""Members that hold a tool's own JSON, in which `source` and `bytes` have no special meaning."""


def for_boto3(messages: Sequence[Any]) -> list[Any]:
    """Return the messages in the form that boto3, like every AWS SDK for Python, expects: `bytes` of media as bytes.

    botocore encodes blobs itself (`botocore.serialize`: `_serialize_type_blob`), so base64 text would be encoded twice
    and be unreadable for the model. Values that are bytes already stay; nothing is changed in place.

    Raises:
        ValueError: a `bytes` is text that is not base64.
    """
    return [_with_bytes(message) for message in messages]


def _with_bytes(value: Any) -> Any:
    """The value with its media as bytes; the very same object where there is none to change."""
    if is_list(value):
        changed = [_with_bytes(item) for item in value]
        return changed if any(new is not old for new, old in zip(changed, value, strict=True)) else value
    if not is_object(value):
        return value
    made = {key: _member(key, member) for key, member in value.items() if key not in _OPAQUE}
    return {**value, **made} if any(made[key] is not value[key] for key in made) else value


def _member(key: str, value: Any) -> Any:
    if key == "source" and is_object(value):
        data = value.get("bytes")
        return {**value, "bytes": pybase64.b64decode(data, validate=True)} if isinstance(data, str) else value
    return _with_bytes(value)
