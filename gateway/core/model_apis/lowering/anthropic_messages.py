"""Lowering to Anthropic Messages: all tool_result blocks first in one user message, then what may not stand in them.

https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use: a tool_result holds text, image and
document blocks, and all of them come first. Beside `is_error` there must be text only; text blocks must not be empty.
"""

from typing import Any

from gateway.core.model.turn import Answer, Media, Part, Turn, Words


def write(turn: Turn) -> list[dict[str, Any]]:
    """The one user message after the assistant's."""
    content = [_tool_result(answer) for answer in turn.answers]
    for follow_up in turn.follow_ups:
        content += [part(Words(follow_up.caption)), part(follow_up.media)]
    return [{"role": "user", "content": content}]


def _tool_result(answer: Answer) -> dict[str, Any]:
    blocks = [part(one) for one in answer.parts if not (isinstance(one, Words) and not one.text.strip())]
    if answer.raw is not None:
        blocks = answer.raw
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": answer.call.id}
    if blocks:
        result["content"] = blocks
    if answer.is_error:
        result["is_error"] = True
    return result


def part(one: Part) -> dict[str, Any]:
    """One content block: `text`, `image` or `document`."""
    if isinstance(one, Words):
        return {"type": "text", "text": one.text}
    if one.kind == "image":
        return {"type": "image", "source": _source(one)}
    return {"type": "document", "source": _source(one), **_titled(one)}


def _source(media: Media) -> dict[str, str]:
    if media.file_id:
        return {"type": "file", "file_id": media.file_id}
    if media.ref:
        return {"type": "url", "url": media.url}
    return {"type": "base64", "media_type": media.media_type, "data": media.data}


def _titled(media: Media) -> dict[str, str]:
    return {"title": media.title} if media.title else {}
