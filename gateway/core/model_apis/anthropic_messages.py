"""Anthropic Messages: the content of the answer is the content of the assistant's message.

https://docs.claude.com/en/api/messages; anthropic 2.11.0 (Message, ToolParam). Thinking goes back whole, with its
signature: https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Preserving thinking blocks".
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    as_json,
    chunks_as_json,
    gathered,
    mapping,
    objects,
    parsed,
    tool_call,
    without,
)
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use: `^[a-zA-Z0-9_-]{1,64}$`."""

_ONLY_ANSWERED = ("parsed_output",)
"""What the SDK's `parse` adds to text."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `tools` of a request: `{"name": ..., "description": ..., "input_schema": ...}` each."""
    return [
        {"name": tool["name"], "description": tool.get("description") or "", "input_schema": parameters(tool)}
        for tool in tools
    ]


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The tool_use blocks, in order; what the API runs itself is none. Raises InvalidRequest: `completion` is none."""
    return tuple(
        tool_call(block.get("id"), block.get("name"), block.get("input"))
        for block in objects(as_json(completion).get("content"))
        if block.get("type") == "tool_use"
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The assistant's message; none where the model said nothing at all, because its content must not be empty."""
    blocks = [without(block, *_ONLY_ANSWERED) for block in objects(as_json(completion).get("content"))]
    # "text content blocks must be non-empty" is said of requests only.
    content = [block for block in blocks if block.get("type") != "text" or str(block.get("text", "")).strip()]
    for block in content:
        if isinstance(block.get("input"), str):
            block["input"] = {}  # malformed, and answered as that; the API takes objects only
    return [{"role": "assistant", "content": content}] if content else []


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The message that the events of a stream come to. Raises InvalidRequest: there are none.

    https://docs.claude.com/en/docs/build-with-claude/streaming
    """
    blocks: dict[Any, dict[str, Any]] = {}
    for event in chunks_as_json(chunks):
        if event.get("type") == "content_block_start":
            blocks[event.get("index")] = without(mapping(event.get("content_block")))
        elif event.get("type") == "content_block_delta" and (block := blocks.get(event.get("index"))) is not None:
            _add(block, mapping(event.get("delta")))
    content = [
        {**block, **({"input": parsed(block["input"])} if "input" in block else {})} for block in blocks.values()
    ]
    return {"role": "assistant", "content": content}


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta.get("type"):
        case "input_json_delta":
            # The input of the start is an empty object, and what follows its JSON text.
            written = block["input"] if isinstance(block.get("input"), str) else ""
            block["input"] = written + str(delta.get("partial_json") or "") or block.get("input")
        case "citations_delta":
            gathered(block, {"citations": [delta.get("citation")]})
        case _:
            gathered(block, without(delta, "type"))
