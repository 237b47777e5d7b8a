"""The schema of a tool's arguments as every model API accepts it, and the tool format that several APIs share.

APIs refuse a whole request because of one schema with a combinator at its top level: OpenAI "must have type 'object'
and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (langchain-ai/langchainjs#9804), Anthropic "does not
support oneOf, allOf, or anyOf at the top level" (anthropics/claude-code#40075). The upstream still checks what it is
sent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_list, as_object

_BRANCHES = ("allOf", "anyOf", "oneOf")
_REFUSED = frozenset({*_BRANCHES, "enum", "not", "$schema"})


def parameters(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's input schema: an object with its properties, with top-level combinators folded in."""
    declared = as_object(tool.get("inputSchema"))
    properties: dict[str, Any] = {}
    required: list[Any] = []
    for schema, binding in [(declared, True), *_branches(declared)]:
        properties = {**as_object(schema.get("properties")), **properties}
        if binding:
            required += [name for name in as_list(schema.get("required")) if name not in required]
    kept = {key: value for key, value in declared.items() if key not in _REFUSED}
    whole = {**kept, "type": "object", "properties": properties}
    return {**whole, "required": required} if required else whole


def functions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools for the APIs that use OpenAI's format: `{"type": "function", "function": {...}}` each."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool.get("description") or "", "parameters": parameters(tool)}


def _branches(schema: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], bool]]:
    """Return the schemas at the top level, and whether the properties that they require are always required."""
    return [(as_object(branch), key == "allOf") for key in _BRANCHES for branch in as_list(schema.get(key))]
