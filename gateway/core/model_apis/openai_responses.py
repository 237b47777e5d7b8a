"""OpenAI Responses: the output's items are the next request's input.

https://platform.openai.com/docs/api-reference/responses/create; openai 3.52.0 (Response, FunctionToolParam). Reasoning
items go back as they came, with their `encrypted_content` where it was asked for (`include`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    as_json,
    chunks_as_json,
    mapping,
    objects,
    tool_call,
    without,
)
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.tool_schemas.strict_schemas import strict_tool
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""As in Chat Completions."""

_ONLY_ANSWERED = ("parsed_arguments", "parsed")
"""What the SDK's `parse` adds to items and to their content."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `tools` of a request: `{"type": "function", "name": ..., ...}` each.

    `strict` is said to be off, because here it would be on: few tools' schemas are in the subset that it allows.
    """
    return [_function(tool, parameters(tool), False) for tool in tools]


def strict_schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same in strict mode, in which the model's arguments always fit the schema."""
    every = [(tool, strict_tool(tool)) for tool in tools]
    return [_function(tool, strict.parameters, strict.is_strict) for tool, strict in every]


def _function(tool: Mapping[str, Any], taken: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    named = {"name": tool["name"], "description": tool.get("description") or ""}
    return {"type": "function", **named, "parameters": taken, "strict": strict}


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The function calls of the output, in order. Raises InvalidRequest: `completion` is none."""
    return tuple(
        tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        for item in objects(as_json(completion).get("output"))
        if item.get("type") == "function_call"
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Every item of the output, as the input takes it."""
    return [_item(item) for item in objects(as_json(completion).get("output"))]


def _item(item: dict[str, Any]) -> dict[str, Any]:
    item = without(item, *_ONLY_ANSWERED)
    if item.get("type") == "message":
        item["content"] = [without(part, *_ONLY_ANSWERED) for part in objects(item.get("content"))]
    return item


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the events of a stream come to. Raises InvalidRequest: there are none.

    Of a stream that broke off, the items that were done.
    """
    events = chunks_as_json(chunks)
    whole = next((mapping(event.get("response")) for event in events if event.get("type") in _ENDS), None)
    done = [mapping(event.get("item")) for event in events if event.get("type") == "response.output_item.done"]
    return dict(whole) if whole is not None else {"output": done}


_ENDS = ("response.completed", "response.incomplete", "response.failed")
