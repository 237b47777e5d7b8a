"""Tools as signatures: what a model needs for a call, whatever a server declares."""

import pytest

from gateway.core.tools.signatures import one_line, parameter_words, signature, words_in


def tool(properties=None, *required, **more):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return {"name": "do", "inputSchema": schema, **more}


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        ({"type": "string"}, "string"),
        ({"enum": ["open", "closed", 3]}, '"open" | "closed" | 3'),
        ({"const": True}, "true"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "integer"}]}, "integer | null"),
        ({"type": "array", "items": {"type": "number"}}, "number[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array"}, "any[]"),
        ({"type": "object"}, "object"),
        ({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}, "{x: number}"),
        ({"enum": list(range(20))}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ..."),
        ({}, "any"),
        (True, "any"),
        ({"type": 7}, "any"),
    ],
)
def test_types_are_written_short(declared, shown):
    assert signature(tool({"a": declared}, "a")) == f"do(a: {shown})"


def test_required_parameters_come_first_and_the_others_have_a_mark():
    declared = {"labels": {"type": "array", "items": {"type": "string"}}, "title": {"type": "string"}}
    words = "Creates an issue. Needs the right to write.\nMore."
    assert signature(tool(declared, "title", description=words)) == (
        "do(title: string, labels?: string[])\n  Creates an issue."
    )


@pytest.mark.parametrize(
    "schema",
    [
        None,
        7,
        {"properties": [1]},
        {"properties": {"a": None}, "required": "a"},
        {"properties": {f"p{n}": {"type": "string", "description": "x" * 10_000} for n in range(5_000)}},
        {"properties": {"a": {"enum": ["x" * 100_000]}}},
    ],
)
def test_it_is_bounded_and_never_fails(schema):
    assert len(signature({"name": "n" * 10_000, "inputSchema": schema, "description": "d" * 100_000})) < 6_000
    list(parameter_words(schema))


def test_a_schema_as_deep_as_messages_may_be_is_cut():
    schema = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "anyOf": [schema, schema]}
    assert len(signature(tool({"a": schema}))) < 500


def test_nothing_hidden_and_no_line_breaks_come_from_a_server():
    shown = signature(tool({"a\nb\x1b": {}}, description="One\n\ntwo\x1b[2J\u202e. Three"))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("\n") == 1


def test_names_are_split_where_words_begin():
    assert words_in("createPullRequest get_me HTMLParser2 über_prüfen") == [
        *("create", "pull", "request", "get", "me", "html", "parser", "2", "über", "prüfen"),
    ]
    assert one_line({"title": "A title"}) == "A title"
