"""The mark with which replicas pass requests on: nobody else can make one, or use one for another request."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from gateway.serving.cluster.hop_mark import HEADER, HopMarks, remember_path
from gateway.serving.mcp.cluster_port import HOP_SCOPE
from gateway.serving.mcp.request_caller import CHOOSES_SCOPE


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def request(mark: str | None = None, **changed: Any) -> dict[str, Any]:
    headers = [(b"mcp-session-id", b"one"), *([] if mark is None else [(HEADER.encode(), mark.encode("latin-1"))])]
    scope = {"type": "http", "method": "POST", "raw_path": b"/mcp", "scheme": "https", "client": ("10.0.0.7", 1)}
    scope |= {"headers": headers, **changed}
    remember_path(scope)
    return scope


CLOCK = Clock()
FIRST = HopMarks("first", lambda: b"k" * 32, CLOCK)
SECOND = HopMarks("second", lambda: b"k" * 32, CLOCK)


def test_a_mark_says_where_the_request_came_from() -> None:
    hop = SECOND.read(request(FIRST.make("second", request())))
    assert hop == ("10.0.0.7", "https", False, 1)
    hop = SECOND.read(request(FIRST.make("second", request() | {CHOOSES_SCOPE: True})))
    assert hop == ("10.0.0.7", "https", True, 1)


def test_it_is_counted_how_often_a_request_is_passed_on() -> None:
    hop = SECOND.read(request(FIRST.make("second", request())))
    third = HopMarks("third", lambda: b"k" * 32, CLOCK)
    again = third.read(request(SECOND.make("third", request() | {HOP_SCOPE: hop})))
    assert again is not None
    assert again.number == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "DELETE"},
        {"raw_path": b"/mcp/claude-code"},
        {"headers": [(b"mcp-session-id", b"another")]},
    ],
)
def test_a_mark_is_for_one_request(changed: dict[str, Any]) -> None:
    mark = FIRST.make("second", request())
    other = request(mark)
    if "headers" in changed:
        changed = {"headers": [*changed["headers"], (HEADER.encode(), mark.encode())]}
    other |= changed
    remember_path(other)
    assert SECOND.read(other) is None


def test_a_mark_is_for_one_replica_and_a_short_time() -> None:
    mark = FIRST.make("second", request())
    third = HopMarks("third", lambda: b"k" * 32, CLOCK)
    assert third.read(request(mark)) is None
    later = HopMarks("second", lambda: b"k" * 32, lambda: CLOCK.now + 600)
    assert later.read(request(mark)) is None


def test_a_mark_for_one_that_was_here_before_is_astray_and_what_nobody_has_made_is_not() -> None:
    mark = FIRST.make("second", request())
    third = HopMarks("third", lambda: b"k" * 32, CLOCK)
    assert third.is_astray(request(mark))
    assert not SECOND.is_astray(request(mark))
    assert not third.is_astray(request())
    assert not third.is_astray(request(HopMarks("first", lambda: b"another key", CLOCK).make("second", request())))


def test_replicas_whose_clocks_differ_too_much_say_so(caplog: pytest.LogCaptureFixture) -> None:
    mark = FIRST.make("second", request())
    for seconds in (-110, 110):
        assert HopMarks("second", lambda: b"k" * 32, lambda seconds=seconds: CLOCK.now + seconds).read(request(mark))
    assert not caplog.records
    assert HopMarks("second", lambda: b"k" * 32, lambda: CLOCK.now - 300).read(request(mark)) is None
    assert "its clock and this one's differ by 300 s" in caplog.text


@pytest.mark.parametrize(
    "mark",
    [
        "",
        ".",
        "é.é",
        "x" * 10_000,
        urlsafe_b64encode(json.dumps({"to": "second", "until": 1e9, "peer": None, "scheme": "http"}).encode()).decode(),
        HopMarks("first", lambda: b"another key", CLOCK).make("second", request()),
    ],
)
def test_what_no_replica_has_made_is_no_mark(mark: str) -> None:
    assert SECOND.read(request(mark)) is None
    twice = request(FIRST.make("second", request()))
    twice["headers"] = [*twice["headers"], (HEADER.encode(), mark.encode("latin-1"))]
    assert SECOND.read(twice) is None
