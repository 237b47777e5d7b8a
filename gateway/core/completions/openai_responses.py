"""OpenAI Responses: the output's items are the next request's input.

https://platform.openai.com/docs/api-reference/responses/create; openai 3.52.0 (Response, FunctionToolParam). Reasoning
items go back as they came, with their `encrypted_content` where it was asked for (`include`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.catalogue.names import NameRules
from gateway.core.completions.calls import ToolCall, as_json, objects, tool_call, without
from gateway.core.completions.parameters import parameters

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""As in Chat Completions."""

_ONLY_ANSWERED = ("parsed_arguments", "parsed")
"""What the SDK's `parse` adds to items and to their content."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `tools` of a request: `{"type": "function", "name": ..., ...}` each.

    `strict` is said to be off, because here it would be on: few tools' schemas are in the subset that it allows.
    """
    return [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool.get("description") or "",
            "parameters": parameters(tool),
            "strict": False,
        }
        for tool in tools
    ]


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
