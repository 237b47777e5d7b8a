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
        content += [_block(Words(follow_up.caption)), _block(follow_up.media)]
    return [{"role": "user", "content": content}]


def _tool_result(answer: Answer) -> dict[str, Any]:
    blocks = [_block(part) for part in answer.parts if not (isinstance(part, Words) and not part.text.strip())]
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": answer.call.id}
    if blocks:
        result["content"] = blocks
    if answer.is_error:
        result["is_error"] = True
    return result


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.kind == "image":
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **_titled(part)}


def _titled(media: Media) -> dict[str, str]:
    return {"title": media.title} if media.title else {}
