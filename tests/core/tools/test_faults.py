"""Faults of schemas: found without fetching anything, whatever a schema holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.tools.catalogue.faults import DEEPEST, faults, resolve


def kinds(schema):
    return [fault.kind for fault in faults(schema)]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": True}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"enum": [1]}}},
        {"type": "object", "properties": {"a": {"$ref": "#here"}}, "$defs": {"x": {"$anchor": "here"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}, "additionalProperties": False},
        {"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"type": "string"}}},
    ],
)
def test_schemas_that_are_in_order(schema):
    assert faults(schema) == ()


@pytest.mark.parametrize(
    ("schema", "kind", "said"),
    [
        (None, "root", "is not an object"),
        ({"type": "array"}, "root", "its type is 'array', but must be \"object\""),
        ({"type": "object", "allOf": [{"$ref": "other.json"}]}, "external", "allOf[0]: $ref leads out of the schema"),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/no"}}},
            "dangling",
            "properties.a: $ref '#/no' leads nowhere",
        ),
        ({"type": "object", "$ref": 5}, "malformed", "$ref is not text"),
        ({"type": "object", "properties": []}, "malformed", "properties is not an object"),
        ({"type": "object", "properties": {"a": 5}}, "malformed", "properties.a: is not a schema"),
        (
            {"type": "object", "properties": {"a": {"type": "text"}}},
            "malformed",
            "properties.a: there is no type 'text'",
        ),
        ({"type": "object", "properties": {"a": {"type": []}}}, "malformed", "there is no type"),
        ({"type": "object", "required": "a"}, "malformed", "required is not a list of names"),
        ({"type": "object", "properties": {"a": {"enum": []}}}, "empty", "enum has no values"),
        ({"type": "object", "properties": {"a": {"pattern": 5}}}, "malformed", "properties.a: pattern is not text"),
        (
            {"type": "object", "properties": {"a": {"maximum": "9"}}},
            "malformed",
            "properties.a: maximum is not a number",
        ),
        (
            {"type": "object", "properties": {"a": {"minLength": -1}}},
            "malformed",
            "properties.a: minLength is not a count",
        ),
        ({"type": "object", "anyOf": {}}, "malformed", "anyOf is not a list"),
    ],
)
def test_each_fault_is_said_with_its_place(schema, kind, said):
    (fault,) = faults(schema)
    assert fault.kind == kind
    assert said in str(fault)


def test_a_schema_without_end_is_not_followed_without_end():
    schema = {"type": "object"}
    for _ in range(DEEPEST * 3):
        schema = {"type": "object", "properties": {"deeper": schema}}
    assert kinds(schema) == ["deep"]


def test_references_lead_into_lists_and_escaped_keys():
    root = {"$defs": {"a/b": {"anyOf": [{"const": 1}, {"const": 2}]}}}
    assert resolve(root, "#/$defs/a~1b/anyOf/1") == {"const": 2}
    assert resolve(root, "#/$defs/a~1b/anyOf/7") is None
    assert resolve(root, "https://example.com/#/$defs") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "$ref", "properties", "items", "allOf", "required", "enum", "$defs", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_nothing_that_a_server_sends_makes_it_fail(value):
    assert isinstance(faults(value), tuple)
