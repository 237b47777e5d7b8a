"""Whose turn it is at the media workers: the caller's with the fewest seats, then in turn; nobody holds all of them."""

from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from gateway.admission.fair_queue import FairQueue
from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.content.media.pool import WorkedTooLong
from gateway.content.media.share import current_share, media_share
from gateway.core.model.effects import ImageTarget
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio


class Line:
    """Callers who take a seat and keep it until they are told to leave."""

    def __init__(self, tasks: anyio.abc.TaskGroup, turns: FairQueue) -> None:
        self.tasks, self.turns = tasks, turns
        self.seated: list[str] = []
        self.leave: dict[str, anyio.Event] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}

    async def join(self, *names: str) -> None:
        for name in names:
            self.leave[name] = anyio.Event()
            self.tasks.start_soon(self._sit, name)
        await settle()

    async def go(self, name: str) -> None:
        self.leave[name].set()
        await settle()

    async def _sit(self, name: str) -> None:
        with anyio.CancelScope() as self.scopes[name]:
            async with self.turns.seat(name[0]):
                self.seated.append(name)
                await self.leave[name].wait()
                self.seated.remove(name)


async def settle() -> None:
    for _ in range(5):
        await checkpoint()


async def in_line(act: Callable, seats: int = 2) -> None:
    turns = FairQueue(seats)
    async with anyio.create_task_group() as tasks:
        await act(Line(tasks, turns), turns)
        tasks.cancel_scope.cancel()
    assert turns.waiting == 0


async def test_seats_go_round_among_those_who_wait():
    async def act(line, turns):
        await line.join("a1", "a2", "a3", "a4", "b1", "c1", "b2")
        assert line.seated == ["a1", "a2", "b1"]  # the spare one is b's
        await line.go("b1")
        assert line.seated == ["a1", "a2", "c1"]
        await line.go("a1")
        assert line.seated == ["a2", "c1", "b2"]
        await line.go("c1")
        assert line.seated == ["a2", "b2"]  # a has one already, so the spare one stays free
        await line.go("b2")
        assert line.seated == ["a2", "a3"]

    await in_line(act)


async def test_one_who_leaves_while_waiting_or_seated_takes_no_seat_away():
    async def act(line, turns):
        await line.join("a1", "a2", "a3", "b1", "b2")
        line.scopes["a3"].cancel()
        line.scopes["b1"].cancel()
        line.scopes["a1"].cancel()
        await settle()
        assert turns.waiting == 0
        assert set(line.seated) - {"a1", "b1"} == {"a2", "b2"}

    await in_line(act)


@given(st.lists(st.sampled_from("aaaabc"), min_size=1, max_size=30), st.integers(1, 3))
def test_everybody_is_seated_some_time_and_nobody_without_a_seat_waits_behind_one_who_has_some(callers, seats):
    async def run():
        turns, taken, done = FairQueue(seats), dict.fromkeys("abc", 0), []

        async def work(caller):
            async with turns.seat(caller):
                taken[caller] += 1
                assert sum(taken.values()) <= seats + 1
                assert taken[caller] <= seats
                await checkpoint()
                taken[caller] -= 1
                done.append(caller)

        async with anyio.create_task_group() as tasks:
            for caller in callers:
                tasks.start_soon(work, caller)
        assert sorted(done) == sorted(callers)
        assert turns.waiting == 0

    anyio.run(run)


# -- with workers ------------------------------------------------------------------------------------------------------


async def test_another_callers_picture_does_not_wait_for_slow_ones(endless):
    quick = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    slow_ended = anyio.Event()

    async def slow(workers):
        with pytest.raises(MediaError):
            await workers.fit_image(endless, "image/svg+xml", ImageTarget())
        slow_ended.set()

    async with MediaWorkers(MediaSettings(workers=2, timeout=30)) as workers:
        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                with media_share("evil"):
                    for _ in range(8):
                        tasks.start_soon(slow, workers)
                while len(workers.pids) < 2:  # noqa: ASYNC110 - a process that starts tells nobody
                    await anyio.sleep(0.01)
                with media_share("other"):
                    assert (await workers.fit_image(quick, "image/svg+xml", ImageTarget())).media_type == "image/png"
                assert not slow_ended.is_set()
                tasks.cancel_scope.cancel()


async def test_the_media_of_one_result_may_take_so_long_altogether(endless):
    async with MediaWorkers(MediaSettings(workers=1, timeout=1, result_timeout=1.5)) as workers:
        with anyio.fail_after(60), media_share("evil", is_result=True) as share:
            with pytest.raises(MediaError, match="longer than 1 s"):
                await workers.fit_image(endless, "image/svg+xml", ImageTarget())
            with pytest.raises(WorkedTooLong, match=r"longer than 1\.5 s altogether"):
                await workers.fit_image(endless, "image/svg+xml", ImageTarget())
            assert share.seconds >= 1.5
            with pytest.raises(WorkedTooLong):
                await workers.fit_image(b"<svg/>", "image/svg+xml", ImageTarget())
        with anyio.fail_after(60), media_share("evil", is_result=True):
            assert await workers.fit_image(b"<svg/>", "image/svg+xml", ImageTarget())


async def test_a_share_reaches_the_tasks_that_work_for_it_and_an_inner_one_is_the_outer():
    seen = []
    with media_share("a", is_result=True) as outer:
        async with anyio.create_task_group() as tasks:

            async def look():
                with media_share("b") as inner:
                    seen.append(inner)

            tasks.start_soon(look)
    assert seen == [outer]
    assert current_share() is None
