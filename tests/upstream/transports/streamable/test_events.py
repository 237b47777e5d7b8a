"""The parser of event streams: linear, bounded, and as the format is specified."""

from collections.abc import Iterable

import pytest

from gateway.upstream.transports.causes import MessageTooLarge
from gateway.upstream.transports.streamable.events import Event, EventParser

STREAM = "\ufeff: hi\nid: 1\nevent: message\ndata: ä\ndata:b\n\ndata\nretry: 50\n\nid\ndata:  c\n\ndata: cut".encode()
EVENTS = [
    Event(b"message", "ä\nb".encode(), b"1", None),
    Event(b"message", b"", b"1", 50),
    Event(b"message", b" c", b"", None),
]


def parsed(chunks: Iterable[bytes], limit: int = 1_000) -> list[Event]:
    parser = EventParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_events_are_the_same_however_they_are_cut(end: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", end)
    assert parsed(stream[at : at + size] for at in range(0, len(stream), size)) == EVENTS


@pytest.mark.parametrize("line", ["retry: -1", "retry: 1_0", "retry: 1" + "0" * 20, "id: a\0b", "more: 1", "dat"])
def test_fields_that_mean_nothing_make_no_event(line: str) -> None:
    assert parsed([line.encode() + b"\n\n"]) == []


def test_an_event_without_a_line_feed_at_the_end_of_a_line_is_delivered_at_once() -> None:
    assert parsed([b"data: 1\r\r"]) == [Event(b"message", b"1", b"", None)]


@pytest.mark.parametrize("chunks", [[b"data: " + b"x" * 100], [b"data: x\n"] * 20, [b"x"] * 101], ids=len)
def test_an_event_over_the_limit_is_refused_before_it_is_complete(chunks: list[bytes]) -> None:
    with pytest.raises(MessageTooLarge):
        parsed(chunks, limit=100)


def test_the_limit_is_for_each_event_and_not_for_comments() -> None:
    assert len(parsed([b": " + b"x" * 90 + b"\ndata: 1\n\n"] * 50, limit=100)) == 50
