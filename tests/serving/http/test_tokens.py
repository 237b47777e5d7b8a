"""Wrong tokens are logged and slowed, and lines that can be caused at will are bounded."""

import logging
from typing import Any

import pytest

from gateway.serving.http import RepeatedLines, WrongTokens
from gateway.serving.http.peers import peer_of

pytestmark = pytest.mark.anyio


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
        wrong.pause(f"2001:db8:0:{number:x}::1")
    assert len(wrong._wrong) == 1_000


def test_wrong_tokens_are_counted_by_what_one_peer_has_of_addresses(clock):
    wrong = WrongTokens("x", clock)
    pauses = [wrong.pause(f"2001:db8::{number:x}") for number in range(1, 50)]
    assert pauses[-1] == 2.0
    assert len(wrong._wrong) == 1
    assert wrong.pause("2001:db8:0:1::1") == 0  # the next network
    assert [wrong.pause(address) for address in ("192.0.2.1", "::ffff:192.0.2.1") * 2][-1] > 0


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("somebody", "somebody"),
        ("", ""),
    ],
)
def test_an_address_counts_as_its_peer(address, peer):
    assert peer_of(address) == peer


async def test_replicas_count_wrong_tokens_by_peer_too(clock):
    told = []

    class Shared:
        async def repeated(self, key, seconds):
            told.append(key)
            return 0

    shared: Any = Shared
    await WrongTokens("x", clock, shared).refused_from("2001:db8::5")
    assert told == [("wrong token from", "2001:db8::/64")]


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
