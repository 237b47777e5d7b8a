"""Arguments made from schemas: what the schema suggests, else the simplest that fits."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.diagnosis.examples import FORMATS, NoExample, example_arguments


def example(schema, **more):
    return example_arguments({"type": "object", "properties": {"it": schema}, "required": ["it"], **more})["it"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "default": "d", "examples": ["e"]}, "d"),
        ({"type": "string", "examples": ["e", "f"]}, "e"),
        ({"enum": ["a", "b"]}, "a"),
        ({"const": None}, None),
        ({"type": "string"}, "example"),
        ({"type": "string", "minLength": 10}, "examplexxx"),
        ({"type": "string", "maxLength": 3}, "exa"),
        ({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}, "2026-01-31"),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": "x"}], "minItems": 2}, [1, "x"]),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}, {"b": "example"}),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]}, 3),
        ({"oneOf": [{"$ref": "#/gone"}, {"const": 4}]}, 4),
        ({"allOf": [{"type": "integer"}, {"minimum": 9}]}, 9),
        (True, "example"),
    ],
)
def test_a_value_for_each_kind_of_schema(schema, value):
    assert example(schema) == value


@pytest.mark.parametrize("form", FORMATS)
def test_texts_have_the_format_that_is_wanted(form):
    assert example({"type": "string", "format": form}) == FORMATS[form]


def test_references_inside_of_the_schema_are_followed():
    assert (
        example({"$ref": "#/$defs/when"}, **{"$defs": {"when": {"type": "string", "format": "date"}}}) == "2026-01-31"
    )


def test_only_what_is_required_is_given():
    schema = {
        "type": "object",
        "properties": {"url": {"type": "string"}, "more": {"type": "string"}},
        "required": ["url"],
    }
    assert example_arguments(schema) == {"url": "https://example.com/"}
    assert example_arguments({"type": "object"}) == {}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "https://example.com/x.json"}, "it: its $ref cannot be resolved"),
        ({"$ref": "#/$defs/loop"}, "it: its $ref is circular"),
        ({"$ref": "#/$defs/tree"}, "its schema never ends"),
        ({"type": "string", "pattern": "^zzz[0-9]{9}$"}, "it: no text is known that matches its pattern"),
        ({"type": "string", "pattern": "("}, "matches its pattern"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "length"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "no number"),
        ({"type": "array", "minItems": 1_000_000}, "1000000 items"),
        (False, "nothing fits its schema"),
    ],
)
def test_what_cannot_be_made_up_is_said(schema, why):
    definitions = {
        "loop": {"$ref": "#/$defs/loop"},
        "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}, "required": ["child"]},
    }
    with pytest.raises(NoExample) as raised:
        example(schema, **{"$defs": definitions})
    assert why in str(raised.value)


KEYS = (
    *("type", "$ref", "properties", "items", "allOf", "anyOf", "required", "enum", "minimum", "maximum", "minItems"),
    *("multipleOf", "minLength", "pattern", "format", "exclusiveMinimum"),
)
values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=4)
schemas = st.recursive(
    values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner | st.sampled_from(["object", "array", "string", "integer", "number", "#", "#/properties"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["type", "properties", "required", "allOf", "$ref", "anyOf"]), schemas, max_size=4)
)
def test_whatever_a_server_declares_gives_arguments_or_a_reason(schema):
    try:
        made = example_arguments(schema)
    except NoExample as reason:
        made = {"no arguments, because": str(reason)}
    assert isinstance(made, dict)


def bounded(low, high):
    return {"minimum": min(low, high), "maximum": max(low, high)}


numbers = st.builds(bounded, st.integers(-20, 20), st.integers(-20, 20))
leaves = st.one_of(
    numbers.map(lambda bounds: {"type": "integer"} | bounds),
    numbers.map(lambda bounds: {"type": "number"} | bounds),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more}, *[st.integers(0, 30)] * 2
    ),
    st.sampled_from(sorted(FORMATS)).map(lambda form: {"type": "string", "format": form}),
    st.lists(values, min_size=1, max_size=3).map(lambda some: {"enum": some}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"$ref": "#/$defs/day"}, {}, True]),
)


def an_object(properties):
    return {"type": "object", "properties": properties, "required": sorted(properties)}


usual = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(an_object),
        st.builds(
            lambda items, fewest: {"type": "array", "items": items, "minItems": fewest}, inner, st.integers(0, 3)
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2).map(lambda some: {"allOf": [an_object(some)]}),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("xyz"), usual, max_size=3))
def test_what_is_made_up_fits_the_schema(properties):
    schema = an_object(properties) | {"$defs": {"day": {"type": "string", "format": "date"}}}
    jsonschema.validate(example_arguments(schema), schema)
