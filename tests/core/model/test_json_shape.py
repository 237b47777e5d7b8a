import json
from typing import Any

import mcp_types as types
import pytest
from pydantic import AnyUrl, TypeAdapter

from gateway.core.model.json_safe import is_json_safe
from gateway.core.model.json_shape import (
    DEEPEST,
    NESTED_TOO_DEEPLY,
    cut_text,
    has_long_text,
    is_deep,
    may_be_deep,
    without_deep,
)
from gateway.core.model.json_size import size_of


def nested(depth: int, inner: Any = "x") -> Any:
    for _ in range(depth):
        inner = [inner] if depth % 2 else {"a": inner}
    return inner


def test_depth_costs_nothing_but_time() -> None:
    value = nested(100_001)
    assert size_of(value).characters == 1
    assert is_deep(value)
    assert not has_long_text(value, 2)


@pytest.mark.parametrize("depth", [1, 2, DEEPEST, DEEPEST + 1, 300])
def test_depth_is_told_to_the_level(depth: int) -> None:
    assert is_deep(nested(depth)) is (depth > DEEPEST)
    assert is_deep(nested(depth, {}), DEEPEST) is (depth + 1 > DEEPEST)


def test_what_has_few_brackets_is_known_not_to_be_deep() -> None:
    assert not may_be_deep(b"A" * 1_000_000)
    assert not may_be_deep(json.dumps(nested(DEEPEST)).encode())
    assert may_be_deep(json.dumps(nested(DEEPEST + 1)).encode())
    assert may_be_deep(json.dumps(nested(DEEPEST + 1)))


def test_long_texts_are_found_wherever_they_are() -> None:
    assert has_long_text({"a": [{"b": "x" * 64}]}, 64)
    assert not has_long_text({"x" * 64: ["x" * 63, 1]}, 64)


