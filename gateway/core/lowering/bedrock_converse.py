"""Lowering to Amazon Bedrock Converse: `toolResult` blocks, which hold text, images, documents and video themselves.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html. A document's name may
have letters, digits, single blanks, - ( ) [ ] only, has to be unique, and needs text beside it; text must not be blank.
`bytes` is base64 here, as in the HTTP API; the AWS SDKs take the bytes themselves.
"""

import re
from typing import Any

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
