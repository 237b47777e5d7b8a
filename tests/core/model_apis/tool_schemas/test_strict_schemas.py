"""Schemas for OpenAI's strict mode: the stand-in takes each of them, and what comes back fits the tool's own schema."""

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model_apis import openai_chat, openai_responses
from gateway.core.model_apis.tool_schemas.strict_schemas import MOST_PROPERTIES, StrictTool, strict_tool
from gateway.testing.model_apis.strict_tools import schema_faults

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}}, "required": ["v"]}
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}


def tool_with(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "t", "inputSchema": schema}


def strict_of(schema: dict[str, Any]) -> StrictTool:
    before = copy.deepcopy(schema)
    made = strict_tool(tool_with(schema))
    assert schema == before, "the tool's own schema is not touched"
    assert list(schema_faults(made.parameters)) == []
    return made


def defining(definitions: Any) -> dict[str, Any]:
    """The member of a schema that references lead to."""
    return {"$defs": definitions}


def one(schema: Any, *, required: bool = True, **more: Any) -> dict[str, Any]:
    """A tool's schema with one argument, `a`."""
    return {"type": "object", "properties": {"a": schema}, **({"required": ["a"]} if required else {}), **more}


# what the tool declares, what the model writes, and what the tool is called with
ROUNDS: dict[str, tuple[Any, ...]] = {
    "nothing": ({"type": "object"}, {}, {}),
    "nothing at all": ({}, {}, {}),
    "required": (one({"type": "string"}), {"a": "x"}, {"a": "x"}),
    "optional, given": (one({"type": "string"}, required=False), {"a": "x"}, {"a": "x"}),
    "optional, left out": (one({"type": "string"}, required=False), {"a": None}, {}),
    "null that the tool requires": (one({"type": ["string", "null"]}), {"a": None}, {"a": None}),
    "one of some values, left out": (one({"enum": ["p", "q"]}, required=False), {"a": None}, {}),
    "inside an object": (one(POINT), {"a": {"x": 1, "y": None}}, {"a": {"x": 1}}),
    "inside an array": (
        one({"type": "array", "items": POINT}),
        {"a": [{"x": 1, "y": None}, {"x": 2, "y": 3}]},
        {"a": [{"x": 1}, {"x": 2, "y": 3}]},
    ),
    "inside a definition that contains itself": (
        one({"$ref": "#/$defs/Node", "description": "The first."}, **defining({"Node": NODE})),
        {"a": {"v": 1, "next": {"v": 2, "next": None}}},
        {"a": {"v": 1, "next": {"v": 2}}},
    ),
    "inside the branch that it fits": (
        one(
            {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "b"}, "n": {"type": ["integer", "null"]}},
                        "required": ["kind", "n"],
                    },
                ]
            }
        ),
        {"a": {"kind": "b", "n": None}},
        {"a": {"kind": "b", "n": None}},
    ),
    "an object or a text": (
        one({"type": ["object", "string"], "properties": {"z": {"type": "number"}}}),
        *[{"a": "x"}] * 2,
    ),
    "in the middle of the schema": (
        {"type": "object", "properties": {"from": POINT, "to": {"$ref": "#/properties/from"}}, "required": ["to"]},
        {"from": None, "to": {"x": 1, "y": None}},
        {"to": {"x": 1}},
    ),
    "one schema that has to fit": (
        one({"allOf": [{"$ref": "#/$defs/P"}]}, **defining({"P": POINT})),
        *[{"a": {"x": 1}}] * 2,
    ),
    "properties of any name": (one(MAP), {"a": '{"k": "v"}'}, {"a": {"k": "v"}}),
    "properties of any name, left out": (one(MAP, required=False), {"a": None}, {}),
    "of any shape": (one({}), {"a": "[1]"}, {"a": [1]}),
    "of any shape, and no JSON": (one(True), {"a": "plain words"}, {"a": "plain words"}),
    "an array of any shape": (one({"type": "array"}), {"a": "[1, {}]"}, {"a": [1, {}]}),
    "a text or anything else": (one({"anyOf": [{"type": "string"}, MAP]}), {"a": '{"k": "v"}'}, {"a": {"k": "v"}}),
    "a definition of any shape": (one({"$ref": "#/$defs/Any"}, **defining({"Any": {}})), {"a": "1"}, {"a": 1}),
    "nowhere": (one({"$ref": "#/$defs/Gone"}), {"a": "1"}, {"a": 1}),
    "elsewhere": (one({"$ref": "https://example.com/s.json"}), {"a": "1"}, {"a": 1}),
    "required and not described": ({"type": "object", "required": ["a"]}, {"a": "1"}, {"a": 1}),
    "every argument of any name": (MAP, {"arguments": '{"k": "v"}'}, {"k": "v"}),
    "what the schema does not know": (one({"type": "string"}), {"a": "x", "b": None}, {"a": "x", "b": None}),
}


