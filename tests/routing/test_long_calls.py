"""Calls that outlive their requests: how many are kept, for how long, for whom, and what is recorded of them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.access_settings import AccessSettings
from gateway.config.long_call_settings import LongCallSettings
from gateway.config.policy_settings import PolicySettings, RuleSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import ToolsSettings, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.errors import TooManyCalls, UnknownLongCall, UpstreamTimeout
from gateway.routing import Router
from gateway.routing.long_calls import LongCalls, open_long_calls
from gateway.routing.long_calls.call_texts import duration_words, still_running
from gateway.routing.long_calls.long_call import LongCall
from gateway.telemetry.audit.trail import open_audit_trail
from gateway.telemetry.audit.verify import records_of
from gateway.upstream import RequestContext

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="limited", principal="alice", session="first")
BOB = replace(ALICE, principal="bob")
RENDER = {"name": "charts__render", "arguments": {}}
DONE = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
async def long_calls() -> AsyncGenerator[LongCalls]:
    async with open_long_calls() as opened:
        yield opened


class Slow:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.answer: Any = DONE

    def __call__(self, method: str, params: Mapping[str, Any]) -> Any:
        return self._later()

    async def _later(self) -> dict[str, Any]:
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def charts(fake_upstream: Any, slow: Slow) -> Any:
    schema = {"type": "object"}
    tools = [
        {"name": "render", "inputSchema": schema},
        {"name": "table", "inputSchema": schema, "outputSchema": {"type": "object"}},
    ]
    return fake_upstream("charts", tools, answer=slow)


def words(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


def named(result: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a wait for the call that this answer names."""
    return wait_for(words(result).split("call gateway_wait with call ")[1].split()[0])


def wait_for(call: str, tool: str = "gateway_wait") -> dict[str, Any]:
    return {"name": tool, "arguments": {"call": call}}


async def respond(router: Router, params: Mapping[str, Any], caller: Caller = ALICE) -> dict[str, Any]:
    with anyio.fail_after(30):
        return await router.respond("tools/call", params, caller)


async def test_a_call_is_answered_early_and_collected_twice(router, charts, slow, long_calls):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    assert "still running" in words(await respond(served, wait))
    slow.go.set()
    first = await respond(served, wait)
    assert words(first) == "done"
    assert first["shaped"] == ["limited", "alice"]
    assert await respond(served, wait) == first
    assert len(charts.asked) == 1


async def test_a_failed_call_fails_with_the_wait_again_and_again(router, charts, slow, long_calls):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    slow.answer = UpstreamTimeout("charts", "took longer than 300 s")
    slow.go.set()
    for _ in range(2):
        with pytest.raises(UpstreamTimeout, match="took longer"):
            await respond(served, wait)


async def test_a_host_that_checks_structured_content_gets_the_answer_as_an_error(router, charts, long_calls):
    served = router(charts, long_calls=long_calls)
    assert "isError" not in await respond(served, RENDER)
    assert (await respond(served, {**RENDER, "name": "charts__table"}))["isError"] is True


async def test_another_principal_has_no_such_call(router, charts, slow, long_calls):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    refused = await respond(served, wait, BOB)
    assert refused["isError"] is True
    assert "no call" in words(refused)
    slow.go.set()
    assert words(await respond(served, wait)) == "done"


@pytest.mark.parametrize(
    "access", [{"grant": Grant(upstreams=("other",))}, {"grant": Grant(upstreams=(), tools=("charts__table",))}]
)
async def test_what_a_caller_may_not_call_any_more_is_not_collected(router, charts, slow, long_calls, access):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    slow.go.set()
    assert "no call" in words(await respond(served, wait, replace(ALICE, **access)))
    assert "no call" in words(await respond(served, wait_for(wait["arguments"]["call"], "gateway_cancel"), BOB))
    assert words(await respond(served, wait)) == "done"


