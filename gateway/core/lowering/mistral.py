"""Lowering to Mistral chat: tool messages whose content is text or a list of chunks.

https://docs.mistral.ai/api (ToolMessage.content: text, image_url, document_url, input_audio, the last a plain string).
"""

from typing import Any

from gateway.core.model.turn import Answer, Part, Turn, Words


def write(turn: Turn) -> list[dict[str, Any]]:
    """The messages after the assistant's: one tool message for each call, then at most one user message."""
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        chunks: list[dict[str, Any]] = []
        for follow_up in turn.follow_ups:
            chunks += [_chunk(Words(follow_up.caption)), _chunk(follow_up.media)]
        messages.append({"role": "user", "content": chunks})
    return messages


def _tool_message(answer: Answer) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = answer.text
    if answer.media:
        content = [_chunk(part) for part in answer.parts]
    return {"role": "tool", "tool_call_id": answer.call.id, "name": answer.call.name, "content": content}


def _chunk(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    match part.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": part.data_uri}}
        case "audio":
            return {"type": "input_audio", "input_audio": part.data}
        case _:
            name = {"document_name": part.title} if part.title else {}
            return {"type": "document_url", "document_url": part.data_uri, **name}
