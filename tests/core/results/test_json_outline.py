"""JSON that is too long is cut to its shape: keys, counts, types and the first rows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.results.json_outline import MOST_CHARS, json_outline, json_outlines

ROWS = [{"id": number, "name": f"row {number}", "price": number / 2, "tags": ["a", "b"]} for number in range(5_000)]


def test_a_list_keeps_its_first_rows_its_count_and_its_types():
    shape = json_outline(json.dumps({"items": ROWS, "next": None}), 1_000)
    assert shape is not None
    assert len(shape) <= 1_000
    assert '"id": 0' in shape
    assert '"row 1"' in shape
    assert '5,000 in all: {"id": number, "name": text, "price": number, "tags": list}' in shape
    assert '"next": null' in shape


def test_more_room_shows_more_rows():
    rows = [{"id": number, "name": "x"} for number in range(1_000)]
    few, many = (json_outline(json.dumps(rows), room) or "" for room in (400, 4_000))
    assert few.count('"id": ') < many.count('"id": ')


def test_long_texts_and_many_keys_are_cut():
    wide = {f"key {number}": "y" * 500 for number in range(500)}
    shape = json_outline(json.dumps(wide), 2_000)
    assert shape is not None
    assert "(500 characters)" in shape
    assert "more keys" in shape


def test_a_deep_value_is_named_by_its_kind():
    value: Any = ["x" * 2_000]
    for _ in range(90):
        value = {"in": value}
    shape = json_outline(json.dumps(value), 500)
    assert shape is not None
    assert "<object of 1>" in shape


@pytest.mark.parametrize(
    "text",
    [
        "plain words " * 100,
        '{"broken": ' + "1" * 1_000,
        "[" * 10_000 + "]" * 10_000,
        '"' + "x" * 1_000 + '"',
        "[" + "1," * (MOST_CHARS // 2) + "1]",
        json.dumps({"k" * 400: 1, "l" * 400: 2}),
    ],
    ids=["text", "broken", "deep", "scalar", "huge", "no room"],
)
def test_what_has_no_shape_to_show(text):
    assert json_outline(text, 310) is None or len(text) < 1_000


def test_a_long_text_has_shapes_of_several_lengths():
    rows = [{"id": number, "name": f"row {number}"} for number in range(80_000)]
    text = json.dumps(rows)
    assert len(text) > MOST_CHARS
    shapes = json_outlines(text)
    lengths = [len(shape) for shape in shapes]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < 300 < lengths[0] < 5_000
    assert all("80,000 in all" in shape for shape in shapes)
    assert json_outlines(text[:-1]) == json_outlines("[" * 10_000 + "]" * 10_000) == json_outlines("words") == ()


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=60),
        lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
        max_leaves=60,
    ),
    st.integers(300, 3_000),
)
def test_a_shape_never_exceeds_its_room(value, room):
    shape = json_outline(json.dumps(value), room)
    assert shape is None or len(shape) <= room
