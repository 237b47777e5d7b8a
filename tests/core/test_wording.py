"""Sentences that a model reads."""

from gateway.core.wording import blocks_left_out


def test_one_block_more_is_one_block() -> None:
    assert blocks_left_out(1, 5) == "[1 more block left out: a result may have 5]"
    assert blocks_left_out(2, 5) == "[2 more blocks left out: a result may have 5]"
