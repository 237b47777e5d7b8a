"""Calls that wait for a host which comes back with its answers: the upstream's part is played by plain functions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from gateway.core.model.caller import Caller
from gateway.errors import GatewayError, HostRefused, InvalidRequest, UpstreamRefused
from gateway.upstream.bridging.suspended_calls import SuspendedCall, SuspendedCalls
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

CALLER = Caller(revision="2026-07-28", client_name="host", capabilities={"elicitation": {}, "sampling": {}})
PATIENCE = 30.0

Work = Callable[[SuspendedCall], Awaitable[dict[str, Any]]]


class Leg:
    """One request of the host: what it is told, while it waits."""

    party = "host"
    connection = None
    bounds_waiting = False

    def __init__(self) -> None:
        self.told: list[str] = []
        self.progress: list[float] = []

    async def let_go(self) -> None:
        pass

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"a stateless host was asked {method}")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append(params["data"])

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)


class Lot:
    """A parking, and the host's side of it."""

    def __init__(self, tasks: TaskGroup, **options: Any) -> None:
        self.tasks = tasks
        self.suspended = SuspendedCalls(tasks, **options)

    async def begin(
        self, work: Work, leg: Leg | None = None, patience: float = PATIENCE, caller: Caller = CALLER
    ) -> Any:
        leg = leg or Leg()
        return await self.suspended.begin(work, RequestContext(caller, host=leg, on_progress=leg.on_progress), patience)

    async def resume(
        self, call: SuspendedCall | str, answers: Mapping[str, Any], leg: Leg | None = None, patience: float = PATIENCE
    ) -> Any:
        leg = leg or Leg()
        ident = call if isinstance(call, str) else call.id
        return await self.suspended.resume(
            ident, answers, RequestContext(CALLER, host=leg, on_progress=leg.on_progress), patience
        )


@asynccontextmanager
async def a_lot(**options: Any) -> AsyncIterator[Lot]:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            yield Lot(tasks, **options)
            tasks.cancel_scope.cancel()


class Upstream:
    """A call on an upstream that asks the questions of each round at once; `cancelled` when it was given up."""

    def __init__(self, *rounds: tuple[str, ...]) -> None:
        self.rounds = rounds
        self.answers: list[Any] = []
        self.cancelled = anyio.Event()

    async def __call__(self, call: SuspendedCall) -> dict[str, Any]:
        try:
            for questions in self.rounds:
                found: dict[str, Any] = {}

                async def ask(words: str, found: dict[str, Any] = found) -> None:
                    found[words] = await call.ask("elicitation/create", {"message": words, "elicitationId": "1"})

                async with anyio.create_task_group() as tasks:
                    for words in questions:
                        tasks.start_soon(ask, words)
                self.answers.append(found)
            return {"content": self.answers}
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise


def asked(result: dict[str, Any]) -> dict[str, str]:
    """The words of the questions in a result, by key."""
    assert result["resultType"] == "input_required"
    return {key: one["params"]["message"] for key, one in result["inputRequests"].items()}


async def test_a_call_that_needs_nothing_is_just_answered() -> None:
    async with a_lot() as lot:
        assert await lot.begin(Upstream()) == ({"content": []}, None)
        assert len(lot.suspended) == 0


async def test_a_question_is_asked_in_the_stateless_form_and_its_answer_goes_on_with_the_call() -> None:
    async with a_lot() as lot:
        result, call = await lot.begin(Upstream(("who?",)))
        ((key, question),) = result["inputRequests"].items()
        assert question == {"method": "elicitation/create", "params": {"message": "who?"}}
        assert len(lot.suspended) == 1
        answer = {"action": "accept", "content": {"n": 1}, "later": None}
        assert await lot.resume(call, {key: answer}) == ({"content": [{"who?": answer}]}, None)
        assert len(lot.suspended) == 0


async def test_questions_one_after_the_other_have_keys_of_their_own() -> None:
    async with a_lot() as lot:
        result, call = await lot.begin(Upstream(("a",), ("b",), ("c",)))
        keys = []
        while call is not None:
            ((key, words),) = asked(result).items()
            keys.append(key)
            result, call = await lot.resume(call, {key: {"to": words}})
        assert len(set(keys)) == 3
        assert result == {"content": [{words: {"to": words}} for words in "abc"]}


