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
            chunks += [part(Words(follow_up.caption)), part(follow_up.media)]
        messages.append({"role": "user", "content": chunks})
    return messages


def _tool_message(answer: Answer) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = answer.text
    if answer.raw is not None:
        content = answer.raw
    elif answer.media:
        content = [part(one) for one in answer.parts]
    return {"role": "tool", "tool_call_id": answer.call.id, "name": answer.call.name, "content": content}


def part(one: Part) -> dict[str, Any]:
    """One chunk: `text`, `image_url`, `input_audio`, `document_url`, or `file` for one that Mistral keeps."""
    if isinstance(one, Words):
        return {"type": "text", "text": one.text}
    if one.file_id:
        return {"type": "file", "file_id": one.file_id}
    match one.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": one.url}}
        case "audio":
            return {"type": "input_audio", "input_audio": one.data}
        case _:
            name = {"document_name": one.title} if one.title else {}
            return {"type": "document_url", "document_url": one.url, **name}
