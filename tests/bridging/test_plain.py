"""JSON that every writer can write."""

import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridging.plain import plain

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
def test_what_is_plain_already_comes_back_as_the_same_object(value):
    assert plain(value) is value


@given(anything)
def test_whatever_comes_can_be_written_as_json_in_utf_8(value):
    json.dumps(plain(value), allow_nan=False, ensure_ascii=False).encode("utf-8")


@given(st.text())
def test_text_written_as_halves_of_surrogate_pairs_is_put_together_again(text):
    halves = text.encode("utf-16-le", "surrogatepass")
    split = "".join(chr(int.from_bytes(halves[at : at + 2], "little")) for at in range(0, len(halves), 2))
    assert plain(split) == text


def test_a_lone_half_becomes_a_replacement_character_and_costs_nothing_else():
    result = {"content": [{"type": "text", "text": "a\ud83db"}], "n": math.nan, "deep": [[math.inf, 1.5]]}
    assert plain(result) == {"content": [{"type": "text", "text": "a\ufffdb"}], "n": None, "deep": [[None, 1.5]]}
    assert result["content"][0]["text"] == "a\ud83db"


def test_frozen_mappings_and_tuples_become_objects_and_arrays():
    assert plain({"tools": (MappingProxyType({"name": "x"}),)}) == {"tools": [{"name": "x"}]}


def test_what_is_no_json_value_is_refused():
    with pytest.raises(TypeError):
        plain({"data": b"bytes"})
