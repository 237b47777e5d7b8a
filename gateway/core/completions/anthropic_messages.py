"""Anthropic Messages: the content of the answer is the content of the assistant's message.

https://docs.claude.com/en/api/messages; anthropic 2.11.0 (Message, ToolParam). Thinking goes back whole, with its
signature: https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Preserving thinking blocks".
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.catalogue.names import NameRules
from gateway.core.completions.calls import ToolCall, as_json, objects, tool_call, without
from gateway.core.completions.parameters import parameters

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
    return [{"role": "assistant", "content": content}] if content else []
