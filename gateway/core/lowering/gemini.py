"""Lowering to Gemini generateContent: as many functionResponse parts as calls, in one content, media after the last.

https://ai.google.dev/gemini-api/docs/function-calling (functionResponse; from Gemini 3 on its `parts` hold media). The
keys `output` and `error` of a response are the ones that the API knows. Text and media lose their order within a
response, so the text keeps a marker for each piece of media.
"""

from typing import Any

from gateway.core.model.turn import Answer, Media, Turn


def write(turn: Turn) -> list[dict[str, Any]]:
    """The one content after the model's: `{"role": "user", "parts": [...]}`."""
    parts: list[dict[str, Any]] = [{"functionResponse": _response(answer)} for answer in turn.answers]
    for follow_up in turn.follow_ups:
        parts += [{"text": follow_up.caption}, {"inlineData": _inline(follow_up.media)}]
    return [{"role": "user", "parts": parts}]


def _response(answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = {
        "id": answer.call.id,
        "name": answer.call.name,
        "response": {"error" if answer.is_error else "output": answer.text},
    }
    if answer.media:
        response["parts"] = [{"inlineData": {**_inline(media), "displayName": media.label}} for media in answer.media]
    return response


def _inline(media: Media) -> dict[str, str]:
    return {"mimeType": media.media_type, "data": media.data}
