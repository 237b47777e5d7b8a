"""Lowering to Amazon Bedrock Converse: `toolResult` blocks, which hold text, images, documents and video themselves.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html. A document's name may
have letters, digits, single blanks, - ( ) [ ] only, has to be unique, and needs text beside it; text must not be blank.
`bytes` is base64 here, as in the HTTP API. The AWS SDKs take the bytes themselves, and encode what they are given: see
`for_boto3`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pybase64

from gateway.core.model.turn import Answer, Media, Part, Turn, Words

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


def write(turn: Turn) -> list[dict[str, Any]]:
    """The one user message after the assistant's."""
    content: list[dict[str, Any]] = [{"toolResult": _tool_result(answer)} for answer in turn.answers]
    for follow_up in turn.follow_ups:
        content += [part(Words(follow_up.caption)), part(follow_up.media)]
    return [{"role": "user", "content": content}]


def for_boto3(messages: Sequence[Any]) -> list[Any]:
    """The same messages as boto3, and every other AWS SDK for Python, takes them: `bytes` of media as bytes.

    botocore encodes blobs itself (`botocore.serialize`: `_serialize_type_blob`), so base64 text would be encoded twice
    and reach the model as nothing that it can read. What is bytes already stays; nothing is changed in place.

    Raises:
        ValueError: a `bytes` is text that is not base64.
    """
    return [_with_bytes(message) for message in messages]


def _with_bytes(value: Any) -> Any:
    """The value with its media as bytes; the very same object where there is none to change."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        changed = [_with_bytes(item) for item in items]
        return changed if any(new is not old for new, old in zip(changed, items, strict=True)) else items
    if not isinstance(value, Mapping):
        return value
    members = cast("Mapping[str, Any]", value)
    made = {key: _member(key, member) for key, member in members.items() if key not in _OPAQUE}
    return {**members, **made} if any(made[key] is not members[key] for key in made) else members


def _member(key: str, value: Any) -> Any:
    if key == "source" and isinstance(value, Mapping):
        source = cast("Mapping[str, Any]", value)
        data = source.get("bytes")
        return {**source, "bytes": pybase64.b64decode(data, validate=True)} if isinstance(data, str) else source
    return _with_bytes(value)


_OPAQUE = frozenset({"input", "json", "additionalModelRequestFields"})
"""Members that hold a tool's own JSON, in which `source` and `bytes` are nobody's but the tool's."""


def _tool_result(answer: Answer) -> dict[str, Any]:
    if answer.raw is not None:
        blocks = answer.raw
    else:
        blocks = [part(one) for one in answer.parts if isinstance(one, Media) or one.text.strip()]
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        blocks = [{"text": answer.text}, *blocks]
    status = "error" if answer.is_error else "success"
    return {"toolUseId": answer.call.id, "status": status, "content": blocks}


def part(one: Part) -> dict[str, Any]:
    """One content block: `text`, `image`, `document` or `video`."""
    if isinstance(one, Words):
        return {"text": one.text}
    source = {"s3Location": {"uri": one.url}} if one.ref else {"bytes": one.data}
    file_format = _FORMATS.get(one.media_type, one.media_type.rsplit("/", 1)[-1])
    if one.kind == "document":
        return {"document": {"format": file_format, "name": _document_name(one), "source": source}}
    return {one.kind: {"format": file_format, "source": source}}


def _document_name(media: Media) -> str:
    """A name in the allowed characters, unique in the turn by the number of its label."""
    title = (media.title or "").rsplit(".", 1)[0]
    return " ".join(re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", f"{title[:150]} {media.label}").split())
