"""Other settings for running upstreams: who comes, who goes, who is started anew, and what becomes of running calls."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, ToolsSettings, UpstreamSettings
from gateway.errors import UpstreamError
from gateway.upstream import Upstreams, UpstreamState

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=20, idle=20)


@asynccontextmanager
async def opened(settings: dict[str, UpstreamSettings], changes: Any) -> AsyncIterator[Upstreams]:
    with anyio.fail_after(60):
        async with Upstreams(settings, on_change=changes) as upstreams:
            assert await upstreams.settled(20)
            yield upstreams


async def pid_of(upstreams: Upstreams, name: str) -> int:
    assert await upstreams[name].ready(20), upstreams[name].cause
    pid = upstreams[name].pid
    assert pid is not None
    return pid


async def test_only_what_changed_is_touched(stdio: Any, changes: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway.upstream")
    before = {"same": stdio(), "going": stdio(), "changed": stdio()}
    async with opened(before, changes) as upstreams:
        pids = {name: await pid_of(upstreams, name) for name in before}
        going = upstreams["going"]
        before_apply, settled = going.tools(), len(changes.all)
        after = {"new": stdio(), "changed": stdio(env={"X": "1"}), "same": stdio()}
        upstreams.apply(after)
        assert list(upstreams) == ["new", "changed", "same"]
        assert upstreams["changed"].tools()  # the last known ones, while it is being started
        assert await pid_of(upstreams, "same") == pids["same"]
        assert await pid_of(upstreams, "changed") not in pids.values()
        assert await pid_of(upstreams, "new") not in pids.values()
        await changes.until(lambda: going.state is UpstreamState.STOPPED)
        gone = changes.tools[changes.all.index(("going", "tools"), settled)]
        assert {each.tool for each in gone} == {each["name"] for each in before_apply}
        assert "going" not in upstreams
        assert upstreams["same"].counts.restarts == 0
        assert upstreams["changed"].counts.restarts == 1
        assert "tools, started again: its settings have changed" in caplog.text


async def test_an_upstream_is_restarted_and_keeps_its_lists(stdio: Any, changes: Any) -> None:
    async with opened({"raw": stdio(), "other": stdio()}, changes) as upstreams:
        pid, other, before = await pid_of(upstreams, "raw"), upstreams["other"], upstreams["raw"]
        upstreams.restart("raw")
        upstreams.restart("nobody")
        assert upstreams["raw"] is not before
        assert upstreams["raw"].tools()
        assert list(upstreams) == ["raw", "other"]
        assert await pid_of(upstreams, "raw") != pid
        assert upstreams["raw"].counts.restarts == 1
        assert upstreams["other"] is other
        await changes.until(lambda: before.state is UpstreamState.STOPPED)


async def test_another_offer_or_other_limits_start_nothing_anew(stdio: Any, changes: Any) -> None:
    async with opened({"raw": stdio()}, changes) as upstreams:
        pid, before = await pid_of(upstreams, "raw"), len(changes.all)
        upstreams.apply({"raw": stdio(timeout=Timeouts(call=7))})
        assert changes.all[before:] == []
        upstreams.apply({"raw": stdio(tools=ToolsSettings(exclude=("odd",)))})
        assert changes.all[before:] == [("raw", "tools")]
        assert upstreams["raw"].settings.tools.exclude == ("odd",)
        assert await pid_of(upstreams, "raw") == pid


async def test_one_that_becomes_read_only_concerns_whoever_reaches_it(stdio: Any, changes: Any) -> None:
    """Its tools that change something are gone then, and those that they are gone for are to hear of it."""
    async with opened({"raw": stdio()}, changes) as upstreams:
        await pid_of(upstreams, "raw")
        upstreams.apply({"raw": stdio(read_only=True)})
        assert (changes.all[-1], changes.tools[-1]) == (("raw", "tools"), None)


async def test_one_that_is_switched_off_and_on_again(stdio: Any, changes: Any) -> None:
    async with opened({"raw": stdio()}, changes) as upstreams:
        first = upstreams["raw"]
        upstreams.apply({"raw": stdio(enabled=False)})
        assert (upstreams["raw"].state, upstreams["raw"].tools()) == (UpstreamState.DISABLED, ())
        assert changes.all[-1] != ("raw", "state")
        upstreams.apply({"raw": stdio()})
        await pid_of(upstreams, "raw")
        assert first.state is UpstreamState.STOPPED
        assert upstreams["raw"].tools()


async def test_a_running_call_ends_before_its_upstream_does(slow: Any, changes: Any) -> None:
    async with opened({"slow": slow}, changes) as upstreams:
        answered: list[Any] = []
        leaving = upstreams["slow"]

        async def call() -> None:
            answered.append(await leaving.request("tools/call", {"name": "wait"}, timeout=LIMITS))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(lambda: leaving.counts.running == 1)
            upstreams.apply({})
            assert list(upstreams) == []
        assert answered[0]["content"]
        await changes.until(lambda: leaving.state is UpstreamState.STOPPED)


async def test_a_call_that_takes_too_long_fails_with_the_cause_and_leaves_nobody_behind(
    slow: Any, changes: Any
) -> None:
    async with opened({"slow": slow}, changes) as upstreams:
        leaving = upstreams["slow"]
        told: list[str] = []

        async def call() -> None:
            with pytest.raises(UpstreamError) as caught:
                await leaving.request("tools/call", {"name": "never"}, timeout=LIMITS)
            told.append(caught.value.message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(lambda: leaving.counts.running == 1)
            upstreams.apply({"slow": slow.model_copy(update={"env": {"X": "1"}})}, drain=0.2)
        assert "was changed in the configuration, or taken out of it" in told[0]
        assert await upstreams["slow"].request("tools/call", {"name": "wait"}, timeout=LIMITS)


async def test_many_changes_in_a_row_end_with_the_last_one(stdio: Any, changes: Any) -> None:
    async with opened({"raw": stdio()}, changes) as upstreams:
        for number in range(5):
            upstreams.apply({"raw": stdio(env={"X": str(number)})})
        assert upstreams["raw"].settings.env == {"X": "4"}
        await pid_of(upstreams, "raw")


async def test_nothing_is_started_any_more_when_all_are_leaving(stdio: Any, changes: Any) -> None:
    async with opened({}, changes) as upstreams:
        pass
    upstreams.apply({"raw": stdio()})
    assert list(upstreams) == []


async def until(condition: Any) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


SLOW = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params") or {}
    if "id" not in request or params.get("name") == "never":
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "slow", "version": "1"}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "never")]}
    else:
        time.sleep(0.5)
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.fixture
def slow() -> UpstreamSettings:
    """An upstream that takes its time (`wait`), or all of it (`never`)."""
    return UpstreamSettings(command=sys.executable, args=("-c", SLOW))
