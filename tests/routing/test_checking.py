"""Arguments are held to a tool's own schema where its host was shown one that takes more; what does not fit is told."""

from typing import Any

import pytest

from gateway.routing.checking import ArgumentChecks

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
