"""Lowering to Gemini Interactions: `function_result` steps, which hold every kind of media themselves.

https://ai.google.dev/gemini-api/docs/interactions (function_result.result: text, image, audio, document, video).
"""

from typing import Any

from gateway.core.model.turn import Answer, Part, Turn, Words

_FILES = "https://generativelanguage.googleapis.com/v1beta/"
"""Before the name of a file that Google keeps: `files/abc`."""


def write(turn: Turn) -> list[dict[str, Any]]:
    """The inputs after the model's calls: one `function_result` for each."""
    return [_result(answer) for answer in turn.answers]


def _result(answer: Answer) -> dict[str, Any]:
    return {
        "type": "function_result",
        "call_id": answer.call.id,
        "name": answer.call.name,
        "is_error": answer.is_error,
        "result": [part(one) for one in answer.parts] if answer.raw is None else answer.raw,
    }


def part(one: Part) -> dict[str, Any]:
    """One piece of content: `text`, `image`, `audio`, `document` or `video`."""
    if isinstance(one, Words):
        return {"type": "text", "text": one.text}
    if one.ref:
        uri = f"{_FILES}{one.file_id}" if one.file_id else one.url
        return {"type": one.kind, "mime_type": one.media_type, "uri": uri}
    return {"type": one.kind, "mime_type": one.media_type, "data": one.data}