async def test_two_questions_at_once_may_be_answered_one_by_one() -> None:
    async with a_lot() as lot:
        upstream = Upstream(("a", "b"))
        result, call = await lot.begin(upstream)
        if len(result["inputRequests"]) == 1:  # the second came when the host had its answer already
            result, call = await lot.resume(call, {})
        by_words = {words: key for key, words in asked(result).items()}
        assert by_words.keys() == {"a", "b"}
        result, call = await lot.resume(call, {by_words["b"]: {"n": 2}, "elicitation-99": {"n": 0}, "": 3})
        assert asked(result) == {by_words["a"]: "a"}
        assert upstream.answers == []
        result, call = await lot.resume(call, {by_words["a"]: {"n": 1}, by_words["b"]: {"n": 9}})
        assert (result, call) == ({"content": [{"a": {"n": 1}, "b": {"n": 2}}]}, None)


async def test_no_answers_bring_the_same_questions_again() -> None:
    async with a_lot() as lot:
        result, call = await lot.begin(Upstream(("a",)))
        again, call = await lot.resume(call, {})
        assert again == result
        assert call is not None


@pytest.mark.parametrize("answer", [None, "yes", 3, [], True])
async def test_an_answer_that_is_no_object_is_refused_to_the_upstream(answer: Any) -> None:
    heard: list[HostRefused] = []

    async def work(call: SuspendedCall) -> dict[str, Any]:
        try:
            return await call.ask("elicitation/create", {"message": "a"})
        except HostRefused as refusal:
            heard.append(refusal)
            return {"refused": True}

    async with a_lot() as lot:
        result, call = await lot.begin(work)
        assert await lot.resume(call, dict.fromkeys(result["inputRequests"], answer)) == ({"refused": True}, None)
        assert [one.code for one in heard] == [-32603]


@pytest.mark.parametrize(
    ("method", "params"),
    [("roots/list", {}), ("elicitation/create", {"mode": "url", "url": "https://x"}), ("tools/list", {})],
)
async def test_what_the_host_cannot_answer_is_refused_to_the_upstream_at_once(method: str, params: Any) -> None:
    async def work(call: SuspendedCall) -> dict[str, Any]:
        with pytest.raises(HostRefused) as caught:
            await call.ask(method, params)
        return {"code": caught.value.code}

    async with a_lot() as lot:
        assert await lot.begin(work) == ({"code": -32601}, None)


@pytest.mark.parametrize("ident", ["", "nobody"])
async def test_a_call_that_nobody_knows_is_not_resumed(ident: str) -> None:
    async with a_lot() as lot:
        with pytest.raises(InvalidRequest, match="no longer waiting"):
            await lot.resume(ident, {})


async def test_a_call_is_resumed_by_one_request_at_a_time() -> None:
    async with a_lot() as lot:
        _, call = await lot.begin(Upstream(("a",), ("b",)))
        result, again = await lot.resume(call, {"elicitation-1": {}})
        assert again is call
        result, over = await lot.resume(call, {key: {} for key in result["inputRequests"]})
        assert over is None
        with pytest.raises(InvalidRequest, match="no longer waiting"):
            await lot.resume(call, {})


async def test_a_host_that_does_not_come_back_in_time_has_its_call_cancelled() -> None:
    async with a_lot() as lot:
        upstream = Upstream(("a",))
        _, call = await lot.begin(upstream, patience=0.05)
        await upstream.cancelled.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(lot.suspended) == 0
        with pytest.raises(InvalidRequest, match="no longer waiting"):
            await lot.resume(call, {"elicitation-1": {}})


async def test_a_host_that_comes_back_while_its_call_is_being_cancelled_is_told_so() -> None:
    leaving, gone = anyio.Event(), anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        try:
            return await call.ask("elicitation/create", {"message": "a"})
        finally:
            leaving.set()
            with anyio.CancelScope(shield=True):  # as the word to the upstream takes its time
                await gone.wait()

    async with a_lot() as lot:
        _, call = await lot.begin(work, patience=0.05)
        await leaving.wait()
        try:
            with pytest.raises(InvalidRequest, match="no longer waiting"), anyio.fail_after(30):
                await lot.resume(call, {"elicitation-1": {}})
        finally:
            gone.set()


