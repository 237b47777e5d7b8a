"""The number of values in JSON text that is not parsed yet."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model.json_text import has_more_values

SCALARS = st.none() | st.booleans() | st.integers() | st.text('",[{\\x')
VALUES = st.recursive(
    SCALARS, lambda inside: st.lists(inside) | st.dictionaries(st.text('",[{\\x'), inside), max_leaves=20
)


def marks(value: Any) -> int:
    """The values in arrays and objects, and the empty ones of these."""
    if not isinstance(value, list | dict):
        return 0
    inside = value if isinstance(value, list) else list(value.values())
    return max(1, len(inside)) + sum(map(marks, inside))


@given(VALUES, st.booleans())
def test_values_are_counted_and_not_what_stands_in_texts(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for form in (text, text.encode()):
        assert not has_more_values(form, marks(value))
        assert marks(value) == 0 or has_more_values(form, marks(value) - 1)


@given(st.text('",[{}]\\:x '), st.integers(0, 5))
def test_any_text_is_answered(text: str, most: int) -> None:
    assert has_more_values(text, most) == has_more_values(text.encode(), most)


@pytest.mark.parametrize("unit", ["[],", '"",', '",",', '"\\"",', '{"a":1},', '"', '"\\', "\\", '""', 'a"b'])
def test_it_takes_linear_time(unit: str) -> None:
    text = (unit * (2_000_000 // len(unit))).encode()
    began = time.thread_time()
    has_more_values(text, 1_000)
    has_more_values(text, len(text))
    has_more_values(text, text.count(b",") - 1)
    assert time.thread_time() - began < 5
