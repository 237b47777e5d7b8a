"""Replies of Gemini: generateContent, and Interactions.

https://ai.google.dev/api/generate-content; google-genai 3.4.0, `interactions`.
"""

from collections.abc import Iterator
from typing import Any

from gateway.testing.model_apis.replies.write_reply import Asked, Writer, compact, pieces, sse
from gateway.testing.model_apis.scripts import Reply

_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
_SIGNATURE = "c2lnbmVk"


def _calls(reply: Reply) -> list[dict[str, Any]]:
    """The calls, with a signature on the first one, as in Gemini 3."""
    signatures = [{"thoughtSignature": _SIGNATURE}, *({} for _ in reply.calls)]
    return [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}, **signature}
        for call, signature in zip(reply.calls, signatures, strict=False)
    ]


def _chunk(asked: Asked, parts: list[dict[str, Any]], finish: str | None = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {
        "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
        "usageMetadata": _USAGE,
        "modelVersion": asked.model,
        "responseId": f"response-{asked.number}",
    }


def _whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    thought = [{"text": reply.reasoning, "thought": True}] if reply.reasoning else []
    text = [{"text": reply.text}] if reply.text or not reply.calls else []
    return _chunk(asked, [*thought, *text, *_calls(reply)])


def _events(reply: Reply, asked: Asked) -> Iterator[str]:
    for piece in pieces(reply.reasoning):
        yield sse(_chunk(asked, [{"text": piece, "thought": True}], None))
    for piece in pieces(reply.text):
        yield sse(_chunk(asked, [{"text": piece}], None))
    for call in _calls(reply):
        yield sse(_chunk(asked, [call], None))
    yield sse(_chunk(asked, [{"text": ""}]))


def _error(message: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


# -- Interactions -----------------------------------------------------------------------------------


def _steps(reply: Reply) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if reply.reasoning:
        summary = [{"type": "text", "text": reply.reasoning}]
        steps.append({"type": "thought", "signature": _SIGNATURE, "summary": summary})
    if reply.text or not reply.calls:
        steps.append({"type": "model_output", "content": [{"type": "text", "text": reply.text}]})
    calls = [
        {"type": "function_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls
    ]
    return [*steps, *calls]


def _interaction(reply: Reply, asked: Asked) -> dict[str, Any]:
    status = "requires_action" if reply.calls else "completed"
    head = {"id": f"interaction-{asked.number}", "object": "interaction", "model": asked.model, "status": status}
    return {**head, "created": _CREATED, "updated": _CREATED, "steps": _steps(reply)}


def _interaction_events(reply: Reply, asked: Asked) -> Iterator[str]:
    interaction = _interaction(reply, asked)
    head = {name: value for name, value in interaction.items() if name != "steps"}
    created = {**head, "status": "in_progress"}
    yield sse({"event_type": "interaction.created", "interaction": created}, "interaction.created")
    for index, step in enumerate(interaction["steps"]):
        begun, deltas = _step_deltas(step)
        yield sse({"event_type": "step.start", "index": index, "step": {**step, **begun}}, "step.start")
        for delta in deltas:
            yield sse({"event_type": "step.delta", "index": index, "delta": delta}, "step.delta")
        yield sse({"event_type": "step.stop", "index": index}, "step.stop")
    yield sse({"event_type": "interaction.completed", "interaction": head}, "interaction.completed")


def _step_deltas(step: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a step's first form, and the additions to it."""
    match step["type"]:
        case "thought":
            return {"summary": []}, [{"type": "thought_summary", "content": one} for one in step["summary"]]
        case "model_output":
            return {"content": []}, [{"type": "text", "text": piece} for piece in pieces(step["content"][0]["text"])]
        case _:
            written = pieces(compact(step["arguments"]))
            return {"arguments": {}}, [{"type": "arguments_delta", "arguments": piece} for piece in written]


_CREATED = "2027-01-15T08:00:00Z"

GEMINI = Writer(_whole, _events, _error)
GEMINI_INTERACTIONS = Writer(_interaction, _interaction_events, _error)
