"""Lines out of bytes, in linear time and bounded."""

import time

from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.mcp.early_stdio import Lines


def read(chunks, limit=1 << 30):
    lines = Lines(limit)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return [*found, *lines.rest()]


contents = st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")))


@given(contents, st.lists(st.integers(1, 5)), st.sampled_from([b"\n", b"\r\n"]))
def test_lines_are_the_same_however_the_bytes_come(lines, sizes, end):
    stream = end.join(lines)
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    chunks.append(stream[at:])
    assert read(chunks) == [stripped for line in lines if (stripped := line.strip())]


@given(contents, st.integers(1, 5), st.integers(1, 6))
def test_no_line_over_the_limit_comes_through_and_each_is_reported_once(lines, size, limit):
    stream = b"\n".join(lines)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    expected = [None if len(line) > limit else line.strip() for line in lines]
    assert read(chunks, limit) == [line for line in expected if line is None or line]


def test_a_line_that_is_too_long_is_reported_before_it_ends():
    lines = Lines(10)
    assert list(lines.feed(b"x" * 11)) == [None]
    assert list(lines.feed(b"x" * 100)) == []
    assert list(lines.feed(b"x\nnext\n")) == [b"next"]


def test_a_long_line_costs_time_in_proportion_to_its_length():
    def once(pieces):
        started = time.process_time()
        read([b"x" * 256] * pieces + [b"\n"])  # small enough for memory itself to be no slower
        return time.process_time() - started

    def seconds(pieces):
        return min(once(pieces) for _ in range(3))

    assert seconds(16_000) < 60 * max(seconds(1_000), 0.000_5)
