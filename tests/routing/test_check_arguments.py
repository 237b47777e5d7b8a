"""Arguments are held to a tool's own schema where its host was shown one that takes more; what does not fit is told."""

from typing import Any

import pytest

from gateway.routing.check_arguments import ArgumentChecks

EITHER = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "sizes": {"type": "array", "items": {"type": "integer"}}},
    "anyOf": [{"required": ["x"]}, {"required": ["sizes"]}],
}


def words(arguments: Any, schema: Any = EITHER) -> str:
    refused = ArgumentChecks().refusal("draw", schema, arguments)
    assert refused is not None
    assert refused["isError"] is True
    (block,) = refused["content"]
    return block["text"]


@pytest.mark.parametrize(
    ("arguments", "where", "wanted"),
    [
        ({"x": "a"}, '/x: "a" is not of type "number"', '{"type": "number"}'),
        ({"sizes": [1, 2.5]}, '/sizes/1: 2.5 is not of type "integer"', '{"type": "integer"}'),
        ({}, "as a whole: ", '{"anyOf": [{"required": ["x"]}, {"required": ["sizes"]}]}'),
        (None, "as a whole: ", "anyOf"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place_and_what_is_wanted_there(arguments, where, wanted):
    said = words(arguments)
    assert said.startswith(f"[The arguments do not fit draw, so nothing was called. {where}")
    assert f"(wanted: {wanted}" in said or wanted in said


def test_arguments_that_fit_pass_and_nothing_is_checked_without_a_schema():
    assert ArgumentChecks().refusal("draw", EITHER, {"x": 1}) is None
    assert ArgumentChecks().refusal("draw", None, {"x": "a"}) is None


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x.json", "file:///etc/passwd", "#/gone"])
def test_a_schema_that_leads_elsewhere_is_not_fetched_and_checks_nothing(reference):
    schema = {"type": "object", "properties": {"x": {"$ref": reference}}}
    assert ArgumentChecks().refusal("draw", schema, {"x": "anything"}) is None


def test_what_is_told_of_hostile_arguments_is_short_and_tame():
    said = words({"x": "\x1b[2J" + "y" * 100_000, "sizes": ["z"] * 1_000})
    assert len(said) < 3_000
    assert "\x1b" not in said


def test_arguments_nested_without_end_are_left_to_the_upstream():
    nested: Any = {}
    for _ in range(900):
        nested = {"x": nested}
    schema = {"type": "object", "properties": {"x": {"$ref": "#"}}}
    assert ArgumentChecks().refusal("draw", schema, nested) is None


def test_many_schemas_are_compiled_and_few_are_kept():
    arguments = ArgumentChecks()
    for index in range(1_000):
        assert arguments.refusal("draw", {"type": "object", "required": [f"p{index}"]}, {}) is not None
    assert len(arguments._compiled) <= 256


def doubling(size: int) -> dict[str, Any]:
    named = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(size)}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": {**named, f"d{size}": {"required": ["x"]}}}


def test_definitions_that_double_one_another_are_not_checked_against(caplog):
    checks, endless = ArgumentChecks(), doubling(40)
    assert checks.refusal("draw", endless, {}) is None
    assert checks.refusal("draw", endless, {}) is None
    assert [record.message for record in caplog.records] == [
        "arguments of draw are not checked against its schema: its definitions refer to one another too often"
    ]
    assert ArgumentChecks().refusal("draw", doubling(3), {}) is not None


def test_arguments_that_multiply_the_work_are_left_to_the_upstream():
    schema = {"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}], "required": ["y"]}}}
    nested: Any = {}
    for _ in range(40):
        nested = {"x": nested}
    assert ArgumentChecks().refusal("draw", schema, nested) is None
    assert ArgumentChecks().refusal("draw", schema, {"x": {}}) is not None


@pytest.mark.parametrize("pattern", ["(?=a)[ab]*a[ab]{500}c", "^((x+x+)+)\\1y$", "[^a]*a[^b]{900}c"])
def test_patterns_that_could_take_long_are_not_checked_and_the_rest_is(pattern):
    schema = {"type": "object", "properties": {"x": {"pattern": pattern}, "y": {"type": "number"}}}
    assert ArgumentChecks().refusal("draw", schema, {"x": "ab" * 10_000}) is None
    assert "/y" in words({"x": "ab", "y": "1"}, schema)
    names = {"type": "object", "patternProperties": {pattern: {}}, "properties": {"y": {"type": "number"}}}
    assert ArgumentChecks().refusal("draw", names, {"y": "1"}) is None


def test_ordinary_patterns_are_checked():
    schema = {"type": "object", "properties": {"x": {"pattern": "^[a-z]{1,64}@[a-z.]+$"}}}
    assert ArgumentChecks().refusal("draw", schema, {"x": "somebody@example.com"}) is None
    assert "/x" in words({"x": "nobody"}, schema)


def test_mistakes_that_are_too_many_are_not_told_one_by_one():
    schema = {"type": "object", "allOf": [{"required": [f"y{n}"]} for n in range(200)]}
    assert "they do not fit its input schema" in words({"x": "a" * 2_000_000}, schema)
    assert '"y0" is a required property' in words({"x": "a"}, schema)