async def test_a_host_has_the_whole_time_again_for_each_question() -> None:
    async with a_lot() as lot:
        upstream = Upstream(("a",), ("b",))
        _, call = await lot.begin(upstream, patience=0.05)
        result, call = await lot.resume(call, {"elicitation-1": {}}, patience=PATIENCE)
        await anyio.sleep(0.1)  # longer than the first patience
        assert (await lot.resume(call, {key: {} for key in result["inputRequests"]}))[1] is None


async def test_the_time_for_answers_does_not_run_while_the_upstream_works() -> None:
    go_on = anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        await call.ask("elicitation/create", {"message": "a"})
        await go_on.wait()
        return {"done": True}

    async with a_lot() as lot:
        _, call = await lot.begin(work, patience=0.05)

        async def later() -> None:
            await anyio.sleep(0.15)  # longer than any patience
            go_on.set()

        lot.tasks.start_soon(later)
        assert await lot.resume(call, {"elicitation-1": {}}, patience=0.05) == ({"done": True}, None)


@pytest.mark.parametrize("leg", ["first", "second"])
async def test_a_host_that_gives_up_its_request_has_the_call_cancelled(leg: str) -> None:
    cancelled, working = anyio.Event(), anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        try:
            if leg == "second":
                await call.ask("elicitation/create", {"message": "a"})
            working.set()
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return {}

    async with a_lot() as lot:
        call = None if leg == "first" else (await lot.begin(work))[1]
        async with anyio.create_task_group() as request:
            if call is None:
                request.start_soon(lot.begin, work)
            else:
                request.start_soon(lot.resume, call, {"elicitation-1": {}})
            await working.wait()
            request.cancel_scope.cancel()
        await cancelled.wait()
        assert len(lot.suspended) == 0


async def test_only_so_many_may_wait_and_the_one_too_many_is_cancelled() -> None:
    async with a_lot(most=2) as lot:
        calls = [(await lot.begin(Upstream(("a",))))[1] for _ in range(2)]
        third = Upstream(("a",))
        with pytest.raises(InvalidRequest, match="2 calls are waiting"):
            await lot.begin(third)
        await third.cancelled.wait()
        assert (await lot.begin(Upstream()))[0] == {"content": []}
        assert (await lot.resume(calls[0], {"elicitation-1": {}}))[1] is None
        assert (await lot.begin(Upstream(("a",))))[1] is not None


async def test_one_host_may_have_so_many_and_the_others_do_not_notice() -> None:
    async with a_lot(most=5, most_of_one=3) as lot:
        for _ in range(3):
            await lot.begin(Upstream(("a",)))
        refused = Upstream(("a",))
        with pytest.raises(InvalidRequest, match="3 calls of this host are waiting"):
            await lot.begin(refused)
        await refused.cancelled.wait()
        assert (await lot.begin(Upstream(("a",)), caller=replace(CALLER, client_name="another")))[1] is not None
        assert (await lot.begin(Upstream(("a",)), caller=replace(CALLER, profile="cline")))[1] is not None


async def test_where_all_places_are_taken_whoever_has_most_gives_up_its_oldest() -> None:
    async with a_lot(most=4, most_of_one=3) as lot:
        works = [Upstream(("a",)) for _ in range(3)]
        calls = [(await lot.begin(work))[1] for work in works]
        other = (await lot.begin(Upstream(("a",)), caller=replace(CALLER, client_name="other")))[1]
        third = (await lot.begin(Upstream(("a",)), caller=replace(CALLER, client_name="third")))[1]
        await works[0].cancelled.wait()
        with pytest.raises(InvalidRequest, match="no longer waiting"):
            await lot.resume(calls[0], {"elicitation-1": {}})
        for call in (calls[1], calls[2], other, third):
            assert (await lot.resume(call, {"elicitation-1": {}}))[1] is None


