import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.transports.lines import LineReader, LongLine


def read(data: bytes, size: int, limit: int = 1_000) -> list[bytes | LongLine]:
    reader = LineReader(limit)
    lines = [line for start in range(0, len(data), size) for line in reader.feed(data[start : start + size])]
    return [*lines, reader.rest()]


@given(
    st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line and not line.endswith(b"\r"))),
    st.integers(1, 50),
)
def test_lines_are_the_same_however_the_bytes_are_cut(lines: list[bytes], size: int) -> None:
    assert read(b"".join(line + b"\n" for line in lines), size) == [*lines, b""]


def test_both_kinds_of_line_end_are_taken_off() -> None:
    assert read(b"unix\nwindows\r\nin\rside\n", 3) == [b"unix", b"windows", b"in\rside", b""]


def test_what_comes_after_the_last_line_end_is_the_rest() -> None:
    assert read(b"one\ntwo", 100) == [b"one", b"two"]


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_a_line_over_the_limit_is_named_by_its_ends_and_size_and_the_next_one_is_whole(size: int) -> None:
    data = b"ok\n" + b"<" + b"x" * 20_000 + b">\nnext\n"
    first, long, following, rest = read(data, size)
    assert isinstance(long, LongLine)
    assert (first, following, rest) == (b"ok", b"next", b"")
    assert (long.size, long.head[:2], long.tail[-2:]) == (20_002, b"<x", b"x>")
    assert len(long.head) <= 4_096
    assert len(long.tail) <= 4_096


def test_a_line_of_exactly_the_limit_is_whole() -> None:
    assert read(b"x" * 10 + b"\n" + b"x" * 11 + b"\n", 100, limit=10)[0] == b"x" * 10
    assert isinstance(read(b"x" * 11 + b"\n", 100, limit=10)[0], LongLine)


def test_the_time_for_a_line_grows_with_its_length_only() -> None:
    def cost(size: int) -> float:
        """Processor time, the least of three, so that a busy machine counts for nothing."""
        data = b"x" * size + b"\n"
        taken: list[float] = []
        for _ in range(3):
            started = time.process_time()
            line, _ = read(data, 65_536, limit=len(data))
            taken.append(time.process_time() - started)
            assert line == data[:-1]
        return min(taken)

    # Four times the length: four times the cost, where joining chunk by chunk takes sixteen times.
    assert cost(32_000_000) < 9 * cost(8_000_000) + 0.02
