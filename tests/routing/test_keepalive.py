"""Progress in the upstream's name keeps a host waiting: it rises, gives way to the real one, and ends with the call."""

import math
from itertools import pairwise

import anyio
import pytest

from gateway.routing.keepalive import keeping_alive

pytestmark = pytest.mark.anyio

SOON = 0.002
NEVER = 3_000.0


class Host:
    """What a host is told of a call; `until(n)` waits for the nth time."""

    def __init__(self):
        self.told = []
        self._news = anyio.Event()

    async def __call__(self, progress, total, message):
        self.told.append((progress, total, message))
        self._news.set()
        self._news = anyio.Event()

    async def until(self, number):
        with anyio.fail_after(30):
            while len(self.told) < number:
                await self._news.wait()

    @property
    def values(self):
        return [progress for progress, _, _ in self.told]


def rises(values):
    return all(one < other for one, other in pairwise(values))


async def test_a_silent_upstream_is_spoken_for_as_long_as_the_call_runs():
    host = Host()
    async with keeping_alive(host, SOON):
        await host.until(4)
    assert rises(host.values)
    assert host.values[0] == 0
    assert host.values[-1] < 0.001
    assert {(total, message) for _, total, message in host.told} == {(None, None)}


async def test_the_last_progress_is_told_again_with_its_total_and_message():
    host = Host()
    async with keeping_alive(host, SOON) as tell:
        await tell(3, 10, "third of ten")
        before = len(host.told)
        await host.until(before + 3)
    again = host.told[before - 1 :]
    assert again[0] == (3, 10, "third of ten")
    assert rises(host.values)
    assert {(total, message) for _, total, message in again} == {(10, "third of ten")}
    assert again[-1][0] < 3.001


async def test_what_the_upstream_tells_passes_as_it_is_where_it_rises():
    host, steps = Host(), [(0.25, 1.0, None), (0.5, 1.0, "half"), (1.0, 1.0, None)]
    async with keeping_alive(host, NEVER) as tell:
        for step in steps:
            await tell(*step)
    assert host.told == steps


async def test_what_the_upstream_tells_is_raised_where_more_was_told_before():
    host = Host()
    async with keeping_alive(host, SOON) as tell:
        await host.until(2)
        await tell(0, 5, "begun")
        await tell(1, 5, "one")
        await tell(1, 5, "still one")
        await tell(-3, 5, "back")
    assert rises(host.values)
    told = {message: progress for progress, _, message in host.told}
    assert 0 < told["begun"] < 0.01
    assert told["one"] == 1
    assert 1 < told["still one"] < told["back"] < 1.001


@pytest.mark.parametrize("large", [1e15, 1e17, 1.7e308, -1e17])
async def test_it_rises_whatever_the_upstream_counts_in(large):
    host = Host()
    async with keeping_alive(host, SOON) as tell:
        await tell(large, None, None)
        await host.until(4)
    assert rises(host.values)
    assert math.isfinite(host.values[-1])


async def test_an_upstream_that_cannot_rise_any_more_is_not_repeated():
    host = Host()
    most = math.nextafter(math.inf, 0)
    async with keeping_alive(host, NEVER) as tell:
        for value in (1.0, most, most, math.inf, math.nan):
            await tell(value, None, None)
    assert host.values == [1.0, most]


async def test_nothing_is_told_after_the_call():
    host = Host()
    async with keeping_alive(host, SOON) as tell:
        await host.until(1)
    told = len(host.told)
    await tell(7, None, "late")
    assert len(host.told) == told


async def test_a_host_that_takes_one_at_a_time_gets_them_in_order():
    order, busy, go = [], anyio.Event(), anyio.Event()

    async def slowly(progress, total, message):
        order.append(("begun", progress))
        busy.set()
        await go.wait()
        order.append(("taken", progress))

    async def say_five(tell):
        await tell(5, None, None)

    with anyio.fail_after(30):
        async with keeping_alive(slowly, SOON) as tell, anyio.create_task_group() as tasks:
            await busy.wait()
            tasks.start_soon(say_five, tell)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert order[:4] == [("begun", 0.0), ("taken", 0.0), ("begun", 5), ("taken", 5)]


async def test_a_host_that_cannot_be_told_does_not_cost_the_call():
    tried = anyio.Event()

    async def gone(progress, total, message):
        tried.set()
        raise ConnectionError("gone")

    with anyio.fail_after(30):
        async with keeping_alive(gone, SOON):
            await tried.wait()
            await anyio.wait_all_tasks_blocked()


async def test_the_calls_own_failure_leaves_as_it_is():
    failure = ValueError("of the call")
    with pytest.raises(ValueError, match="of the call") as caught:
        async with keeping_alive(Host(), SOON):
            raise failure
    assert caught.value is failure


async def test_a_call_that_is_cancelled_ends():
    host = Host()
    with anyio.fail_after(30), anyio.CancelScope() as scope:
        async with keeping_alive(host, SOON):
            await host.until(2)
            scope.cancel()
            await anyio.sleep_forever()
    told = len(host.told)
    await anyio.wait_all_tasks_blocked()
    assert (scope.cancelled_caught, len(host.told)) == (True, told)


@pytest.mark.parametrize(("on_progress", "every"), [(None, SOON), (Host(), None)])
async def test_who_did_not_ask_or_needs_none_is_left_alone(on_progress, every):
    async with keeping_alive(on_progress, every) as tell:
        assert tell is on_progress