async def test_what_a_rule_forbids_meanwhile_is_not_collected(router, charts, slow, long_calls, shaper, profiles):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    slow.go.set()
    rule = RuleSettings(name="none", effect="deny", tools=("charts__render",))
    served.reconfigure(Settings(policy=PolicySettings(rules=(rule,))), profiles, shaper)
    assert "no call" in words(await respond(served, wait))


async def test_without_room_the_call_is_waited_for(router, charts, slow):
    async with open_long_calls(LongCallSettings(at_most_of_one=1)) as long_calls:
        served = router(charts, long_calls=long_calls)
        wait = named(await respond(served, RENDER))
        with anyio.move_on_after(0.5) as waiting:
            await respond(served, RENDER)
        assert waiting.cancelled_caught
        assert "still running" in words(await respond(served, RENDER, BOB))
        slow.go.set()
        assert words(await respond(served, wait)) == "done"
        slow.go = anyio.Event()
        assert "still running" in words(await respond(served, RENDER))  # the outcome makes way
        assert "no call" in words(await respond(served, wait))


async def test_one_principal_with_many_outcomes_makes_way_for_another():
    async with open_long_calls(LongCallSettings(at_most=3)) as long_calls:
        alices = [await ended(long_calls, ALICE) for _ in range(3)]
        await ended(long_calls, BOB)
        assert [is_known(long_calls, call, ALICE) for call in alices] == [False, True, True]


async def test_large_outcomes_make_way_for_newer_ones():
    async with open_long_calls(LongCallSettings(max_bytes=1_000)) as long_calls:
        calls = [await ended(long_calls, ALICE, size) for size in (600, 600, 5_000)]
        assert [is_known(long_calls, call, ALICE) for call in calls] == [False, False, True]


@pytest.mark.parametrize("is_over", [True, False])
async def test_what_nobody_asks_for_is_given_up(is_over):
    settings = LongCallSettings.model_construct(lasts=0.2, at_most=9, at_most_of_one=9, max_bytes=10_000)
    async with open_long_calls(settings) as long_calls:
        call = await (ended if is_over else begun)(long_calls, ALICE)
        assert is_known(long_calls, call, ALICE)
        with anyio.fail_after(30):
            await call.gone.wait()
        assert not is_known(long_calls, call, ALICE)
        assert call.is_over


async def test_a_wait_keeps_the_call_for_longer_than_it_lasts():
    settings = LongCallSettings.model_construct(lasts=0.1, at_most=9, at_most_of_one=9, max_bytes=10_000)
    async with open_long_calls(settings) as long_calls:
        call = await begun(long_calls, ALICE)
        assert not await long_calls.wait(call, RequestContext(ALICE), 0.4)
        assert is_known(long_calls, call, ALICE)


async def test_a_session_is_released_when_its_last_call_has_ended(router, charts, slow, long_calls):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    served.left("second")
    assert charts.sessions_left == ["second"]
    served.left("first")
    assert charts.sessions_left == ["second"]
    slow.go.set()
    assert words(await respond(served, wait, replace(ALICE, session="third"))) == "done"
    assert charts.sessions_left == ["second", "first"]


async def test_a_running_call_counts_for_the_limits_and_its_wait_does_not(router, charts, slow, long_calls):
    access = AccessSettings.model_validate({"limits": {"calls_at_once": 1}})
    served = router(charts, long_calls=long_calls, access=access)
    wait = named(await respond(served, RENDER))
    with pytest.raises(TooManyCalls):
        await respond(served, RENDER)
    slow.go.set()
    assert words(await respond(served, wait)) == "done"
    assert words(await respond(served, RENDER)) == "done"


