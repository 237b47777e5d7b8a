"""What an upstream may use, and how it is kept, rested and brought back: on real processes and real servers."""

import os
import signal
import sys
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamLimits, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import Failure, FailureCode, UpstreamLost, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.upstream import Upstream, Upstreams, UpstreamState
from gateway.upstream.connection import bounds
from gateway.upstream.connection.bounds import HOUR, Restarts
from gateway.upstream.connection.request_context import RequestContext
from tests.servers.loopback import open_url

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)

SESSIONS = [("sessions",), ("sessions", "bad-request"), ("sessions", "sse-answers")]


async def call(upstream: Upstream, tool: str, timeout: Timeouts = LIMITS, **arguments: Any) -> dict[str, Any]:
    return await upstream.request("tools/call", {"name": tool, "arguments": arguments}, timeout=timeout)


async def pid_of(upstream: Upstream) -> int:
    return (await call(upstream, "pid"))["structuredContent"]["pid"]


async def get(url: str) -> bytes:
    def fetch() -> bytes:
        with open_url(url, 10) as answer:
            return answer.read()

    return await anyio.to_thread.run_sync(fetch)


# -- sessions that expire


@pytest.mark.parametrize("flags", SESSIONS)
async def test_an_expired_session_is_renewed_without_anybody_noticing(connect: Any, serve: Any, flags: Any) -> None:
    async with serve(*flags) as origin, connect(UpstreamSettings(url=f"{origin}/mcp")) as upstream:
        for _ in range(3):
            await get(f"{origin}/forget")
            assert (await call(upstream, "odd"))["x-unknown"]
        assert upstream.state is UpstreamState.READY
        assert await get(f"{origin}/calls") == b'{"odd": 3}'


async def test_calls_that_meet_an_expired_session_together_are_all_answered(connect: Any, serve: Any) -> None:
    async with serve("sessions") as origin, connect(UpstreamSettings(url=f"{origin}/mcp")) as upstream:
        await get(f"{origin}/forget")
        answers: list[Any] = []

        async def one() -> None:
            answers.append(await call(upstream, "odd"))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(one)
        assert len(answers) == 8
        assert await get(f"{origin}/calls") == b'{"odd": 8}'


