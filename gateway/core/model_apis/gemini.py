"""Gemini generateContent: the content of the first candidate goes back as it is.

https://ai.google.dev/gemini-api/docs/function-calling; google-genai 3.4.0 (GenerateContentResponse,
FunctionDeclaration).
A part's `thoughtSignature` has to go back in the part that it came in:
https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model_apis.completions import ToolCall, as_json, chunks_as_json, mapping, objects, tool_call
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("^[^A-Za-z_]|[^A-Za-z0-9_-]"))
"""FunctionDeclaration.name: begins with a letter or an underscore; 64 characters in v1beta, 128 elsewhere."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `tools` of a request: one `{"functionDeclarations": [...]}`, or none without tools.

    The schema stands under `parametersJsonSchema`, which takes JSON Schema; `parameters` takes OpenAPI's subset only.
    """
    declared = [
        {
            "name": tool["name"],
            "description": tool.get("description") or "",
            "parametersJsonSchema": parameters(tool),
        }
        for tool in tools
    ]
    return [{"functionDeclarations": declared}] if declared else []


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The function calls of the first candidate, in order. Raises InvalidRequest: `completion` is none.

    Older models give calls no id; then `id` is empty, and results belong to calls by their order.
    """
    calls = [mapping(part.get("functionCall") or part.get("function_call")) for part in _parts(completion)]
    return tuple(tool_call(call.get("id"), call["name"], call.get("args")) for call in calls if call.get("name"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The model's content; none where it said nothing at all, because parts must not be empty."""
    parts = _parts(completion)
    return [{"role": "model", "parts": parts}] if parts else []


def _parts(completion: Any) -> list[dict[str, Any]]:
    candidates = objects(as_json(completion).get("candidates"))
    return objects(mapping(candidates[0].get("content")).get("parts")) if candidates else []


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the chunks of a stream come to. Raises InvalidRequest: there are none.

    Text is put together as far as no signature stands between, which has to stay in its own part.
    """
    parts: list[dict[str, Any]] = []
    for part in (part for chunk in chunks_as_json(chunks) for part in _parts(chunk)):
        text = part.get("text")
        if parts and isinstance(text, str) and _goes_on(parts[-1], part):
            parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + text}
        elif text != "" or set(part) - {"text", "thought"}:
            parts.append(part)
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _goes_on(before: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    kinds = {"text", "thought"}
    same = set(before) <= kinds and set(part) <= kinds and bool(before.get("thought")) == bool(part.get("thought"))
    return same and isinstance(before.get("text"), str)
