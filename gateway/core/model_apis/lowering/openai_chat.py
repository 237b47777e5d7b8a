"""Lowering to OpenAI Chat Completions, and to every API that speaks its form.

Tool messages for all calls come first and stand together; media that they may not hold follows in one user message.
https://platform.openai.com/docs/api-reference/chat/create: a tool message holds text, a user message text, image_url,
input_audio and file parts.
"""

from typing import Any

from gateway.core.model.turn import Answer, Part, Turn, Words, reply_messages

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def write(turn: Turn) -> list[dict[str, Any]]:
    """The messages after the assistant's: `{"role": "tool", ...}` for each call, then at most one `role: user`.

    A turn with a reply has it as the assistant's, before the user's.
    """
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        parts: list[dict[str, Any]] = []
        for follow_up in turn.follow_ups:
            parts += [part(Words(follow_up.caption)), part(follow_up.media)]
        messages += [*reply_messages(turn.reply), {"role": "user", "content": parts}]
    return messages


def part(one: Part) -> dict[str, Any]:
    """One content part: `text`, `image_url`, `input_audio`, `file`, or vLLM's `video_url`."""
    if isinstance(one, Words):
        return {"type": "text", "text": one.text}
    if one.file_id:
        return {"type": "file", "file": {"file_id": one.file_id}}
    match one.kind:
        case "image":
            detail = {"detail": one.detail} if one.detail else {}
            return {"type": "image_url", "image_url": {"url": one.url, **detail}}
        case "audio":
            audio_format = _AUDIO_FORMATS.get(one.media_type, one.media_type.removeprefix("audio/"))
            return {"type": "input_audio", "input_audio": {"data": one.data, "format": audio_format}}
        case "document":
            name = one.title or f"{one.label.replace(' ', '-')}.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": one.url}}
        case "video":
            return {"type": "video_url", "video_url": {"url": one.url}}


def _tool_message(answer: Answer) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = answer.text
    if answer.raw is not None:
        content = answer.raw
    elif answer.media:
        content = [part(one) for one in answer.parts]
    return {"role": "tool", "tool_call_id": answer.call.id, "content": content}
