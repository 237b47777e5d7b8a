"""Wrong tokens are logged and slowed, and lines that can be caused at will are bounded."""

import logging

import pytest

from gateway.serving.http import RepeatedLines, WrongTokens


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_each_wrong_token_waits_longer_up_to_a_limit(clock):
    wrong = WrongTokens("x", clock)
    pauses = [wrong.pause("192.0.2.1") for _ in range(50)]
    assert pauses[:3] == [0, 0, 0]  # anybody may be mistaken
    assert pauses == sorted(pauses)
    assert pauses[-1] == 2.0
    assert wrong.pause("192.0.2.2") == 0
    clock.now += 61
    assert wrong.pause("192.0.2.1") == 0


def test_the_addresses_that_are_kept_in_mind_are_bounded(clock):
    wrong = WrongTokens("x", clock)
    for number in range(5_000):
        wrong.pause(f"2001:db8::{number:x}")
    assert len(wrong._wrong) == 1_000


def test_repeated_lines_are_counted(clock, caplog):
    lines = RepeatedLines(logging.getLogger("gateway.test"), 10, clock)
    for _ in range(300):
        lines.warn("a", "something happened")
    lines.warn("b", "something else")
    clock.now += 10
    lines.warn("a", "something happened")
    assert [record.getMessage() for record in caplog.records] == [
        "something happened",
        "something else",
        "something happened (300 times since the last such line)",
    ]