async def test_the_audit_trail_has_the_answer_and_the_end(router, charts, slow, long_calls, tmp_path: Path):
    settings = Settings.model_validate({"audit": {"path": tmp_path / "audit.jsonl", "arguments": "full"}})
    async with open_audit_trail(settings, lambda _: None) as trail:
        served = router(charts, long_calls=long_calls, audit=trail)
        wait = named(await respond(served, RENDER))
        slow.go.set()
        await respond(served, wait)
    early, end, waited = [each for each in records_of(tmp_path / "audit.jsonl") if each["event"] != "start"]
    assert [each["tool"] for each in (early, end, waited)] == ["render", "render", "gateway_wait"]
    assert "returned" not in early
    assert end["returned"]
    assert end["shown"] == waited["shown"] != early["shown"]
    assert end["seconds"] >= early["seconds"]


async def test_a_tool_can_be_left_out(router, charts, slow, long_calls):
    charts.settings = UpstreamSettings(command="fake", tools=ToolsSettings(never_early=("ren*",)))
    served = router(charts, long_calls=long_calls)
    with anyio.move_on_after(0.5) as waiting:
        await respond(served, RENDER)
    assert waiting.cancelled_caught
    assert "still running" in words(await respond(served, {**RENDER, "name": "charts__table"}))


async def test_switched_off_nothing_is_answered_early_but_calls_are_still_collected(
    router, charts, slow, long_calls, shaper, profiles
):
    served = router(charts, long_calls=long_calls)
    wait = named(await respond(served, RENDER))
    assert {"gateway_wait", "gateway_cancel"} <= await offered(served)
    served.reconfigure(Settings(long_calls=LongCallSettings(enabled=False)), profiles, shaper)
    assert not {"gateway_wait", "gateway_cancel"} & await offered(served)
    slow.go.set()
    assert words(await respond(served, wait)) == "done"


async def test_a_tool_of_an_upstream_with_this_name_is_its_own(router, fake_upstream, long_calls):
    mine = fake_upstream("mine", [{"name": "gateway_wait", "inputSchema": {"type": "object"}}])
    served = router(mine, prefix="never", long_calls=long_calls)
    other = replace(ALICE, client_name="default")
    assert words(await respond(served, {"name": "gateway_wait", "arguments": {}}, other)) == "ok"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.2, "0 s"), (50, "50 s"), (60, "1 min"), (130.4, "2 min 10 s"), (3_930, "1 h 5 min")]
)
def test_times_in_words(seconds, expected):
    assert duration_words(seconds) == expected


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ((2.0, 5.0, None), "last progress 40%)"),
        ((7.0, 5.0, "ev\x1bil\nline"), "last progress 100%, ev il line)"),
        ((12.0, None, None), "last progress 12)"),
        ((1e-6, None, None), "(0 s)"),
        ((-3.0, 0.0, None), "(0 s)"),
    ],
)
async def test_progress_in_words(progress, expected):
    call = LongCall("charts__render", {}, RequestContext(ALICE))
    await call.progress(*progress)
    assert expected in still_running(call)


async def offered(router: Router) -> set[str]:
    return {tool["name"] for tool in (await router.respond("tools/list", {}, ALICE))["tools"]}


async def ended(long_calls: LongCalls, caller: Caller, size: int = 10) -> LongCall:
    """A call that was kept while it ran, and has ended since."""
    return await begun(long_calls, caller, size, lambda go: go.set())


async def begun(
    long_calls: LongCalls, caller: Caller, size: int = 10, then: Callable[[anyio.Event], None] | None = None
) -> LongCall:
    go = anyio.Event()

    async def work(params: Mapping[str, Any]) -> dict[str, Any]:
        await go.wait()
        return {"content": [{"type": "text", "text": "x" * size}]}

    context = RequestContext(caller)
    call = LongCall("charts__render", {}, context)
    long_calls.begin(call, work)
    assert long_calls.keep(call)
    if then is not None:
        then(go)
        with anyio.fail_after(30):
            assert await long_calls.wait(call, context, 30)
        await anyio.wait_all_tasks_blocked()
    return call


def is_known(long_calls: LongCalls, call: LongCall, caller: Caller) -> bool:
    try:
        return long_calls.find(call.id, caller) is call
    except UnknownLongCall:
        return False
