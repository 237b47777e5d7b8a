"""Choosing single tools in lists of patterns: the choice is what was asked for, and patterns that agree stay."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.tools.catalogue.choose_tools import ToolChoice, pattern_for

NAMES = st.text("ab*?[]!", min_size=1, max_size=4)
PATTERNS = st.lists(st.text("ab*?[]!", min_size=1, max_size=3), max_size=4).map(tuple)


@given(PATTERNS, PATTERNS, st.dictionaries(NAMES, st.booleans(), max_size=6))
def test_the_choice_is_what_was_asked_for(
    include: tuple[str, ...], exclude: tuple[str, ...], asked: dict[str, bool]
) -> None:
    changed = ToolChoice(include, exclude).changed(asked)
    assert {name: changed.has(name) for name in asked} == asked
    assert changed.changed(asked) == changed


@given(NAMES, NAMES)
def test_a_pattern_for_a_name_fits_it_alone(name: str, other: str) -> None:
    assert fnmatchcase(other, pattern_for(name)) == (name == other)


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        (ToolChoice(("*",), ()), {"a": True, "b": False}, ToolChoice(("*",), ("b",))),
        (ToolChoice(("*",), ("b",)), {"a": True, "b": True}, ToolChoice(("*",), ())),
        (ToolChoice(("a", "b"), ()), {"a": True, "b": False}, ToolChoice(("a",), ())),
        (ToolChoice(("a",), ()), {"a": True, "b": True}, ToolChoice(("a", "b"), ())),
        (ToolChoice(("*",), ("rm_*",)), {"rm_a": True, "rm_b": False}, ToolChoice(("*",), ("rm_b",))),
        (ToolChoice(("*",), ("rm_*",)), {"rm_a": False, "x": True}, ToolChoice(("*",), ("rm_*",))),
        (ToolChoice(("*",), ()), {"[a]*": False}, ToolChoice(("*",), ("[[]a][*]",))),
    ],
)
def test_as_little_as_possible_is_written(before: ToolChoice, asked: dict[str, bool], after: ToolChoice) -> None:
    assert before.changed(asked) == after
