"""Differences between a tool and its pin, in words; and which of them are only about words."""

from typing import Any

import pytest

from gateway.core.model.canonical_json import digest_of_json
from gateway.core.policy.pins import Difference, differences, pinned_form, server_difference

TOOL: dict[str, Any] = {
    "name": "write",
    "description": "Writes.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "description": {"type": "string"},
            "mode": {"enum": ["a", "w"]},
        },
        "required": ["path"],
    },
    "annotations": {"destructiveHint": False},
    "_meta": {"ui": {"resourceUri": "ui://page"}, "other": 1},
}


def changed(**members: Any) -> list[Difference]:
    return differences(pinned_form(TOOL), pinned_form({**TOOL, **members}))


def with_arguments(required: tuple[str, ...] = ("path",), **properties: Any) -> list[Difference]:
    declared = {**TOOL["inputSchema"]["properties"], **properties}
    kept = {name: schema for name, schema in declared.items() if schema is not None}
    return changed(inputSchema={"type": "object", "properties": kept, "required": list(required)})


def test_a_tool_that_is_the_same_has_no_differences() -> None:
    assert changed() == []
    assert changed(_meta={"ui": {"resourceUri": "ui://page"}, "other": 2}, icons=[]) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (with_arguments(("path", "bcc"), bcc={"type": "string"}), "argument bcc is new and required"),
        (with_arguments(bcc={"type": "string"}), "argument bcc is new and optional"),
        (with_arguments(description=None), "argument description is gone"),
        (with_arguments(path={"type": "array"}), "argument path was of type string, and is of type array"),
        (with_arguments(mode={"enum": ["a", "w", "x"]}), "argument mode takes other values"),
        (with_arguments(()), "argument path is now optional"),
        (changed(outputSchema={"type": "object"}), "its output schema has changed"),
        (changed(annotations={"destructiveHint": True}), "destructiveHint was false, and is true"),
        (changed(annotations={}), "destructiveHint was false, and is not given"),
        (changed(_meta={}), "its page has changed: it was ui://page, and is not given"),
        (
            changed(inputSchema={**TOOL["inputSchema"], "additionalProperties": False}),
            "its input schema has changed: additionalProperties",
        ),
    ],
)
def test_what_decides_about_a_call_is_a_difference(found: list[Difference], words: str) -> None:
    assert found == [Difference(words)]


@pytest.mark.parametrize(
    "found",
    [
        changed(description="Writes a file."),
        changed(title="Write"),
        changed(annotations={"destructiveHint": False, "title": "Write"}),
        with_arguments(path={"type": "string", "description": "The path."}),
    ],
)
def test_other_words_are_only_that(found: list[Difference]) -> None:
    assert len(found) == 1
    assert found[0].is_wording


def test_an_argument_named_description_is_an_argument() -> None:
    (found,) = with_arguments(description={"type": "integer"})
    assert not found.is_wording


def test_words_of_a_hostile_server_are_bounded_and_visible() -> None:
    hostile = {f"x\x1b[31m{number}{'y' * 500}": {"type": "string"} for number in range(100)}
    found = with_arguments((), **hostile)
    assert len(found) <= 12
    assert all(len(each.words) < 200 and "\x1b" not in each.words for each in found)


@pytest.mark.parametrize("schema", [None, [], "text", {"properties": 1, "required": 2}, {"properties": {"a": None}}])
def test_what_is_no_schema_is_compared_too(schema: Any) -> None:
    assert changed(inputSchema=schema)


def test_the_digest_does_not_depend_on_the_order_of_members() -> None:
    assert digest_of_json({"a": 1, "b": "\ud800"}) == digest_of_json({"b": "\ud800", "a": 1})
    assert digest_of_json({"a": 1}) != digest_of_json({"a": "1"})


def test_a_server_is_known_by_its_name() -> None:
    assert server_difference({"name": "a", "version": "1"}, {"name": "a", "version": "2"}) is None
    assert server_difference(None, {"name": "a"}) is None
    assert server_difference({"name": "a"}, {"name": "b"}) == Difference(
        "the server calls itself b, and called itself a"
    )