async def test_where_nobody_has_more_than_another_nobody_gives_anything_up() -> None:
    async with a_lot(most=2) as lot:
        names = [replace(CALLER, client_name=name) for name in "abc"]
        calls = [(await lot.begin(Upstream(("a",)), caller=caller))[1] for caller in names[:2]]
        with pytest.raises(InvalidRequest, match="2 calls are waiting"):
            await lot.begin(Upstream(("a",)), caller=names[2])
        for call in calls:
            assert (await lot.resume(call, {"elicitation-1": {}}))[1] is None


async def test_many_names_of_one_principal_leave_places_for_another_principal() -> None:
    async with a_lot(most=4) as lot:
        greedy = [replace(CALLER, principal="greedy", client_name=f"name {number}") for number in range(5)]
        works = [Upstream(("a",)) for _ in greedy]
        calls = [(await lot.begin(work, caller=one))[1] for work, one in zip(works[:4], greedy, strict=False)]
        for number in range(2):  # until both have as many
            assert (await lot.begin(Upstream(("a",))))[1] is not None
            await works[number].cancelled.wait()
        for caller in (CALLER, greedy[4]):
            with pytest.raises(InvalidRequest, match="4 calls are waiting"):
                await lot.begin(Upstream(("a",)), caller=caller)
        for call in calls[2:]:
            assert (await lot.resume(call, {"elicitation-1": {}}))[1] is None


async def test_of_the_principal_that_has_most_the_host_that_has_most_gives_up_its_oldest() -> None:
    async with a_lot(most=5) as lot:
        other, busy = (replace(CALLER, principal="greedy", client_name=name) for name in ("other", "busy"))
        works = [Upstream(("a",)) for _ in range(5)]
        for work, caller in zip(works, (other, busy, busy, CALLER, busy), strict=True):
            await lot.begin(work, caller=caller)
        await lot.begin(Upstream(("a",)))  # two of five, now
        await works[1].cancelled.wait()
        assert [work.cancelled.is_set() for work in works] == [False, True, False, False, False]


async def test_within_a_principal_the_host_that_has_most_gives_way_whatever_others_have() -> None:
    async with a_lot(most=4) as lot:
        first, second = (replace(CALLER, principal="two", client_name=name) for name in ("first", "second"))
        works = [Upstream(("a",)) for _ in range(4)]
        for work, caller in zip(works, (CALLER, CALLER, first, first), strict=True):
            await lot.begin(work, caller=caller)
        assert (await lot.begin(Upstream(("a",)), caller=second))[1] is not None
        await works[2].cancelled.wait()
        assert [work.cancelled.is_set() for work in works] == [False, False, True, False]


async def test_the_upstream_hears_that_nobody_chose_anything_where_its_call_ends_before_the_answer() -> None:
    heard: list[Any] = []
    both = anyio.Event()

    async def ask(call: SuspendedCall, method: str) -> None:
        try:
            heard.append(await call.ask(method, {"message": "a"}))
        except HostRefused as refusal:
            heard.append(refusal.code)
        if len(heard) == 2:
            both.set()

    async with a_lot() as lot:

        async def work(call: SuspendedCall) -> dict[str, Any]:
            for method in ("elicitation/create", "sampling/createMessage"):
                lot.tasks.start_soon(ask, call, method)  # as requests of an upstream run beside its call
            await anyio.sleep_forever()
            return {}

        await lot.begin(work, patience=0.05)
        await both.wait()
    assert sorted(heard, key=str) == [-32603, {"action": "cancel"}]


async def test_what_waits_for_a_host_whose_connection_is_gone_is_given_up_at_once() -> None:
    async with a_lot() as lot:
        gone, there = Upstream(("a",)), Upstream(("a",))
        await lot.begin(gone, caller=replace(CALLER, session="stream 1"))
        call = (await lot.begin(there, caller=replace(CALLER, session="stream 2")))[1]
        lot.suspended.left("stream 1")
        await gone.cancelled.wait()
        assert len(lot.suspended) == 1
        assert (await lot.resume(call, {"elicitation-1": {}}))[1] is None


