"""JSON that every writer can write."""

import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model.json_safe import is_finite, read_leniently, to_json_safe

texts = st.text(st.characters(exclude_categories=()))
sound = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda children: st.lists(children) | st.tuples(children) | st.dictionaries(texts, children),
)


@given(sound)
def test_what_is_safe_already_comes_back_as_the_same_object(value):
    assert to_json_safe(value) is value


@given(anything)
def test_whatever_comes_can_be_written_as_json_in_utf_8(value):
    json.dumps(to_json_safe(value), allow_nan=False, ensure_ascii=False).encode("utf-8")


@given(st.text())
def test_text_written_as_halves_of_surrogate_pairs_is_put_together_again(text):
    halves = text.encode("utf-16-le", "surrogatepass")
    split = "".join(chr(int.from_bytes(halves[at : at + 2], "little")) for at in range(0, len(halves), 2))
    assert to_json_safe(split) == text


def test_a_lone_half_becomes_a_replacement_character_and_costs_nothing_else():
    result = {"content": [{"type": "text", "text": "a\ud83db"}], "n": math.nan, "deep": [[math.inf, 1.5]]}
    assert to_json_safe(result) == {"content": [{"type": "text", "text": "a\ufffdb"}], "n": None, "deep": [[None, 1.5]]}
    assert result["content"][0]["text"] == "a\ud83db"


def test_frozen_mappings_and_tuples_become_objects_and_arrays():
    assert to_json_safe({"tools": (MappingProxyType({"name": "x"}),)}) == {"tools": [{"name": "x"}]}


def test_what_no_reader_takes_becomes_null_or_a_text():
    deep = to_json_safe(json.loads("[" * 300 + "]" * 300))
    assert json.dumps(deep).count("[") == 101  # 100 levels, and the text that stands for the rest
    assert to_json_safe(10**5_000) is None
    assert to_json_safe(10**4_000) == 10**4_000


def test_what_a_strict_parser_refuses_is_read_all_the_same():
    assert read_leniently(b'{"a": "\\ud83d", "b": "\xff", "n": %s}' % (b"9" * 5_000)) == {
        "a": "\ufffd",
        "b": "\ufffd",
        "n": None,
    }
    assert len(json.dumps(read_leniently("[" * 100_000 + "]" * 100_000))) < 500
    for text in ("[" * 100_000, "", "{", "hello"):
        with pytest.raises(ValueError):
            read_leniently(text)


def test_a_number_is_finite_when_a_float_can_hold_it():
    assert all(map(is_finite, (0, 1.5, -(10**300))))
    assert not any(map(is_finite, (10**400, math.inf, math.nan, True, "1", None)))


def test_what_is_no_json_value_is_refused():
    with pytest.raises(TypeError):
        to_json_safe({"data": b"bytes"})
