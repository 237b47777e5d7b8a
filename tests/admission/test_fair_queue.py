"""A queue that is full refuses the newest request of whoever has the most in it."""

from collections import Counter

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from gateway.admission.fair_queue import FairQueue, NoSeat, WhyNot

pytestmark = pytest.mark.anyio


async def outcomes(queue: FairQueue, callers: str, *, release: bool = True) -> list[str]:
    """Let `callers` ask one after another while nobody leaves; return what became of each: `seat` or a reason."""
    found = [""] * len(callers)
    leaving = anyio.Event()

    async def ask(place: int, caller: str) -> None:
        try:
            async with queue.seat(caller):
                await leaving.wait()
                found[place] = "seat"
        except NoSeat as no:
            found[place] = no.why.value

    async with anyio.create_task_group() as tasks:
        for place, caller in enumerate(callers):
            tasks.start_soon(ask, place, caller)
            for _ in range(4):
                await checkpoint()
        leaving.set()
    assert (queue.running, queue.waiting) == (0, 0)
    return found


async def test_a_caller_alone_finds_the_queue_full() -> None:
    assert await outcomes(FairQueue(1, spare=0, most_waiting=2), "aaaa") == ["seat", "seat", "seat", "full"]


async def test_whoever_has_the_most_in_a_full_queue_makes_room_for_others() -> None:
    found = await outcomes(FairQueue(1, spare=0, most_waiting=3), "aaaabc")
    assert found == ["seat", "seat", "share", "share", "seat", "seat"]


async def test_among_equals_the_newcomer_is_refused() -> None:
    assert await outcomes(FairQueue(1, spare=0, most_waiting=2), "xabc") == ["seat", "seat", "seat", "full"]


async def test_with_no_queue_at_all_whoever_does_not_get_a_seat_is_refused() -> None:
    assert await outcomes(FairQueue(1, spare=1, most_waiting=0), "aab") == ["seat", "full", "seat"]


async def test_a_wait_ends_in_time() -> None:
    queue = FairQueue(1, spare=0)
    async with queue.seat("a"):
        with pytest.raises(NoSeat) as no:
            await queue.take("b", 0.01)
        assert no.value.why is WhyNot.LATE
        assert queue.waiting == 0
    assert queue.running == 0


async def test_fewer_seats_take_nothing_from_those_who_sit_and_more_are_granted_at_once() -> None:
    queue, seated = FairQueue(2, spare=0), Counter[str]()
    leaving = anyio.Event()

    async def sit(caller: str) -> None:
        async with queue.seat(caller):
            seated[caller] += 1
            await leaving.wait()

    async with anyio.create_task_group() as tasks:
        for caller in "aabb":
            tasks.start_soon(sit, caller)
            await checkpoint()
        queue.resize(1)
        assert seated == {"a": 2}
        assert queue.running == 2
        queue.resize(3)
        for _ in range(4):
            await checkpoint()
        assert seated == {"a": 2, "b": 1}
        leaving.set()
    assert seated == {"a": 2, "b": 2}


@given(st.text("aaabc", min_size=1, max_size=30), st.integers(1, 4), st.integers(0, 6))
def test_everybody_hears_and_never_do_more_wait_than_may(callers: str, seats: int, most: int) -> None:
    found = anyio.run(outcomes, FairQueue(seats, most_waiting=most), callers)
    assert found.count("seat") >= min(len(callers), seats + most)
    assert "" not in found
    assert "late" not in found