async def test_a_call_that_was_running_when_the_session_expired_is_never_sent_twice(
    connect: Any, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.session._RETIRING", 0.2)
    async with serve("sessions") as origin, connect(UpstreamSettings(url=f"{origin}/mcp")) as upstream:

        async def run() -> None:
            with pytest.raises(UpstreamLost, match="session expired"):
                await call(upstream, "hang")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while b"hang" not in await get(f"{origin}/calls"):
                await anyio.lowlevel.checkpoint()
            await get(f"{origin}/forget")
            assert (await call(upstream, "odd"))["x-unknown"]
        assert await get(f"{origin}/calls") == b'{"hang": 1, "odd": 1}'


async def test_a_session_that_expires_again_at_once_is_not_renewed_for_ever(connect: Any, serve: Any) -> None:
    async with serve("sessions") as origin, connect(UpstreamSettings(url=f"{origin}/mcp")) as upstream:
        with pytest.raises(UpstreamLost, match="session"):
            await call(upstream, "forget")  # which this server forgets its sessions by, before it looks for this one's
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_a_legacy_endpoint_that_is_gone_is_asked_for_anew(connect: Any, serve: Any) -> None:
    async with serve() as origin, connect(UpstreamSettings(url=f"{origin}/sse", transport="sse")) as upstream:
        await get(f"{origin}/forget")
        assert (await call(upstream, "odd"))["x-unknown"]
        assert await get(f"{origin}/calls") == b'{"odd": 1}'


async def test_a_refusal_that_only_speaks_of_sessions_is_the_upstreams_own(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        with pytest.raises(UpstreamRefused):
            await call(upstream, "refuse")


# -- rest


async def test_an_idle_upstream_sleeps_with_its_tools_listed_and_wakes_for_a_call(
    connect: Any, stdio: Any, changes: Any
) -> None:
    async with connect(stdio(idle_stop=0.2)) as upstream:
        tools = upstream.tools()
        first = await pid_of(upstream)
        await changes.until(lambda: upstream.state is UpstreamState.SLEEPING)
        assert upstream.cause == "sleeps: it was not called for 0.2 s (the next call wakes it up)"
        assert upstream.tools() == tools
        assert await pid_of(upstream) != first
        assert upstream.state is UpstreamState.READY
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)


async def test_a_call_that_runs_longer_than_the_idle_time_keeps_it_awake(connect: Any, stdio: Any) -> None:
    async with connect(stdio(idle_stop=0.1)) as upstream:
        result = await call(upstream, "tick", count=5, delay=0.1)
        assert result["content"][0]["text"] == "done"


async def test_an_upstream_over_http_sleeps_too(connect: Any, serve: Any, changes: Any) -> None:
    async with (
        serve("sessions") as origin,
        connect(UpstreamSettings(url=f"{origin}/mcp", idle_stop=0.1)) as upstream,
    ):
        await changes.until(lambda: upstream.state is UpstreamState.SLEEPING)
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_by_default_nothing_sleeps() -> None:
    assert UpstreamSettings(command="x").idle_stop == 0


# -- calls at once


async def test_calls_over_the_limit_wait_for_their_turn_in_order(connect: Any, stdio: Any) -> None:
    async with connect(stdio(limits=UpstreamLimits(calls=1))) as upstream:
        done: list[int] = []
        begun = anyio.Event()

        async def first() -> None:
            async def heard(*_: object) -> None:
                begun.set()

            params = {"name": "tick", "arguments": {"count": 5, "delay": 0.05}}
            context = RequestContext(Caller(), on_progress=heard)
            await upstream.default.request("tools/call", params, context, LIMITS)
            done.append(0)

        async def later(number: int) -> None:
            await call(upstream, "odd")
            done.append(number)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await begun.wait()
            for number in (1, 2, 3):
                tasks.start_soon(later, number)
        assert done == [0, 1, 2, 3]


async def test_a_call_that_never_gets_its_turn_says_so(connect: Any, stdio: Any) -> None:
    async with connect(stdio(limits=UpstreamLimits(calls=2))) as upstream, anyio.create_task_group() as tasks:
        tasks.start_soon(call, upstream, "hang")
        tasks.start_soon(call, upstream, "hang")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(UpstreamTimeout) as caught:
            await call(upstream, "odd", Timeouts(call=0.2, idle=10))
        assert str(caught.value) == (
            "upstream 'raw': tools/call did not get its turn: 2 other calls were running (limits.calls), for 0.2 s "
            "(try again in a moment, or raise limits.calls if the server can take more)"
        )
        tasks.cancel_scope.cancel()


async def test_a_turn_is_given_back_however_a_call_ends(connect: Any, stdio: Any) -> None:
    async with connect(stdio(limits=UpstreamLimits(calls=1))) as upstream:
        with pytest.raises(UpstreamTimeout):
            await call(upstream, "hang", Timeouts(call=0.1, idle=10))
        with anyio.move_on_after(0.1):
            await call(upstream, "hang")
        with pytest.raises(UpstreamLost):
            await call(upstream, "die")
        assert (await call(upstream, "odd"))["x-unknown"]


# -- memory


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="memory is not measured on this system")
async def test_one_that_uses_too_much_memory_is_stopped_with_a_cause_and_started_by_the_next_call(
    connect: Any, stdio: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MEMORY_PERIOD", 0.05)
    async with connect(stdio(limits=UpstreamLimits(memory=200_000_000))) as upstream:
        before = await pid_of(upstream)
        with suppress(UpstreamLost):  # it may be noticed before the answer is read, or after
            await call(upstream, "swell", size=300_000_000)
        await changes.until(lambda: upstream.state is UpstreamState.FAILED)
        assert "more than its limit of 200 MB (limits.memory), and was stopped" in upstream.cause
        assert "the next call starts it again" in upstream.cause
        assert upstream.tools()
        assert await pid_of(upstream) != before


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="memory is not measured on this system")
async def test_a_call_that_is_cut_off_by_the_memory_limit_names_it(
    connect: Any, stdio: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MEMORY_PERIOD", 0.05)
    limits = UpstreamLimits(memory=200_000_000)
    async with connect(stdio(limits=limits)) as upstream, anyio.create_task_group() as tasks:

        async def hang() -> None:
            with pytest.raises(UpstreamLost, match=r"limits\.memory.*while tools/call was running"):
                await call(upstream, "hang")

        tasks.start_soon(hang)
        await anyio.wait_all_tasks_blocked()
        with suppress(UpstreamLost):
            await call(upstream, "swell", size=300_000_000)


# -- restarts


def test_so_many_restarts_fit_into_an_hour_and_room_comes_back_with_time() -> None:
    now = [0.0]
    restarts = Restarts(3, lambda: now[0])
    for _ in range(3):
        assert restarts.pause() == 0
        restarts.count()
        now[0] += 60
    assert restarts.pause() == HOUR - 180
    now[0] = HOUR + 1
    assert restarts.pause() == 0
    restarts.count()
    assert restarts.pause() == 59


def test_without_a_limit_it_is_restarted_for_ever() -> None:
    restarts = Restarts(0, lambda: 0.0)
    for _ in range(1_000):
        restarts.count()
    assert restarts.pause() == 0


def test_why_it_is_left_alone_is_said_beside_what_happened() -> None:
    explained = Restarts(5, lambda: 0.0).explained(
        Failure(UpstreamLost, FailureCode.EXITED, "exited with code 1", "set API_KEY")
    )
    assert (
        explained.message == "exited with code 1; it was started 5 times within an hour, and is not restarted any more"
    )
    assert explained.remedy is not None
    assert explained.remedy.startswith("set API_KEY; the next call starts it once more")


async def test_one_over_its_restarts_is_left_alone_until_it_is_called(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio(limits=UpstreamLimits(restarts=1))) as upstream:
        for _ in range(2):
            os.kill(await pid_of(upstream), signal.SIGKILL)
            await changes.until(lambda: upstream.state is UpstreamState.FAILED)
            if "not restarted" not in upstream.cause:
                await changes.until(lambda: upstream.state is UpstreamState.READY or "not restarted" in upstream.cause)
        await changes.until(lambda: "not restarted" in (upstream.cause or ""))
        assert upstream.state is UpstreamState.FAILED
        assert await pid_of(upstream)  # asked again, it is started once more


# -- the words that a model passes on


async def test_a_call_names_upstream_cause_and_remedy(stdio: Any, changes: Any) -> None:
    settings = {
        "dead": stdio("die-at-start"),
        "slow": stdio("silent", timeout=Timeouts(start=60)),
        "off": stdio(enabled=False),
    }
    with anyio.fail_after(30):
        async with Upstreams(settings, on_change=changes) as upstreams:
            await upstreams["dead"].ready(20)

            async def said(name: str, timeout: Timeouts = LIMITS) -> str:
                with pytest.raises((UpstreamUnavailable, UpstreamTimeout)) as caught:
                    await call(upstreams[name], "odd", timeout)
                return str(caught.value)

            assert await said("dead") == (
                "upstream 'dead': is not available: exited with code 1: KeyError: 'API_KEY' (the gateway keeps "
                "trying; see upstreams.dead in the configuration, or run mcp-gateway doctor)"
            )
            assert await said("slow", Timeouts(call=0.3, idle=1)) == (
                "upstream 'slow': tools/call waited for it to start, for 0.3 s "
                "(try again in a moment, or raise timeout.call)"
            )
            assert await said("off") == (
                "upstream 'off': is not available: disabled in the configuration (enabled = false) "
                "(set upstreams.off.enabled = true in the configuration)"
            )


async def test_one_that_wants_a_login_says_how_to_give_it(connect: Any, serve: Any) -> None:
    async with serve() as origin, connect(UpstreamSettings(url=f"{origin}/status/401"), ready=False) as upstream:
        with pytest.raises(UpstreamUnavailable) as caught:
            await call(upstream, "odd")
        assert str(caught.value) == (
            "upstream 'raw': is not available: answered HTTP 401: it requires authentication "
            '(set a token: headers = { Authorization = "Bearer ..." })'
        )


@pytest.mark.parametrize("transport", ["auto", "http", "sse"])
async def test_one_that_wants_oauth_says_so_and_names_the_command_that_logs_in(
    connect: Any, serve: Any, transport: Any
) -> None:
    async with serve() as origin:
        settings = UpstreamSettings(url=f"{origin}/login/oauth", transport=transport)
        async with connect(settings, ready=False) as upstream:
            with pytest.raises(UpstreamUnavailable) as caught:
                await call(upstream, "odd")
    assert str(caught.value) == (
        "upstream 'raw': is not available: answered HTTP 401: it wants a login (OAuth) (mcp-gateway login raw)"
    )


async def test_one_that_may_want_a_token_or_a_login_says_both(connect: Any, serve: Any) -> None:
    async with serve() as origin:
        async with connect(UpstreamSettings(url=f"{origin}/login/bearer"), ready=False) as upstream:
            with pytest.raises(UpstreamUnavailable) as caught:
                await call(upstream, "odd")
        said = str(caught.value)
        assert "HTTP 401: it wants a token, or a login (OAuth) (set a token: headers" in said
        assert "or mcp-gateway login raw" in said
        headers = {"Authorization": "Bearer hunter2hunter2"}
        async with connect(UpstreamSettings(url=f"{origin}/login/oauth", headers=headers), ready=False) as upstream:
            with pytest.raises(UpstreamUnavailable) as caught:
                await call(upstream, "odd")
        said = str(caught.value)
        assert "HTTP 401: it does not accept the credentials in headers (get a new token for headers; or, " in said
        assert "hunter2" not in said
