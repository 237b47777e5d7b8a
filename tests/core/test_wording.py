"""Numbers and what they count."""

import pytest

from gateway.core.wording import blocks_left_out, counted


@pytest.mark.parametrize(("number", "words"), [(0, "no tools"), (1, "1 tool"), (2, "2 tools"), (1_200, "1,200 tools")])
def test_what_is_counted_is_one_or_many(number: int, words: str) -> None:
    assert counted(number, "tool") == words


def test_one_block_more_is_one_block() -> None:
    assert blocks_left_out(1, 5) == "[1 more block left out: a result may have 5]"
    assert blocks_left_out(2, 5) == "[2 more blocks left out: a result may have 5]"
