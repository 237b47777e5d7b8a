"""Lowering to OpenAI Chat Completions, and to every API that speaks its form.

Tool messages for all calls come first and stand together; media that they may not hold follows in one user message.
https://platform.openai.com/docs/api-reference/chat/create: a tool message holds text, a user message text, image_url,
input_audio and file parts.
"""

from typing import Any

from gateway.core.model.turn import Answer, Media, Turn, Words

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def write(turn: Turn) -> list[dict[str, Any]]:
    """The messages after the assistant's: `{"role": "tool", ...}` for each call, then at most one `role: user`."""
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        parts: list[dict[str, Any]] = []
        for follow_up in turn.follow_ups:
            parts += [{"type": "text", "text": follow_up.caption}, part(follow_up.media)]
        messages.append({"role": "user", "content": parts})
    return messages


def part(media: Media) -> dict[str, Any]:
    """One content part: `image_url`, `input_audio`, `file`, or vLLM's `video_url`."""
    match media.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": media.data_uri}}
        case "audio":
            audio_format = _AUDIO_FORMATS.get(media.media_type, media.media_type.removeprefix("audio/"))
            return {"type": "input_audio", "input_audio": {"data": media.data, "format": audio_format}}
        case "document":
            name = media.title or f"{media.label.replace(' ', '-')}.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": media.data_uri}}
        case "video":
            return {"type": "video_url", "video_url": {"url": media.data_uri}}


def _tool_message(answer: Answer) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = answer.text
    if answer.media:
        content = [{"type": "text", "text": one.text} if isinstance(one, Words) else part(one) for one in answer.parts]
    return {"role": "tool", "tool_call_id": answer.call.id, "content": content}
