"""Gemini Interactions: the steps of a response are input of the next request, unless Google keeps the history.

https://ai.google.dev/gemini-api/docs/interactions; google-genai 3.4.0 (Interaction, Function).

- Completions: with `previous_interaction_id`, only the results are sent (`Responded.after`).
- Turns: `function_result` steps hold every kind of media themselves (`result`: text, image, audio, document, video).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.turn import Answer, Part, Turn, Words
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, completion_with, gathered, parsed, tool_call
from gateway.core.model_apis.sdk_json import objects_without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.turns.references import gemini_uri
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("^[^A-Za-z_]|[^A-Za-z0-9_-]"))
"""As in generateContent."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `tools` of a request: `{"type": "function", "name": ..., ...}` each."""
    return [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool.get("description") or "",
            "parameters": parameters(tool),
        }
        for tool in tools
    ]


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the function_call steps in order. Raises InvalidRequest: `completion` is not an interaction."""
    return tuple(
        tool_call(step.get("id"), step.get("name"), step.get("arguments"))
        for step in _steps(completion)
        if step.get("type") == "function_call"
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return every step of the response, including thoughts and their signatures."""
    steps = _steps(completion)
    for step in steps:
        if isinstance(step.get("arguments"), str):
            step["arguments"] = {}  # malformed, and answered as such; the API accepts only objects
    return steps


def _steps(completion: Any) -> list[dict[str, Any]]:
    answered = completion_with(completion, "steps", "outputs", "status")
    return objects_without_nulls(answered.get("steps") or answered.get("outputs"))


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into an interaction. Raises InvalidRequest: there are no events."""
    steps: dict[Any, dict[str, Any]] = {}
    for event in chunks_as_json(chunks):
        if event.get("event_type") == "step.start":
            steps[event.get("index")] = dict(as_object(event.get("step")))
        elif event.get("event_type") == "step.delta" and (step := steps.get(event.get("index"))) is not None:
            _add(step, as_object(event.get("delta")))
    whole = steps.values()
    return {
        "steps": [
            {**step, **({"arguments": parsed(step["arguments"])} if "arguments" in step else {})} for step in whole
        ]
    }


def _add(step: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta.get("type"):
        case "arguments_delta":
            written = step["arguments"] if isinstance(step.get("arguments"), str) else ""
            step["arguments"] = written + str(delta.get("arguments") or "")
        case "thought_summary":
            gathered(step, {"summary": [delta.get("content")]})
        case "thought_signature":
            gathered(step, {"signature": delta.get("signature")})
        case "text":
            content = objects_without_nulls(step.get("content"))
            if content and isinstance(content[-1].get("text"), str):
                content[-1]["text"] += str(delta.get("text") or "")
                step["content"] = content
            else:
                step["content"] = [*content, dict(delta)]
        case _:
            step["content"] = [*objects_without_nulls(step.get("content")), dict(delta)]


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the inputs after the model's calls: one `function_result` for each."""
    return [_result(answer) for answer in turn.answers]


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user input with these parts."""
    return {"type": "user_input", "content": [write_part(part) for part in parts]}


def _result(answer: Answer) -> dict[str, Any]:
    return {
        "type": "function_result",
        "call_id": answer.call.id,
        "name": answer.call.name,
        "is_error": answer.is_error,
        "result": [write_part(part) for part in answer.parts] if answer.raw is None else answer.raw,
    }


def write_part(part: Part) -> dict[str, Any]:
    """Write one piece of content: `text`, `image`, `audio`, `document` or `video`."""
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.ref:
        return {"type": part.kind, "mime_type": part.media_type, "uri": gemini_uri(part)}
    return {"type": part.kind, "mime_type": part.media_type, "data": part.data}