async def test_the_error_of_a_call_is_the_hosts_in_whichever_leg() -> None:
    refusal = UpstreamRefused("x", -32000, "no ☃", {"why": 1})

    async def work(call: SuspendedCall) -> dict[str, Any]:
        await call.ask("elicitation/create", {"message": "a"})
        raise refusal

    async def at_once(call: SuspendedCall) -> dict[str, Any]:
        raise refusal

    async with a_lot() as lot:
        with pytest.raises(UpstreamRefused) as caught:
            await lot.begin(at_once)
        assert caught.value is refusal
        _, call = await lot.begin(work)
        with pytest.raises(UpstreamRefused) as caught:
            await lot.resume(call, {"elicitation-1": {}})
        assert caught.value is refusal


async def test_a_mistake_of_ours_costs_one_call_and_not_those_of_others() -> None:
    async def work(call: SuspendedCall) -> dict[str, Any]:
        raise KeyError("oops")

    async with a_lot() as lot:
        _, other = await lot.begin(Upstream(("a",)))
        with pytest.raises(GatewayError, match="KeyError"):
            await lot.begin(work)
        assert (await lot.resume(other, {"elicitation-1": {}}))[1] is None


async def test_progress_and_logs_go_to_the_present_request_and_nowhere_in_between() -> None:
    said = anyio.Event()
    between = anyio.Event()

    async def say(call: SuspendedCall, number: int) -> None:
        await call.tell("notifications/message", {"data": f"log {number}"})
        await call.progress(number, None, None)

    async def work(call: SuspendedCall) -> dict[str, Any]:
        await say(call, 1)
        async with anyio.create_task_group() as tasks:

            async def in_between() -> None:
                await between.wait()
                await say(call, 2)
                said.set()

            tasks.start_soon(in_between)
            await call.ask("elicitation/create", {"message": "a"})
        await say(call, 3)
        return {}

    async with a_lot() as lot:
        first, second = Leg(), Leg()
        _, call = await lot.begin(work, first)
        between.set()
        await said.wait()
        assert await lot.resume(call, {"elicitation-1": {}}, second) == ({}, None)
        await call.tell("notifications/message", {"data": "too late"})
        assert (first.told, first.progress) == (["log 1"], [1])
        assert (second.told, second.progress) == (["log 3"], [3])


async def test_a_question_that_the_upstream_takes_back_is_asked_no_more() -> None:
    take_back = anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call.ask, "elicitation/create", {"message": "a"})
            await take_back.wait()
            tasks.cancel_scope.cancel()
        return await call.ask("elicitation/create", {"message": "b"})

    async with a_lot() as lot:
        result, call = await lot.begin(work)
        assert list(asked(result).values()) == ["a"]
        take_back.set()
        await anyio.wait_all_tasks_blocked()
        result, call = await lot.resume(call, {key: {"old": 1} for key in result["inputRequests"]})
        assert list(asked(result).values()) == ["b"]
        assert await lot.resume(call, {key: {"n": 1} for key in result["inputRequests"]}) == ({"n": 1}, None)


async def test_a_call_that_ends_without_its_host_has_its_result_when_the_host_is_back() -> None:
    give_up = anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call.ask, "elicitation/create", {"message": "a"})
            await give_up.wait()  # as an upstream does that has a limit of its own
            tasks.cancel_scope.cancel()
        return {"nobody": "answered"}

    async with a_lot() as lot:
        result, call = await lot.begin(work)
        give_up.set()
        await anyio.wait_all_tasks_blocked()
        assert await lot.resume(call, {key: {} for key in result["inputRequests"]}) == ({"nobody": "answered"}, None)
        assert len(lot.suspended) == 0


async def test_a_result_that_nobody_comes_back_for_is_not_kept() -> None:
    give_up = anyio.Event()

    async def work(call: SuspendedCall) -> dict[str, Any]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call.ask, "elicitation/create", {"message": "a"})
            await give_up.wait()
            tasks.cancel_scope.cancel()
        return {}

    async with a_lot() as lot:
        _, call = await lot.begin(work, patience=0.1)
        give_up.set()
        await anyio.sleep(0.2)  # longer than its patience
        assert call.is_over
        assert len(lot.suspended) == 0
