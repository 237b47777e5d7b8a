"""Who is admitted, who is refused, why, and when to try again."""

import logging
import time
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from gateway.admission.admission import Admission, Admitted
from gateway.admission.pressure import Pressure
from gateway.config.overload_settings import OverloadSettings
from gateway.errors import Overloaded
from gateway.system.memory_limit import MemoryUse

pytestmark = pytest.mark.anyio


class Memory:
    """Memory whose use a test sets, in percent."""

    def __init__(self) -> None:
        self.percent = 10
        self.pressure = Pressure(read=lambda: [MemoryUse(1, 100), MemoryUse(self.percent, 100)])

    def use(self, percent: int) -> None:
        self.percent = percent
        self.pressure.look()


def admission(**settings: object) -> Admission:
    return Admission(OverloadSettings.model_validate(settings), Pressure(read=list))


async def fill(gate: Admission, caller: str, count: int) -> list[Admitted]:
    places = [await gate.admit(caller) for _ in range(count)]
    for place in places:
        place.__enter__()
    return places


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await anyio.sleep(0.002)


async def test_a_place_is_given_back_when_it_was_left_as_often_as_entered() -> None:
    gate = admission(calls_at_once=1, queue=0)
    place = await gate.admit("alice")
    with place:
        with place:
            assert gate.running == 1
        assert gate.running == 1
        assert not place.is_over
    assert gate.running == 0
    assert place.is_over


async def test_without_a_place_or_room_in_the_queue_a_request_is_refused_with_the_time_to_try_again() -> None:
    gate = admission(calls_at_once=8, queue=0)
    await fill(gate, "alice", 8)
    assert gate.admit_now("alice") is None
    with pytest.raises(Overloaded, match="try again in 1 s") as refused:
        await gate.admit("alice")
    assert not refused.value.by_caller
    assert refused.value.retry_after == 1
    assert gate.admit_now("bob") is not None  # a spare place
    assert gate.refused["full"] == 1


async def test_whoever_fills_the_queue_is_told_that_it_is_its_own_doing() -> None:
    gate = admission(calls_at_once=1, queue=2, queue_time=5)
    held = [*await fill(gate, "bob", 1), *await fill(gate, "carol", 1)]
    told = list[Overloaded]()

    async def ask() -> None:
        try:
            with await gate.admit("alice"):
                pass
        except Overloaded as refused:
            told.append(refused)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
        await until(lambda: bool(told))
        for place in held:
            place.__exit__(None, None, None)
    assert [refused.by_caller for refused in told] == [True]
    assert gate.refused["share"] == 1


async def test_a_request_that_gets_no_turn_in_time_is_refused() -> None:
    gate = admission(calls_at_once=1, queue=9, queue_time=0.01)
    await fill(gate, "alice", 1)
    with pytest.raises(Overloaded, match="did not get its turn in time"):
        await gate.admit("alice")
    assert gate.refused["late"] == 1


async def test_the_time_to_try_again_follows_from_how_long_requests_take() -> None:
    gate = admission(calls_at_once=1, queue=0)
    for _ in range(200):
        gate.left((await gate.admit("alice"))._caller, 4.0)
    await fill(gate, "alice", 1)
    assert gate.retry_after == 4


async def test_big_work_is_refused_first_and_all_new_work_when_memory_is_nearly_used_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory, huge = Memory(), 50_000_000
    gate = Admission(OverloadSettings(), memory.pressure)
    caplog.set_level(logging.INFO)
    gate.check_size(huge)
    memory.use(81)
    with pytest.raises(Overloaded, match="takes no 50 MB"):
        gate.check_size(huge)
    with pytest.raises(Overloaded, match="unknown size"):
        gate.check_size(None)
    gate.check_size(1_000)
    with await gate.admit("alice"):
        pass
    memory.use(93)
    assert gate.admit_now("alice") is None
    with pytest.raises(Overloaded, match="short of memory"):
        await gate.admit("alice")
    memory.use(88)  # still: a level is left later than it is entered
    with pytest.raises(Overloaded):
        await gate.admit("alice")
    memory.use(76)
    with await gate.admit("alice"):
        assert memory.pressure.is_short()
    memory.use(74)
    assert not memory.pressure.is_short()
    gate.check_size(huge)
    assert gate.refused == {"full": 0, "share": 0, "late": 0, "memory": 2, "large": 2}
    levels = [record.levelname for record in caplog.records if record.name == "gateway.admission.pressure"]
    assert levels == ["WARNING", "WARNING", "WARNING", "INFO"]


async def test_a_late_event_loop_works_on_fewer_requests_at_once_and_then_on_more_again() -> None:
    gate = admission(calls_at_once=100, max_delay=0.5)
    await fill(gate, "alice", 80)
    gate.pressure.on_delay(0.4)
    assert gate.places == 100
    gate.pressure.on_delay(0.6)
    assert gate.places == 60
    for _ in range(20):
        gate.pressure.on_delay(3.0)
    assert gate.places == 16
    gate.pressure.on_delay(0.4)
    assert gate.places == 16
    for _ in range(20):
        gate.pressure.on_delay(0.0)
    assert gate.places == 100


async def test_the_delay_of_the_event_loop_is_measured() -> None:
    pressure = Pressure(read=list)
    seen = list[float]()
    pressure.on_delay, pressure.is_busy = seen.append, lambda: True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pressure.watch)
        await anyio.sleep(0.05)
        time.sleep(0.6)  # noqa: ASYNC251 - the loop is blocked, which is what is measured
        await until(lambda: bool(seen))
        tasks.cancel_scope.cancel()
    assert seen[0] > 0.2


_TURNS = 20
"""Turns of the event loop: more than it takes until everybody waits."""


class Rounds:
    """Time in rounds, in each of which everybody gets as far as possible, however fast the machine is."""

    def __init__(self) -> None:
        self.now = 0
        self._next = anyio.Event()

    async def wait(self, rounds: int) -> None:
        until = self.now + rounds
        while self.now < until:
            await self._next.wait()

    async def run(self, rounds: int) -> None:
        for _ in range(rounds):
            for _ in range(_TURNS):
                await anyio.lowlevel.checkpoint()
            self.now += 1
            ended, self._next = self._next, anyio.Event()
            ended.set()


@pytest.mark.parametrize("callers", [1, 4, 32])
async def test_whoever_is_admitted_while_four_times_too_much_is_asked_takes_twice_as_long_at_most(callers: int) -> None:
    places, takes, rounds = 8, 10, Rounds()
    gate = admission(calls_at_once=places, queue_time=600)
    took: list[int] = []
    refused = 0

    async def ask_again_and_again(number: int) -> None:
        nonlocal refused
        await rounds.wait(number % takes)
        while True:
            began = rounds.now
            try:
                place = await gate.admit(f"caller {number % callers}")
            except Overloaded:
                refused += 1
                await rounds.wait(1)
                continue
            with place:
                await rounds.wait(takes)
            took.append(rounds.now - began)

    async with anyio.create_task_group() as tasks:
        for number in range(4 * places):
            tasks.start_soon(ask_again_and_again, number)
        await rounds.run(40 * takes)
        tasks.cancel_scope.cancel()
    assert refused > len(took) > 30 * places
    assert max(took) <= 2 * takes


async def test_other_settings_count_from_then_on() -> None:
    gate = admission(calls_at_once=1, queue=0)
    await fill(gate, "alice", 1)
    gate.reconfigure(OverloadSettings(calls_at_once=2, queue=0))
    with await gate.admit("alice"):
        assert gate.running == 2
