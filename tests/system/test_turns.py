"""Whoever handles a flood of small things gives way to others, and to nobody for a few."""

import anyio
import anyio.lowlevel
import pytest

from gateway.system.turns import Turns, few_lines_each

pytestmark = pytest.mark.anyio


async def test_others_run_while_a_flood_is_handled() -> None:
    handled, seen = 0, []

    async def look() -> None:
        while handled < 200_000:
            seen.append(handled)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        turns = Turns()
        for _ in range(200_000):
            handled += 1
            await turns.give_way()
    assert len(seen) > 2
    assert max(seen) > 1_000


@pytest.mark.parametrize("line", [b"\n", b"\r", b"x\r\n"])
def test_only_a_chunk_of_many_lines_is_cut(line: bytes) -> None:
    few, many = line * 200, line * 50_000
    assert list(few_lines_each(few)) == [few]
    pieces = list(few_lines_each(many))
    assert b"".join(pieces) == many
    assert max(map(len, pieces)) <= 8_192


def test_a_large_line_is_left_whole() -> None:
    line = b"x" * 1_000_000 + b"\n"
    assert list(few_lines_each(line)) == [line]
