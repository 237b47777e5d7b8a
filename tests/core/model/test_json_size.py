import json
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from gateway.core.model.json_size import (
    compact_json,
    memory_of,
    size_of,
    wire_bytes,
    wire_chars,
)


def test_keys_texts_and_numbers_are_counted_as_characters_and_everything_as_values() -> None:
    size = size_of({"ab": ["cde", 1, None, True], "f": {}})
    assert (size.characters, size.values, size.is_whole) == (2 + 3 + 1 + 4 + 4 + 1, 1 + 2 + 4, True)
    assert size_of("abc").total == 3 + 1
    assert size_of(MappingProxyType({"a": ("b", "c")})).characters == 3


@pytest.mark.parametrize(
    "numbers",
    [
        list(range(1_000)),
        [-(7**each) for each in range(200)],
        [each * 0.37 for each in range(10_000)],
        [{"id": each, "price": each / 100, "is_new": each % 2 == 0, "note": None} for each in range(1_000)],
        [1e300, -2.5, 0.0],
        [10**4_000],
        3.14159,
    ],
)
def test_numbers_count_about_what_they_take_as_json(numbers: Any) -> None:
    assert size_of(numbers).total == pytest.approx(wire_chars(numbers), rel=0.3)


def test_counting_ends_soon_after_a_limit() -> None:
    table = [[0] * 10] * 100_000
    assert not size_of(table, most_values=1_000).is_whole
    assert not size_of(table, most=1_000).is_whole
    assert size_of(table).values == 1_100_001
    assert size_of(["x" * 100], most=50, most_values=10).total > 50


def test_a_value_is_measured_as_it_is_sent_with_its_escapes_and_without_blanks() -> None:
    value = {"a": ["\u00e4\n", 1.5, None], "b": {"c": "\U0001f642"}}
    sent = '{"a":["\u00e4\\n",1.5,null],"b":{"c":"\U0001f642"}}'
    assert compact_json(value) == sent
    assert json.loads(sent) == value
    assert wire_chars(value) == len(sent)
    assert wire_bytes(value) == len(sent.encode())
    assert wire_bytes("\ud800") == 3 + 2


def test_what_json_does_not_have_is_measured_as_text() -> None:
    assert compact_json({"on": date(2026, 11, 22)}) == '{"on":"2026-11-22"}'


def test_no_measure_without_writing_is_more_than_what_is_written() -> None:
    value = {"content": [{"type": "text", "text": "\u00e4" * 50}] * 20, "isError": False}
    size = size_of(value)
    assert size.characters < wire_chars(value) < wire_bytes(value)
    assert size.total < wire_chars(value)
    assert memory_of(value) > wire_bytes(value)
