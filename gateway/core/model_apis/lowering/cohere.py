"""Lowering to Cohere v2 chat: tool messages hold text only; images follow in one user message.

https://docs.cohere.com/reference/chat (ToolMessageV2.content: text or documents; user content: text, image_url).
"""

from typing import Any

from gateway.core.model.turn import Part, Turn, Words


def write(turn: Turn) -> list[dict[str, Any]]:
    """The messages after the assistant's: one tool message for each call, then at most one user message."""
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text if answer.raw is None else answer.raw}
        for answer in turn.answers
    ]
    if turn.follow_ups:
        content: list[dict[str, Any]] = []
        for follow_up in turn.follow_ups:
            content += [part(Words(follow_up.caption)), part(follow_up.media)]
        messages.append({"role": "user", "content": content})
    return messages


def part(one: Part) -> dict[str, Any]:
    """One content one of a user message: `text` or `image_url`."""
    if isinstance(one, Words):
        return {"type": "text", "text": one.text}
    return {"type": "image_url", "image_url": {"url": one.url}}
