"""Limits on what each principal and each token may ask for."""

import math
from dataclasses import replace

import anyio
import pytest

from gateway.config.access_settings import AccessSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant, Quota
from gateway.errors import TooManyCalls
from gateway.routing import caller_limits
from gateway.routing.caller_limits import CallerLimits

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="codex", principal="alice", grant=Grant(upstreams=("doc*",)))
FIND = {"name": "docs__find", "arguments": {}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def counting(clock: Clock, **quota: int) -> CallerLimits:
    return CallerLimits(Quota(**quota), clock, clock)


def call(limits: CallerLimits, caller: Caller) -> None:
    limits.begin("tools/call", caller)


async def read(limits: CallerLimits, caller: Caller, size: int) -> None:
    counted = limits.begin("resources/read", caller)
    with counted:
        await counted.returned({"contents": [{"text": "x" * size}]})


def test_the_calls_of_tokens_with_one_principal_are_counted_apart(clock):
    limits = counting(clock)
    laptop = replace(ALICE, token="laptop", grant=Grant(calls_per_minute=1))
    call(limits, laptop)
    call(limits, replace(laptop, token="phone"))
    with pytest.raises(TooManyCalls):
        call(limits, laptop)


def test_a_token_and_a_person_of_one_name_are_counted_apart(clock):
    limits = counting(clock)
    person = replace(ALICE, grant=Grant(calls_per_minute=1))
    call(limits, person)
    call(limits, replace(person, principal="bob", token="alice"))
    with pytest.raises(TooManyCalls):
        call(limits, person)


def test_calls_are_counted_within_any_minute_for_each_principal(clock):
    limits = counting(clock)
    hasty, other = replace(ALICE, grant=Grant(calls_per_minute=2)), replace(ALICE, principal="bob")
    call(limits, hasty)
    clock.now = 40.0
    call(limits, hasty)
    clock.now = 59.0
    with pytest.raises(TooManyCalls) as caught:
        call(limits, hasty)
    assert str(caught.value) == "only 2 tool calls a minute are allowed (try again in 1 s)"
    call(limits, replace(other, grant=hasty.grant))
    clock.now = 60.0
    call(limits, hasty)
    with pytest.raises(TooManyCalls, match="try again in 40 s"):
        call(limits, hasty)
    with pytest.raises(TooManyCalls, match="try again in 60 s"):  # the limit was lowered
        call(limits, replace(ALICE, grant=Grant(calls_per_minute=1)))


def test_a_principals_limit_counts_the_calls_of_all_its_tokens(clock):
    limits = counting(clock, calls_per_minute=2)
    call(limits, replace(ALICE, token="laptop"))
    call(limits, replace(ALICE, token="phone"))
    call(limits, replace(ALICE, principal="bob"))
    with pytest.raises(TooManyCalls):
        call(limits, replace(ALICE, token="laptop"))
    # A limit of its own counts for the token alone, whatever the others of the principal have used.
    call(limits, replace(ALICE, token="robot", grant=Grant(quota=Quota(calls_per_minute=1))))


def test_calls_of_a_day_begin_anew_at_midnight(clock):
    limits = counting(clock, calls_per_day=1)
    clock.now = 86_400 - 7 * 3_600 - 1.0
    call(limits, ALICE)
    with pytest.raises(TooManyCalls) as caught:
        call(limits, ALICE)
    assert str(caught.value) == "only 1 tool call a day is allowed (try again in 8 h)"
    clock.now = 86_400.0
    call(limits, ALICE)


def test_a_refused_call_is_counted_nowhere(clock):
    limits = counting(clock, calls_per_minute=1, calls_per_day=2)
    call(limits, ALICE)
    for _ in range(5):
        with pytest.raises(TooManyCalls, match="a minute"):
            call(limits, ALICE)
    clock.now = 60.0
    call(limits, ALICE)


def test_calls_at_once(clock):
    limits = counting(clock, calls_at_once=1)
    first = limits.begin("tools/call", ALICE)
    with first:
        with pytest.raises(TooManyCalls, match="try again when one of those running has ended"):
            limits.begin("tools/call", ALICE)
        limits.begin("resources/read", ALICE)
    limits.begin("tools/call", ALICE)


async def test_bytes_of_a_day_are_those_of_all_results(clock):
    limits = counting(clock, bytes_per_day=1_000)
    await read(limits, ALICE, 600)
    await read(limits, ALICE, 600)  # the one that exceeds the limit is still given
    for method in ("tools/call", "resources/read", "prompts/get", "tasks/get"):
        with pytest.raises(TooManyCalls, match=r"only results of 1\.0 KB a day are allowed \(try again in 24 h\)"):
            limits.begin(method, ALICE)
    await read(limits, replace(ALICE, principal="bob"), 600)


async def test_a_result_of_many_values_is_counted_as_well(clock):
    limits = counting(clock, bytes_per_day=50_000)
    counted = limits.begin("tools/call", ALICE)
    await counted.returned({"structuredContent": ["abc"] * 30_000})
    with pytest.raises(TooManyCalls):
        limits.begin("tools/call", ALICE)


def test_only_so_many_principals_are_remembered(clock, monkeypatch):
    monkeypatch.setattr(caller_limits, "_REMEMBERED", 2)
    limits = counting(clock, calls_per_day=1)
    for name in ("a", "b", "c"):
        call(limits, replace(ALICE, principal=name))
    with pytest.raises(TooManyCalls):
        call(limits, replace(ALICE, principal="c"))
    call(limits, replace(ALICE, principal="a"))


def test_nothing_is_counted_without_limits(clock):
    nothing = counting(clock).begin("tools/call", ALICE)
    limits = counting(clock, calls_per_day=1)
    assert limits.begin("tools/list", ALICE) is limits.begin("completion/complete", ALICE) is nothing


async def test_the_router_counts_and_refuses(router, fake_upstream):
    docs = fake_upstream("docs", [{"name": "find", "inputSchema": {"type": "object"}}])
    served = router(docs, access=AccessSettings.model_validate({"limits": {"calls_at_once": 1}}))
    release, entered = anyio.Event(), anyio.Event()

    async def slowly() -> dict[str, list[object]]:
        entered.set()
        await release.wait()
        return {"content": []}

    docs.answer = lambda *_: slowly()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.respond, "tools/call", FIND, ALICE)
        with anyio.fail_after(math.inf):
            await entered.wait()
        with pytest.raises(TooManyCalls):
            await served.respond("tools/call", FIND, ALICE)
        release.set()
    await served.respond("tools/call", FIND, ALICE)
    assert len(docs.asked) == 2
