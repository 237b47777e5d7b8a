"""Lowering to Amazon Bedrock Converse: `toolResult` blocks, which hold text, images, documents and video themselves.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultContentBlock.html. A document's name may
have letters, digits, single blanks, - ( ) [ ] only, has to be unique, and needs text beside it; text must not be blank.
`bytes` is base64 here, as in the HTTP API; the AWS SDKs take the bytes themselves.
"""

import re
from typing import Any

from gateway.core.model.turn import Answer, Media, Turn, Words

_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
}


def write(turn: Turn) -> list[dict[str, Any]]:
    """The one user message after the assistant's."""
    content: list[dict[str, Any]] = [{"toolResult": _tool_result(answer)} for answer in turn.answers]
    for follow_up in turn.follow_ups:
        content += [{"text": follow_up.caption}, _block(follow_up.media)]
    return [{"role": "user", "content": content}]


def _tool_result(answer: Answer) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for part in answer.parts:
        if isinstance(part, Media):
            blocks.append(_block(part))
        elif part.text.strip():
            blocks.append({"text": part.text})
    if any("document" in block for block in blocks) and not any(isinstance(part, Words) for part in answer.parts):
        blocks.insert(0, {"text": answer.text})
    status = "error" if answer.is_error else "success"
    return {"toolUseId": answer.call.id, "status": status, "content": blocks}


def _block(media: Media) -> dict[str, Any]:
    source = {"bytes": media.data}
    file_format = _FORMATS.get(media.media_type, media.media_type.rsplit("/", 1)[-1])
    if media.kind == "document":
        return {"document": {"format": file_format, "name": _document_name(media), "source": source}}
    return {media.kind: {"format": file_format, "source": source}}


def _document_name(media: Media) -> str:
    """A name in the allowed characters, unique in the turn by the number of its label."""
    title = re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", (media.title or "").rsplit(".", 1)[0])
    return " ".join(f"{title} {media.label}".split())[:200]
