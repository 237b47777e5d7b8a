"""Forms of schemas: what a value becomes in a form comes back as the same value, whatever the schema is."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.model.canonical_json import canonical_json
from gateway.core.tools.arguments import Parameter
from gateway.errors import InvalidRequest
from gateway.serving.console.read_form import MOST_PAIRS, parse_json, read_form
from gateway.serving.console.schema_form import MOST_FIELDS, Field, form_of


def submitted(field: Field) -> Iterator[tuple[str, str]]:
    """What a browser sends of a field: nothing of a part that is not given."""
    match field["kind"]:
        case "object":
            if field["given"]:
                yield field["name"], "1"
                for one in field["fields"]:
                    yield from submitted(one)
                if field["more"]:
                    yield from submitted(field["more"])
        case "array":
            if field["name"]:
                yield field["name"], "1"
            for row in field["rows"]:
                yield from submitted(row)
        case "union":
            if field["chosen"] is not None:
                yield from submitted(field["branches"][field["chosen"]]["field"])
        case _:
            # A browser sends every line end as CRLF.
            yield field["name"], (field["value"] or "").replace("\n", "\r\n")


def kinds(field: Field) -> dict[str, str]:
    """The kind of each member of an object."""
    return {one["label"]: one.get("input") or one["kind"] for one in field["fields"]}


def back(schema: Any, value: Any) -> Any:
    return read_form(submitted(form_of(schema, value))).value


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

names = st.sampled_from(["a", "b", "a/b", "~r0", "~0", 'q"q', "\ud800", "\x1b[31m", "", "ä"])


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=4)},
        optional={"required": st.lists(names, max_size=3), "additionalProperties": st.booleans() | inner},
    )


schemas = st.recursive(
    st.booleans()
    | st.sampled_from(
        [
            {},
            {"type": "string"},
            {"type": "string", "format": "date"},
            {"type": "string", "maxLength": 20},
            {"type": "integer"},
            {"type": "number", "default": 2.5},
            {"type": "boolean"},
            {"type": "null"},
            {"type": ["string", "null"]},
            {"type": ["integer", "string", "array"]},
            {"enum": ["x", 1, None, {"a": []}]},
            {"const": "only"},
            {"$ref": "#"},
            {"$ref": "#/nowhere"},
            {"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]},
        ]
    )
    | values,
    lambda inner: (
        _objects(inner)
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, max_size=3), "description": st.text()})
        | st.fixed_dictionaries({"allOf": st.lists(inner, max_size=3)})
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(schemas, st.dictionaries(names, values, max_size=4))
def test_a_form_gives_back_the_value_that_it_was_made_of(schema: Any, value: dict[str, Any]) -> None:
    assert canonical_json(back(schema, value)) == canonical_json(value)


@settings(max_examples=100, deadline=None)
@given(schemas)
def test_a_form_without_a_value_can_be_sent_and_begun_again(schema: Any) -> None:
    first = read_form(submitted(form_of(schema))).value
    assert canonical_json(back(schema, first)) == canonical_json(first)
    json.dumps(form_of(schema))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12) | st.sampled_from(["s:/a", "a:/a", "j:/a/~r0", "o:", "m:"]), st.text())))
def test_reading_any_pairs_gives_a_value_or_is_refused(pairs: list[tuple[str, str]]) -> None:
    with suppress(InvalidRequest):
        json.dumps(read_form(pairs).value)


def test_each_kind_of_schema_has_its_control() -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "short": {"type": "string", "maxLength": 20},
            "day": {"type": "string", "format": "date"},
            "secret": {"type": "string", "format": "password"},
            "when": {"type": "string", "format": "date-time"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "share": {"type": "number"},
            "yes": {"type": "boolean"},
            "size": {"enum": ["s", "m"]},
            "inner": {"type": "object", "properties": {"x": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "string"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "named": {"$ref": "#/$defs/size"},
            "all": {"allOf": [{"$ref": "#/$defs/size"}], "description": "of all"},
            "pair": {"type": "array", "prefixItems": [{}, {}]},
            "anything": {},
            "picture": {"type": "string"},
        },
        "$defs": {"size": {"type": "integer"}},
    }
    assert kinds(form_of(schema, content=[Parameter(("picture",), "base64")])) == {
        "text": "area",
        "short": "text",
        "day": "date",
        "secret": "password",
        "when": "text",
        "count": "number",
        "share": "number",
        "yes": "pick",
        "size": "pick",
        "inner": "object",
        "list": "array",
        "either": "union",
        "maybe": "area",
        "named": "number",
        "all": "number",
        "pair": "json",
        "anything": "json",
        "picture": "content",
    }
    hint = next(one["hint"] for one in form_of(schema)["fields"] if one["label"] == "count")
    assert hint == "at least 1, at most 9"


def test_defaults_and_the_only_value_are_filled_in() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "default": 3},
            "kind": {"const": "circle"},
            "other": {"const": "never"},
            "inner": {"type": "object", "properties": {"b": {"type": "string", "default": "x"}}},
            "list": {"type": "array", "items": {"type": "string"}, "default": ["p", "q"]},
            "heading": {"type": "string", "title": "Heading", "default": "", "minLength": 1},
        },
        "required": ["kind", "inner"],
    }
    filled = {"a": 3, "kind": "circle", "inner": {"b": "x"}, "list": ["p", "q"]}
    assert read_form(submitted(form_of(schema))).value == filled
    assert back(schema, {}) == {}
    heading = form_of(schema)["fields"][-1]
    assert (heading["kind"], heading["title"], heading["hint"]) == ("text", "", "at least 1 character")


def test_the_branch_that_a_value_is_of_is_chosen() -> None:
    shapes = {
        "oneOf": [
            {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "line"}, "n": {"type": "integer"}}, "required": ["kind"]},
        ]
    }
    schema = {"type": "object", "properties": {"shape": shapes}}
    (field,) = form_of(schema, {"shape": {"kind": "line", "n": 2}})["fields"]
    assert field["chosen"] == 1
    assert [branch["words"] for branch in field["branches"]] == ["kind: circle", "kind: line"]


def test_recursion_and_size_end_in_json() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    }
    children = form_of(tree)["fields"][1]
    assert children["row"]["kind"] in ("object", "json")
    many = {f"p{at}": {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {}}} for at in range(100)}
    deep: Any = {"type": "string"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    doubling: dict[str, Any] = {"$defs": {"d0": {"type": "string"}}, "type": "object"}
    for at in range(1, 30):
        named = {"$ref": f"#/$defs/d{at - 1}"}
        doubling["$defs"][f"d{at}"] = {"type": "object", "properties": {"l": named, "r": named}}
    doubling["properties"] = {"x": {"$ref": "#/$defs/d29"}}
    for schema in ({"type": "object", "properties": many}, deep, doubling, tree):
        assert _count(form_of(schema)) < 2 * MOST_FIELDS


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return ("kind" in value) + sum(_count(one) for one in value.values())
    return sum(_count(one) for one in value) if isinstance(value, list) else 0


def test_rows_keep_the_order_in_which_they_arrive() -> None:
    read = read_form([("s:/l/~r7", "first"), ("s:/l/~r2", "second"), ("s:/l/~r3", "")])
    assert read.value == {"l": ["first", "second"]}
    assert read.place_of(("l", 1)) == "/l/~r2"
    assert read.place_of(("l", 1, "more")) == "/l/~r2/more"
    assert read.place_of(("missing",)) == "/missing"


def test_what_cannot_be_read_is_told_at_its_place() -> None:
    read = read_form(
        [("n:/n", "twelve"), ("j:/j", "{"), ("m:", "[1]"), ("n:/inf", "1e999"), ("j:/nan", "NaN"), ("s:/ok", "x")]
    )
    assert read.value == {"ok": "x"}
    assert {mistake.at for mistake in read.mistakes} == {"/n", "/j", "", "/inf", "/nan"}
    assert all(mistake.text for mistake in read.mistakes)


@pytest.mark.parametrize(
    "pairs",
    [
        [("s:nowhere", "x")],
        [('s:/"', "x")],
        [("s:/a", "x"), ("s:/a/b", "x")],
        [("s:/a/~r0", "x"), ("s:/a/b", "x")],
        [("s:" + "/a" * 100, "x")],
        [("s:/a", "x")] * (MOST_PAIRS + 1),
    ],
)
def test_what_is_no_form_is_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidRequest):
        read_form(pairs)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 150 + "]" * 150, '{"a": Infinity}', "{", "1" * 5_000])
def test_hostile_json_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="this is"):
        parse_json(text)
