"""Tools as each API takes them: the schema of their arguments, their descriptions and their names."""

from typing import Any

import pytest
from anthropic.types import ToolParam as AnthropicTool
from google.genai import types as google
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from gateway.core.model_apis import anthropic_messages, gemini, openai_chat, openai_responses
from gateway.core.model_apis.tool_schemas.input_schemas import parameters

DIALECTS = [anthropic_messages, gemini, openai_chat, openai_responses]

TOOL = {
    "name": "read",
    "title": "Read",
    "description": "Reads a file.",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"path": {"type": "string", "enum": ["a", "b"]}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}

KEPT = {
    "type": "object",
    "properties": {"path": {"type": "string", "enum": ["a", "b"]}},
    "required": ["path"],
    "additionalProperties": False,
}


def test_tools_are_described_as_each_api_takes_them() -> None:
    (tool,) = openai_chat.schemas([TOOL])
    assert tool == {
        "type": "function",
        "function": {"name": "read", "description": "Reads a file.", "parameters": KEPT},
    }
    TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool)
    (tool,) = openai_responses.schemas([TOOL])
    assert tool == {
        "type": "function",
        "name": "read",
        "description": "Reads a file.",
        "parameters": KEPT,
        "strict": False,
    }
    TypeAdapter(FunctionToolParam).validate_python(tool | {"async": False})
    (tool,) = anthropic_messages.schemas([TOOL])
    assert tool == {"name": "read", "description": "Reads a file.", "input_schema": KEPT}
    TypeAdapter(AnthropicTool).validate_python(tool)
    (tool,) = gemini.schemas([TOOL])
    declared = {"name": "read", "description": "Reads a file.", "parametersJsonSchema": KEPT}
    assert tool == {"functionDeclarations": [declared]}
    google.Tool.model_validate(tool)
    assert gemini.schemas([]) == []


def test_a_description_is_cut_where_the_api_has_a_limit() -> None:
    long = {**TOOL, "description": "A sentence. " * 200}
    described = openai_chat.schemas([long])[0]["function"]["description"]
    assert 900 < len(described) <= 1024
    assert anthropic_messages.schemas([long])[0]["description"] == long["description"]
    assert "description" not in openai_chat.schemas([{"name": "x"}])[0]["function"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "anyOf": [{"required": ["b"]}, {"properties": {"b": {}, "a": {"type": "integer"}}}],
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b", "a"]}], "not": {}, "enum": []},
            {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
        ),
        (
            {"type": "object", "oneOf": "nonsense", "properties": None, "$defs": {"x": {}}},
            {"type": "object", "properties": {}, "$defs": {"x": {}}},
        ),
    ],
)
def test_a_schema_is_an_object_without_combinators_at_its_top(schema: Any, expected: dict[str, Any]) -> None:
    assert parameters({"inputSchema": schema} if schema is not None else {}) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["9lives", "a.b", "x" * 200, "ünïcode", "ok_name-1"])
def test_names_are_made_legal_for_the_api(dialect: Any, name: str) -> None:
    fitted = dialect.NAMES.fitted(name, "one__" + name)
    assert len(fitted) <= 64
    assert fitted.replace("_", "").replace("-", "").isalnum()
    assert fitted.isascii()
    assert dialect is not gemini or fitted[0].isalpha() or fitted[0] == "_"
    assert dialect.NAMES.fitted("ok_name-1", "x") == "ok_name-1"