@pytest.mark.parametrize("case", ROUNDS)
def test_what_the_model_writes_comes_back_as_the_tool_takes_it(case: str) -> None:
    declared, written, called = ROUNDS[case]
    made = strict_of(declared)
    assert made.is_strict
    assert made.arguments(written) == called


def test_limits_that_strict_mode_does_not_know_are_said_in_the_description() -> None:
    limits = {"minLength": 2, "pattern": "^(?!x)", "format": "uri", "default": "ab"}
    made = strict_of(one({"type": "string", "description": "A name.", **limits}, required=False))
    (argument,) = made.parameters["properties"].values()
    said = 'A name. [minLength: 2; pattern: "^(?!x)"; format: "uri"; default: "ab"]'
    assert argument == {"type": ["string", "null"], "description": said}


def test_limits_that_it_knows_stay() -> None:
    text = {"type": "string", "pattern": "^x", "format": "date"}
    number = {"type": "integer", "minimum": 1, "maximum": 5}
    many = {"type": "array", "items": number, "minItems": 1}
    schema = {"type": "object", "properties": {"a": text, "b": number, "c": many}, "required": ["a", "b", "c"]}
    assert strict_of(schema).parameters["properties"] == schema["properties"]


def test_a_schema_for_an_argument_of_any_shape_is_told_to_the_model() -> None:
    description = strict_of(one({"description": "Headers.", **MAP})).parameters["properties"]["a"]["description"]
    assert description.startswith("Headers. [JSON text of a value of this schema: {")
    assert '"additionalProperties":{"type":"string"}' in description


def test_what_nests_too_deeply_is_json_text() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(15):
        schema = one(schema)
    made = strict_of(schema)
    written: Any = json.dumps({"a": {"a": {"a": {"a": {"a": "x"}}}}})
    for _ in range(10):
        written = {"a": written}
    called = made.arguments(written)
    for _ in range(15):
        called = called["a"]
    assert called == "x"


def listed(count: int, length: int) -> dict[str, Any]:
    """A text that is one of so many values, each so long."""
    return {"type": "string", "enum": [str(n).rjust(length, "v") for n in range(count)]}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TOO_LARGE = {
    f"{MOST_PROPERTIES + 1} parameters": closed({f"p{n}": {"type": "string"} for n in range(MOST_PROPERTIES + 1)}),
    "1001 enum values": closed({"a": listed(501, 4), "b": listed(500, 4)}),
    "120001 characters": closed({"n" * 119_997: {"type": "string"}, "mmmm": {"type": "string"}}),
    "120002 characters": closed({"a": listed(240, 250), "b": listed(240, 250)}),
    "15060 characters": closed({"a": listed(251, 60)}),
}
AS_LARGE_AS_MAY_BE = {
    "parameters": closed({f"p{n}": {"type": "string"} for n in range(MOST_PROPERTIES)}),
    "enum values": closed({"a": listed(500, 4), "b": listed(500, 4)}),
    "names": closed({"n" * 120_000: {"type": "string"}}),
    "values of 250": closed({"a": listed(250, 400)}),
    "values of more": closed({"a": listed(300, 50)}),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_a_schema_that_is_too_large_is_left_as_it_is(case: str) -> None:
    """https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, on limits."""
    schema = TOO_LARGE[case]
    (fault,) = schema_faults(schema)
    assert case in fault
    made = strict_tool(tool_with(schema))
    assert (made.is_strict, made.parameters) == (False, schema)
    assert made.arguments({"p1": None}) == {"p1": None}
    assert openai_chat.strict_schemas([tool_with(schema)])[0]["function"]["strict"] is False
    assert openai_responses.strict_schemas([tool_with(schema)])[0]["strict"] is False


@pytest.mark.parametrize("case", AS_LARGE_AS_MAY_BE)
def test_a_schema_that_is_as_large_as_may_be_is_strict(case: str) -> None:
    made = strict_of(AS_LARGE_AS_MAY_BE[case])
    assert (made.is_strict, made.parameters) == (True, AS_LARGE_AS_MAY_BE[case])


def test_an_object_says_its_properties_even_if_it_has_none() -> None:
    """everruns/everruns#984: the API refuses `{"type": "object"}`, which MCP servers write for tools without any."""
    empty = {"type": "object", "required": [], "additionalProperties": False}
    assert [*schema_faults(empty)] == ["In context=(), object schema missing properties."]
    assert strict_of({"type": "object"}).parameters == {**empty, "properties": {}}
    assert strict_of(one({"type": "object", "additionalProperties": False})).is_strict


HOSTILE: dict[str, dict[str, Any]] = {
    "a reference to itself": one({"$ref": "#/$defs/A"}, **defining({"A": {"$ref": "#/$defs/A"}})),
    "branches of themselves": one(
        {"$ref": "#/$defs/A"}, **defining({"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}})
    ),
    "itself in its middle, many times": {
        "type": "object",
        "properties": {f"p{n}": {"type": "array", "items": {"$ref": "#/properties/p0"}} for n in range(50)},
    },
    "an object that doubles": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {f"p{n}": {"$ref": "#/properties/a"} for n in range(50)}}},
    },
    "keywords of other types": one({"type": 7, "properties": [], "anyOf": {}, "enum": "x", "items": [1], "$ref": 3}),
    "no types": {"type": "object", "properties": {"a": {"type": []}, "b": {"enum": []}, "c": {"type": ["x"]}, "d": 1}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_schema_costs_little_and_raises_nothing(case: str) -> None:
    made = strict_tool(tool_with(HOSTILE[case]))
    if made.is_strict and "itself" not in case and "themselves" not in case:
        assert list(schema_faults(made.parameters)) == []
    deep: Any = None
    for _ in range(500):
        deep = {"a": deep, "next": deep}
    made.arguments({"a": deep})


# -- any schema --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
WORDS = """type properties required items enum const anyOf oneOf allOf $ref $defs format pattern description default
    minimum additionalProperties patternProperties prefixItems minLength a b"""
KEYWORDS = st.sampled_from(WORDS.split())
ANYTHING = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "object", "array", "string", "#", "#/$defs/a", "#/properties/a", "date"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYWORDS, inner, max_size=4)),
)


