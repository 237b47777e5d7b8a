"""Whose call is sent next: bounds on what runs and on what an upstream has not read, shared fairly."""

import anyio
import pytest
from anyio.abc import TaskGroup

from gateway.config.upstream_settings import Timeouts
from gateway.errors import UpstreamUnavailable
from gateway.upstream.connection.bounds import AHEAD, CallQueue, CallQueueFull
from gateway.upstream.connection.deadlines import Deadline

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=30, idle=30)


class Calls:
    """Calls that take turns; `sent` are those that had one, in order."""

    def __init__(self, turns: CallQueue, tasks: TaskGroup) -> None:
        self.turns = turns
        self.tasks = tasks
        self.sent: list[str] = []
        self.refused: list[str] = []
        self.scopes: dict[str, anyio.CancelScope] = {}
        self.answers: dict[str, anyio.Event] = {}

    async def begin(self, *names: str) -> None:
        """Begin calls; a party is what its name begins with."""
        for name in names:
            self.scopes[name], self.answers[name] = anyio.CancelScope(), anyio.Event()
            self.tasks.start_soon(self._call, name)
            await anyio.wait_all_tasks_blocked()

    async def answer(self, *names: str) -> None:
        for name in names:
            self.answers[name].set()
            await anyio.wait_all_tasks_blocked()

    async def cancel(self, *names: str) -> None:
        for name in names:
            self.scopes[name].cancel()
            await anyio.wait_all_tasks_blocked()

    async def _call(self, name: str) -> None:
        with self.scopes[name]:
            try:
                async with self.turns.turn(Deadline(LIMITS), name.split()[0]):
                    self.sent.append(name)
                    await self.answers[name].wait()
            except CallQueueFull as full:
                self.refused.append(f"{name}: {full.words}")


async def test_so_many_run_at_once_and_of_those_that_wait_each_party_has_its_turn() -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            calls = Calls(CallQueue(1), tasks)
            await calls.begin("ann 1", "ann 2", "ann 3", "ann 4", "bob 1", "eve 1", "bob 2")
            assert calls.sent == ["ann 1"]
            await calls.answer("ann 1", "ann 2", "bob 1", "eve 1", "ann 3", "bob 2")
            assert calls.sent == ["ann 1", "ann 2", "bob 1", "eve 1", "ann 3", "bob 2", "ann 4"]
            tasks.cancel_scope.cancel()


async def test_only_so_many_wait_and_whoever_has_the_most_in_the_queue_makes_room() -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            calls = Calls(CallQueue(1, most_waiting=3), tasks)
            await calls.begin("ann 1", "ann 2", "ann 3", "ann 4", "bob 1", "ann 5")
            assert calls.refused == ["ann 4: 3 calls wait for it already", "ann 5: 3 calls wait for it already"]
            await calls.cancel("ann 2")
            await calls.begin("ann 6")
            await calls.answer("ann 1", "bob 1", "ann 3", "ann 6")
            assert sorted(calls.sent) == ["ann 1", "ann 3", "ann 6", "bob 1"]
            assert len(calls.refused) == 2
            await calls.begin("ann 7")
            assert calls.sent[-1] == "ann 7"
            tasks.cancel_scope.cancel()


async def test_a_call_that_is_cancelled_while_it_waits_is_never_sent_and_leaves_no_gap() -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            calls = Calls(CallQueue(1), tasks)
            await calls.begin("ann 1", "ann 2", "bob 1", "ann 3")
            await calls.cancel("ann 2", "bob 1")
            await calls.answer("ann 1")
            assert calls.sent == ["ann 1", "ann 3"]
            await calls.cancel("ann 3")
            await calls.begin("ann 4")
            assert calls.sent[-1] == "ann 4"  # a cancelled one frees its place
            tasks.cancel_scope.cancel()


async def test_what_the_upstream_has_not_read_is_bounded_however_much_is_cancelled() -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            calls = Calls(CallQueue(100, ahead=3), tasks)
            names = [f"ann {number}" for number in range(30)]
            await calls.begin(*names)
            assert calls.sent == names[:3]
            await calls.cancel(*names)
            await calls.begin("ann last")
            assert calls.sent == names[:3]
            tasks.cancel_scope.cancel()


async def test_an_answer_shows_that_what_was_sent_before_was_read() -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            calls = Calls(CallQueue(0, ahead=3), tasks)
            await calls.begin("ann 1", "ann 2", "ann 3", "ann 4", "ann 5")
            await calls.cancel("ann 1")
            await calls.answer("ann 2")
            assert calls.sent == ["ann 1", "ann 2", "ann 3", "ann 4", "ann 5"]
            tasks.cancel_scope.cancel()


async def test_where_no_answer_comes_a_sign_of_life_is_asked_for_and_only_then() -> None:
    asked: list[int] = []
    alive = anyio.Event()

    async def ask() -> None:
        asked.append(len(calls.sent))
        await alive.wait()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            turns = CallQueue(0, ahead=3)
            calls = Calls(turns, tasks)
            tasks.start_soon(turns.keep, ask)
            await calls.begin("ann 1", "ann 2", "ann 3")
            assert asked == []
            await calls.begin("ann 4", "ann 5")
            assert (asked, len(calls.sent)) == ([3], 3)
            alive.set()
            await anyio.wait_all_tasks_blocked()
            assert len(calls.sent) == 5
            assert asked == [3]
            tasks.cancel_scope.cancel()


async def test_an_upstream_that_answers_the_question_with_an_error_has_read_too() -> None:
    async def ask() -> None:
        raise UpstreamUnavailable("x", "knows no ping")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            turns = CallQueue(0)
            calls = Calls(turns, tasks)
            tasks.start_soon(turns.keep, ask)
            await calls.begin(*(f"ann {number}" for number in range(AHEAD * 3)))
            assert len(calls.sent) == AHEAD * 3
            tasks.cancel_scope.cancel()


async def test_the_end_of_a_connection_lets_those_that_wait_go_on_to_the_next() -> None:
    connection = anyio.CancelScope()

    async def ask() -> None:
        connection.cancel()
        await anyio.sleep_forever()

    async def connected() -> None:
        with connection:
            await turns.keep(ask)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            turns = CallQueue(0, ahead=1)
            calls = Calls(turns, tasks)
            tasks.start_soon(connected)
            await calls.begin("ann 1", "ann 2")
            assert calls.sent == ["ann 1", "ann 2"]
            tasks.cancel_scope.cancel()
