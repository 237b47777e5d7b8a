"""Lowering to Ollama's /api/chat: a message's images stand beside its text, and results are told apart by their order.

https://docs.ollama.com/api/chat (message: role, content, images as base64, tool_name; there is no id of a call).
"""

from typing import Any

from gateway.core.model.turn import Answer, Turn, reply_messages


def write(turn: Turn) -> list[dict[str, Any]]:
    """The messages after the assistant's: one tool message for each call, in order, then at most one user message."""
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        captions = "\n".join(follow_up.caption for follow_up in turn.follow_ups)
        images = [follow_up.media.data for follow_up in turn.follow_ups]
        messages += [*reply_messages(turn.reply), {"role": "user", "content": captions, "images": images}]
    return messages


def _tool_message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "tool", "tool_name": answer.call.name, "content": answer.text}
    if answer.raw is not None:
        return {**message, "content": "", **answer.raw}
    if images := [media.data for media in answer.media]:
        message["images"] = images
    return message
