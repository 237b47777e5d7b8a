"""Lowering to Gemini generateContent: as many functionResponse parts as calls, in one content, media after the last.

https://ai.google.dev/gemini-api/docs/function-calling (functionResponse; from Gemini 3 on its `parts` hold media). The
keys `output` and `error` of a response are the ones that the API knows. Text and media lose their order within a
response, so the text keeps a marker for each piece of media.
"""

from typing import Any

from gateway.core.model.turn import Answer, Media, Part, Turn, Words

_FILES = "https://generativelanguage.googleapis.com/v1beta/"
"""Before the name of a file that Google keeps: `files/abc`."""


def write(turn: Turn) -> list[dict[str, Any]]:
    """The one content after the model's: `{"role": "user", "parts": [...]}`."""
    parts: list[dict[str, Any]] = [{"functionResponse": _response(answer)} for answer in turn.answers]
    for follow_up in turn.follow_ups:
        parts += [part(Words(follow_up.caption)), part(follow_up.media)]
    return [{"role": "user", "parts": parts}]


def part(one: Part) -> dict[str, Any]:
    """One part of a content: `text`, `inlineData`, or `fileData` for what the API fetches itself."""
    if isinstance(one, Words):
        return {"text": one.text}
    if one.ref:
        return {"fileData": {"mimeType": one.media_type, "fileUri": _file_uri(one)}}
    return {"inlineData": _inline(one)}


def _file_uri(media: Media) -> str:
    return f"{_FILES}{media.file_id}" if media.file_id else media.url


def _response_part(media: Media) -> dict[str, Any]:
    ((kind, value),) = part(media).items()
    return {kind: {**value, "displayName": media.label}}


def _response(answer: Answer) -> dict[str, Any]:
    # Older models give calls no id; their results belong to them by order.
    call = {"id": answer.call.id, "name": answer.call.name} if answer.call.id else {"name": answer.call.name}
    if answer.raw is not None:
        return {**call, "response": {}, **answer.raw}
    response: dict[str, Any] = {
        **call,
        "response": {"error" if answer.is_error else "output": answer.text},
    }
    if answer.media:
        response["parts"] = [_response_part(media) for media in answer.media]
    return response


def _inline(media: Media) -> dict[str, str]:
    return {"mimeType": media.media_type, "data": media.data}