@pytest.mark.parametrize("depth", [10, 149, 151, 1_000, 200_000])
@pytest.mark.parametrize("around", ['{"id": 1, "a": %s, "b": [{"c": "]]}}"}]}', "[%s, [], 7]"])
def test_text_is_cut_where_no_parser_would_go(depth: int, around: str) -> None:
    for inside in ("[" * depth + "]" * depth, '{"a":[' * (depth // 2) + '"\\"]]"' + "]}" * (depth // 2)):
        text = around % inside
        value = json.loads(cut_text(text))
        assert is_deep(value) is (depth > DEEPEST)
        if depth < 150:
            assert cut_text(text) is text
        if isinstance(value, dict):
            assert value["b"] == [{"c": "]]}}"}]
        else:
            assert value[1:] == [[], 7]


@pytest.mark.parametrize(
    "text", ["", "]" * 10_000, "[" * 10_000, '"' + '\\"' * 300_000, '"[' * 300_001, "\\" * 300_000]
)
def test_text_that_is_not_json_is_cut_in_linear_time(text: str) -> None:
    assert isinstance(cut_text(text), str)


def test_as_little_as_possible_is_taken_of_a_result() -> None:
    deep = nested(DEEPEST + 1)
    result = {
        "tools": [
            {"name": "a", "inputSchema": deep, "_meta": {}},
            {"name": "b", "_meta": deep},
            deep,
            {"name": "c", "inputSchema": nested(20)},
        ],
        "content": [{"type": "resource", "resource": {"uri": "x", "_meta": deep}}],
        "structuredContent": deep,
        "nextCursor": "n",
    }
    shallow, places = without_deep(result)
    assert not is_deep(shallow)
    assert shallow["tools"][0] == {"name": "a", "inputSchema": NESTED_TOO_DEEPLY, "_meta": {}}
    assert shallow["tools"][1:] == [{"name": "b"}, NESTED_TOO_DEEPLY, result["tools"][3]]
    assert shallow["content"] == [{"type": "resource", "resource": {"uri": "x"}}]
    assert shallow["nextCursor"] == "n"
    assert "structuredContent" not in shallow
    assert places == (
        "tools[0].inputSchema",
        "tools[1]._meta",
        "tools[2]",
        "content[0].resource._meta",
        "structuredContent",
    )


def of_contents(*contents: Any) -> Any:
    return types.ReadResourceResult, {"contents": list(contents), "ttlMs": 0, "cacheScope": "private"}


def of_messages(*messages: Any) -> Any:
    return types.GetPromptResult, {"messages": list(messages)}


DEEP = nested(DEEPEST + 5)
FINE: Any = {"uri": "x://fine", "text": "fine"}
SAID: Any = {"role": "assistant", "content": {"type": "text", "text": "fine"}}


@pytest.mark.parametrize(
    ("model", "result"),
    [
        of_contents(FINE, DEEP),
        of_contents(FINE, {"uri": DEEP, "text": "x"}),
        of_contents(FINE, {"uri": "x://y", "blob": DEEP}),
        of_contents(FINE, {"uri": "x://y", "text": DEEP, "mimeType": DEEP, "_meta": DEEP}),
        of_messages(SAID, DEEP),
        of_messages(SAID, {"role": DEEP, "content": {"type": "text", "text": "fine"}}),
        of_messages(SAID, {"role": "user", "content": {"type": DEEP, "text": "fine"}}),
        of_messages(SAID, {"role": "user", "content": {"type": "image", "data": DEEP, "mimeType": "image/png"}}),
        of_messages(SAID, {"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": DEEP}}),
        of_messages(SAID, {"role": "user", "content": {"type": "resource", "resource": DEEP}}),
        of_messages(SAID, {"role": "user", "content": {"type": "resource", "resource": {"uri": DEEP, "text": "x"}}}),
        of_messages(SAID, {"role": "user", "content": {"type": "resource_link", "uri": "x://y", "name": DEEP}}),
        (types.CompleteResult, {"completion": DEEP}),
        (types.CompleteResult, {"completion": {"values": ["fine", DEEP], "total": 2}}),
    ],
)
def test_an_answer_that_lost_a_part_is_still_one_for_strict_clients(model: Any, result: Any) -> None:
    shallow, places = without_deep(result)
    model.model_validate({"resultType": "complete", **shallow})
    TypeAdapter(list[AnyUrl]).validate_python([each["uri"] for each in shallow.get("contents", ())])
    assert places
    for held, fine in (("contents", FINE), ("messages", SAID)):
        if held in shallow:
            assert shallow[held][0] is fine
            assert NESTED_TOO_DEEPLY in str(shallow[held][1]) or places == (f"{held}[1].role",)


def test_what_else_is_in_a_part_that_lost_something_stays() -> None:
    one = {"role": "user", "content": {"type": "text", "text": "fine", "later": DEEP, "_meta": DEEP}, "later": DEEP}
    other = {"role": "user", "content": [{"type": "text", "text": "fine"}, DEEP]}
    shallow, _ = without_deep({"messages": [one, other], "contents": [{**FINE, "_meta": DEEP}]})
    assert shallow["messages"][0]["content"]["text"] == "fine"
    left_out = {"type": "text", "text": NESTED_TOO_DEEPLY}
    assert shallow["messages"][1]["content"] == [{"type": "text", "text": "fine"}, left_out]
    assert shallow["contents"] == [FINE]


@pytest.mark.parametrize("member", ["experimental", "extensions"])
def test_deep_capabilities_cost_no_other_capability(member: str) -> None:
    declared = {"tools": {"listChanged": True}, "resources": {}}
    shallow, places = without_deep({"capabilities": {**declared, member: {"x": DEEP}}, "protocolVersion": "2025-11-25"})
    assert shallow == {"capabilities": declared, "protocolVersion": "2025-11-25"}
    assert places == (f"capabilities.{member}",)
    shallow, _ = without_deep({"capabilities": {**declared, "resources": {"x": DEEP}}})
    assert shallow["capabilities"]["tools"] == {"listChanged": True}


def test_a_shallow_result_stays_whole() -> None:
    result = {"content": [{"type": "text", "text": "x"}], "structuredContent": nested(50)}
    assert without_deep(result) == (result, ())


def test_holders_within_holders_are_looked_into_a_few_levels_deep() -> None:
    value: Any = {"resource": [[]] * 10, "deep": nested(DEEPEST + 5)}
    for _ in range(20):
        value = {"resource": value}
    shallow, places = without_deep({"content": [value, {"type": "text", "text": "fine"}]})
    assert len(places) == 1
    assert shallow["content"][1] == {"type": "text", "text": "fine"}
    assert not is_deep(shallow)


@pytest.mark.parametrize("value", [[0] * 1_000, {str(n): [n] for n in range(600)}, [[0] * 400, [[0] * 400, [0] * 400]]])
def test_nothing_is_said_of_more_values_than_may_be_looked_at(value):
    assert is_deep(value, most_values=900) is None
    assert is_deep(value, most_values=2_000) is False
    assert is_json_safe(value, most_values=900) is None
    assert is_json_safe(value, most_values=2_000) is True
