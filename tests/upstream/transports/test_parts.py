"""Messages that arrive in very small parts take no more memory than others."""

import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest

from gateway.upstream.transports.lines import LineReader
from gateway.upstream.transports.parts import Parts
from gateway.upstream.transports.streamable.events import EventParser

SIZE = 200_000


def cut(data: bytes, size: int = 2) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def peak(feed: Callable[[bytes], object], chunks: Iterable[bytes]) -> int:
    tracemalloc.start()
    try:
        for chunk in chunks:
            list(feed(chunk) or ())  # type: ignore[call-overload]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("between", [b"", b"\n"])
@pytest.mark.parametrize("count", [0, 1, 2, 999, 1_000, 1_001, 5_000])
def test_parts_are_joined_as_they_came(between: bytes, count: int) -> None:
    parts = Parts(between)
    for _ in range(2):
        given = [str(number).encode() for number in range(count)]
        for part in given:
            parts.append(part)
        assert parts.take() == between.join(given)


@pytest.mark.parametrize(
    ("feed", "data"),
    [
        (LineReader(10 * SIZE).feed, b"x" * SIZE),
        (EventParser(10 * SIZE).feed, b"data: " + b"x" * SIZE),
        (EventParser(10 * SIZE).feed, b"data:ab\n" * (SIZE // 4)),
    ],
    ids=["line", "event", "lines of an event"],
)
def test_small_parts_take_little_memory(feed: Callable[[bytes], object], data: bytes) -> None:
    assert peak(feed, cut(data)) < 2 * SIZE
