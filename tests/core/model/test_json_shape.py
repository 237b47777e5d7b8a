import json
from typing import Any

import pytest

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