@given(st.dictionaries(KEYWORDS, ANYTHING, max_size=5), st.dictionaries(NAMES, ANYTHING))
def test_no_schema_raises_and_what_strict_mode_would_not_take_is_never_written(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    made = strict_tool(tool_with(schema))
    if made.is_strict:
        assert list(schema_faults(made.parameters)) == []
    made.arguments(arguments)


SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": -5},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"enum": ["p", 1, None]},
        {"const": "c"},
        {"$ref": "#/$defs/Node"},
    ]
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that are closed, as the branches of a union have to be, so that a value fits one of them only."""
    properties = st.dictionaries(NAMES, inner, min_size=1)
    return st.builds(
        lambda named, required: {
            "type": "object",
            "properties": named,
            "required": sorted(required & named.keys()),
            "additionalProperties": False,
        },
        properties,
        st.sets(NAMES),
    )


SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


def written(draw: Any, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:
    """A value that a model in strict mode may write."""
    if "$ref" in schema:
        return written(draw, root["$defs"]["Node"], root, depth)
    if "anyOf" in schema:
        branches = schema["anyOf"]
        if depth > 6 and {"type": "null"} in branches:
            return None
        return written(draw, draw(st.sampled_from(branches)), root, depth + 1)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    match draw(st.sampled_from(types)):
        case "object":
            return {name: written(draw, each, root, depth + 1) for name, each in schema["properties"].items()}
        case "array":
            return [written(draw, schema["items"], root, depth + 1) for _ in range(draw(st.integers(0, 2)))]
        case "null":
            return None
        case "boolean":
            return draw(st.booleans())
        case "integer":
            return draw(st.integers(-5, 5))
        case _:
            return draw(st.text(max_size=3))


@given(st.data())
def test_every_value_of_a_strict_schema_comes_back_as_one_of_the_tools_own(data: st.DataObject) -> None:
    properties = data.draw(st.dictionaries(NAMES, SCHEMAS, min_size=1))
    required = sorted(data.draw(st.sets(st.sampled_from(sorted(properties)))))
    schema = {"type": "object", "properties": properties, "required": required, "$defs": {"Node": NODE}}
    made = strict_of(schema)
    value = written(data.draw, made.parameters, made.parameters)
    assert jsonschema_rs.is_valid(made.parameters, value)
    called = made.arguments(value)
    assert jsonschema_rs.is_valid(schema, called), called
