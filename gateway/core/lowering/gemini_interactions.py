"""Lowering to Gemini Interactions: `function_result` steps, which hold every kind of media themselves.

https://ai.google.dev/gemini-api/docs/interactions (function_result.result: text, image, audio, document, video).
"""

from typing import Any

from gateway.core.model.turn import Answer, Part, Turn, Words


def write(turn: Turn) -> list[dict[str, Any]]:
    """The inputs after the model's calls: one `function_result` for each."""
    return [_result(answer) for answer in turn.answers]


def _result(answer: Answer) -> dict[str, Any]:
    return {
        "type": "function_result",
        "call_id": answer.call.id,
        "name": answer.call.name,
        "is_error": answer.is_error,
        "result": [_content(part) for part in answer.parts],
    }


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    return {"type": part.kind, "mime_type": part.media_type, "data": part.data}
