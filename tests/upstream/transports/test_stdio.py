"""Upstreams as child processes: real ones, that misbehave in the ways real ones do."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import (
    FailureCode,
    UpstreamGarbage,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.upstream import Upstream, Upstreams, UpstreamState
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.transports import processes

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)
ODD_TYPES = ["text", "video", "image"]


async def call(upstream: Upstream, tool: str, timeout: Timeouts = LIMITS, **arguments: Any) -> dict[str, Any]:
    return await upstream.request("tools/call", {"name": tool, "arguments": arguments}, timeout=timeout)


async def structured(upstream: Upstream, tool: str, **arguments: Any) -> dict[str, Any]:
    return (await call(upstream, tool, **arguments))["structuredContent"]


class Pipe:
    """A named pipe that some process will hold open: `held` when it does, `released` when nobody does any more."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    async def held(self) -> None:
        await anyio.wait_readable(self._end)
        assert os.read(self._end, 1) == b"x"

    async def released(self) -> None:
        await anyio.wait_readable(self._end)
        assert os.read(self._end, 1) == b""
        os.close(self._end)


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path / "pipe")


async def test_lists_and_results_arrive_as_they_were_sent(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        assert upstream.server_info == {"name": "raw", "version": "1", "more": True}
        assert (upstream.era, upstream.revision) == ("handshake", "2025-11-25")
        assert upstream.instructions == "be kind"
        tool = upstream.tools()[0]
        assert tool["futureField"] == {"of": ["odd"]}
        assert tool["inputSchema"]["$defs"] == {"x": {"$anchor": "here"}}
        assert upstream.resources() == ({"uri": "raw://one", "name": "one", "size": 3, "later": 1},)
        assert upstream.templates() == ({"uriTemplate": "raw://{any}", "name": "any"},)
        result = await call(upstream, "odd")
        assert [block["type"] for block in result["content"]] == ODD_TYPES
        assert result["content"][0]["futureField"] == {"deep": [1, 2.5, None]}
        assert result["structuredContent"] == {"n": 12345678901234567890, "text": "naïve \u2028 ☃"}
        assert result["isError"] is None
        assert result["x-unknown"] == {"kept": True}


async def test_an_older_revision_is_accepted(connect: Any, stdio: Any) -> None:
    async with connect(stdio("old")) as upstream:
        assert upstream.revision == "2024-11-05"
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_a_revision_that_nobody_knows_is_named(connect: Any, stdio: Any) -> None:
    async with connect(stdio("unknown-version"), ready=False) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert "1999-01-01" in upstream.cause


async def test_eight_megabytes_in_one_line_arrive_whole(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        result = await call(upstream, "big", size=11_000_000)
        assert len(result["content"][0]["data"]) == 11_000_000


async def test_an_upstream_gets_its_own_environment_and_the_few_variables_it_needs(
    connect: Any, stdio: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATEWAY_SECRET", "of the gateway")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/company.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://me:of-mine@127.0.0.1:9")
    async with connect(stdio(env={"GIVEN": "yes"}, cwd=tmp_path)) as upstream:
        child = await structured(upstream, "env")
        assert child["env"]["GIVEN"] == "yes"
        assert child["env"]["PATH"] == os.environ["PATH"]
        assert child["env"]["NODE_EXTRA_CA_CERTS"] == "/etc/company.pem"
        assert child["env"]["HTTPS_PROXY"] == "http://127.0.0.1:9"
        assert "HTTP_PROXY" not in child["env"]
        assert "GATEWAY_SECRET" not in child["env"]
        assert child["cwd"] == os.path.realpath(tmp_path)


async def test_the_hosts_own_meta_goes_through(connect: Any, stdio: Any) -> None:
    meta = {"progressToken": "host", "traceparent": "00-1"}
    async with connect(stdio()) as upstream:
        params = {"name": "echo", "arguments": {"a": [1]}, "_meta": meta}
        result = await upstream.request("tools/call", params, timeout=LIMITS)
        seen = result["structuredContent"]["params"]
        assert seen["arguments"] == {"a": [1]}
        assert seen["_meta"].pop("progressToken") != "host"
        assert seen["_meta"] == {"traceparent": "00-1"}


async def test_an_error_of_the_upstreams_own_is_kept_exactly(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        with pytest.raises(UpstreamRefused) as caught:
            await call(upstream, "refuse")
        assert caught.value.wire() == {
            "code": -32042,
            "message": "go there first",
            "data": {"elicitations": [{"url": "https://example.org/x"}]},
        }


async def test_a_ping_is_answered_and_everything_else_that_it_asks_is_refused(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        answers = (await structured(upstream, "ask"))["answers"]
        assert answers["ping"]["result"] == {}
        assert answers["roots/list"]["error"]["code"] == -32601
        assert answers["elicitation/create"]["error"]["code"] == -32601


async def test_a_result_that_asks_for_input_comes_as_it_is_and_one_of_an_unknown_kind_not(
    connect: Any, stdio: Any
) -> None:
    async with connect(stdio()) as upstream:
        assert (await call(upstream, "interactive"))["resultType"] == "input_required"
        with pytest.raises(UpstreamGarbage, match="task"):
            await call(upstream, "strange_type")


async def test_other_things_on_stdout_are_tolerated(connect: Any, stdio: Any) -> None:
    async with connect(stdio("garbage", "noisy")) as upstream:
        assert (await call(upstream, "odd"))["x-unknown"]


async def test_other_things_on_stdout_are_a_part_of_the_cause(connect: Any, stdio: Any) -> None:
    async with connect(stdio("garbage", "silent", timeout=Timeouts(start=1)), ready=False) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert "was not ready within 1 s" in upstream.cause
        assert "Welcome to raw server!" in upstream.cause
        assert upstream.failure.code is FailureCode.NOT_MCP_ON_STDOUT
        assert upstream.cause.isprintable()


async def test_strange_ids_and_malformed_answers_cost_only_themselves(connect: Any, stdio: Any) -> None:
    async with connect(stdio("wrong-ids")) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        with pytest.raises(UpstreamGarbage):
            await call(upstream, "odd")
        assert (await structured(upstream, "pid"))["pid"] == pid


async def test_a_line_over_the_limit_fails_the_call_that_it_answers(connect: Any, stdio: Any) -> None:
    async with connect(stdio("long-line", max_message_bytes=1_000_000)) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        with pytest.raises(UpstreamGarbage, match=r"more than 1\.0 MB"):
            await call(upstream, "odd")
        assert (await structured(upstream, "pid"))["pid"] == pid


async def test_a_line_over_the_limit_that_names_no_call_ends_the_connection(connect: Any, stdio: Any) -> None:
    async with connect(stdio("long-line", "id-hidden", max_message_bytes=1_000_000)) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        with pytest.raises(UpstreamGarbage, match=r"more than 1\.0 MB"):
            await call(upstream, "odd")
        assert (await structured(upstream, "pid"))["pid"] != pid


async def test_one_that_dies_at_once_is_named_with_the_last_line_of_its_stderr(connect: Any, stdio: Any) -> None:
    async with connect(stdio("die-at-start"), ready=False) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert upstream.cause == "exited with code 1: KeyError: 'API_KEY'"
        assert upstream.failure.code is FailureCode.VARIABLE_MISSING
        last = "Traceback (most recent call last):\nFile 'x'\nKeyError: 'API_KEY'"
        assert upstream.failure.details == {"variable": "API_KEY", "stderr": last}
        with pytest.raises(UpstreamUnavailable, match="API_KEY"):
            await call(upstream, "odd")


async def test_secrets_and_escapes_in_its_stderr_are_not_repeated(connect: Any, stdio: Any) -> None:
    async with connect(stdio("die-telling", env={"API_TOKEN": "abc-123-secret"}), ready=False) as upstream:
        assert upstream.cause == "exited with code 7: refused with ***"


async def test_a_command_that_does_not_exist_is_named_with_a_remedy(connect: Any) -> None:
    async with connect(UpstreamSettings(command="no-such-mcp-server"), ready=False) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert "'no-such-mcp-server' was not found" in upstream.cause
        assert upstream.failure.code is FailureCode.COMMAND_NOT_FOUND
        assert "PATH" in upstream.cause


async def test_a_file_that_may_not_be_run_is_named(connect: Any, tmp_path: Path) -> None:
    plain = tmp_path / "server"
    plain.write_text("no program")
    async with connect(UpstreamSettings(command=str(plain)), ready=False) as upstream:
        assert "may not be run" in upstream.cause
        assert upstream.failure.code is FailureCode.NOT_EXECUTABLE
    plain.chmod(0o755)
    async with connect(UpstreamSettings(command=str(plain)), ready=False) as upstream:
        assert "is not a program that this system can run" in upstream.cause
        assert upstream.failure.code is FailureCode.NOT_A_PROGRAM


async def test_death_in_mid_call_is_noticed_and_the_next_call_finds_a_new_process(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        before = (await structured(upstream, "pid"))["pid"]
        tools = upstream.tools()
        with pytest.raises(UpstreamLost, match="exited with code 3: giving up: out of cheese"):
            await call(upstream, "die", code=3)
        assert upstream.tools() == tools
        assert (await structured(upstream, "pid"))["pid"] != before
        assert upstream.state is UpstreamState.READY


async def test_every_running_call_fails_when_the_process_is_killed(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        errors: list[UpstreamLost] = []
        running = [anyio.Event() for _ in range(3)]

        async def run(started: anyio.Event) -> None:
            async def heard(*_: object) -> None:
                started.set()

            params = {"name": "tick", "arguments": {"count": 1_000, "delay": 0.01}}
            context = RequestContext(Caller(), on_progress=heard)
            with pytest.raises(UpstreamLost) as caught:
                await upstream.default.request("tools/call", params, context, LIMITS)
            errors.append(caught.value)

        async with anyio.create_task_group() as tasks:
            for started in running:
                tasks.start_soon(run, started)
            for started in running:
                await started.wait()
            os.kill(pid, signal.SIGKILL)
        assert len(errors) == 3
        assert all("SIGKILL" in error.message for error in errors)


async def test_death_is_noticed_though_a_child_of_its_own_holds_its_output(connect: Any, stdio: Any) -> None:
    async with connect(stdio("die-with-child")) as upstream:
        with pytest.raises(UpstreamLost, match="exited with code 3"):
            await call(upstream, "die", code=3)
        assert await structured(upstream, "pid")


async def test_it_comes_back_by_itself(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio()) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        os.kill(pid, signal.SIGTERM)
        await changes.until(lambda: upstream.state is not UpstreamState.READY)
        assert "SIGTERM" in upstream.cause
        await changes.until(lambda: upstream.state is UpstreamState.READY)
        assert upstream.cause is None


async def test_a_call_is_bounded(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        pid = (await structured(upstream, "pid"))["pid"]
        with pytest.raises(UpstreamTimeout, match=r"tools/call took longer than 0\.3 s"):
            await call(upstream, "hang", Timeouts(call=0.3, idle=10))
        with pytest.raises(UpstreamTimeout, match=r"showed no progress for 0\.3 s"):
            await call(upstream, "hang", Timeouts(call=10, idle=0.3))
        assert (await structured(upstream, "pid"))["pid"] == pid  # and costs nothing else


async def test_progress_keeps_a_call_alive_and_is_passed_on(connect: Any, stdio: Any) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with connect(stdio()) as upstream:
        params = {"name": "tick", "arguments": {"count": 10, "delay": 0.15}}
        context = RequestContext(Caller(), on_progress=hear)
        result = await upstream.default.request("tools/call", params, context, Timeouts(call=20, idle=1))
        assert result["content"][0]["text"] == "done"
        assert heard[0] == (1.0, 10.0, "tick")
        assert [step for step, _, _ in heard] == sorted(step for step, _, _ in heard)
        with pytest.raises(UpstreamTimeout, match="took longer than"):
            await call(upstream, "tick", Timeouts(call=0.5, idle=1), count=1_000, delay=0.01)


async def test_a_call_that_is_given_up_is_cancelled_upstream(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        with anyio.move_on_after(0.3):
            await call(upstream, "hang")
        notifications = (await structured(upstream, "heard"))["notifications"]
        assert [one["method"] for one in notifications] == ["notifications/initialized", "notifications/cancelled"]


async def test_every_page_is_listed_and_what_is_no_tool_is_left_out(connect: Any, stdio: Any) -> None:
    async with connect(stdio("pages")) as upstream:
        assert [tool["name"] for tool in upstream.tools()] == ["page0", "page1", "page2", "page3"]


async def test_a_cursor_that_goes_in_circles_is_followed_once(connect: Any, stdio: Any) -> None:
    async with connect(stdio("loop")) as upstream:
        assert [tool["name"] for tool in upstream.tools()] == ["again", "again"]


async def test_failing_and_hanging_resources_do_not_cost_the_tools(connect: Any, stdio: Any) -> None:
    async with connect(stdio("resources-fail")) as upstream:
        assert upstream.tools()
        assert upstream.resources() == ()
        assert upstream.templates()
    async with connect(stdio("resources-hang", timeout=Timeouts(start=5))) as upstream:
        assert upstream.tools()


async def test_what_is_not_declared_is_not_asked_for(connect: Any, stdio: Any) -> None:
    async with connect(stdio("tools-only")) as upstream:
        assert upstream.tools()
        assert upstream.resources() == upstream.templates() == ()


async def test_a_changed_list_is_listed_again_and_announced(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio()) as upstream:
        before = len(upstream.tools())
        changes.all.clear()
        await call(upstream, "grow")
        await changes.until(lambda: ("raw", "tools") in changes.all)
        assert len(upstream.tools()) == before + 1


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    short = processes.Graces(close=0.3, terminate=0.3, kill=5)
    monkeypatch.setattr("gateway.upstream.transports.stdio.HURRIED", short)
    monkeypatch.setattr("gateway.upstream.transports.stdio.LEISURELY", short)


@pytest.mark.usefixtures("short_graces")
@pytest.mark.parametrize("flags", [(), ("stubborn",), ("deaf",)])
async def test_leaving_is_bounded_whatever_the_process_does(connect: Any, stdio: Any, flags: tuple[str, ...]) -> None:
    with anyio.fail_after(15):
        async with connect(stdio(*flags, timeout=Timeouts(start=1)), ready=False):
            pass


@asynccontextmanager
async def left(upstreams: Upstreams) -> AsyncIterator[Upstream]:
    async with upstreams:
        assert await upstreams["raw"].ready(20), upstreams["raw"].cause
        yield upstreams["raw"]


async def cancelled(upstreams: Upstreams, use: Callable[[Upstream], Awaitable[None]]) -> None:
    with anyio.CancelScope() as scope:
        async with left(upstreams) as upstream:
            await use(upstream)
            scope.cancel()
            await anyio.sleep_forever()


async def ended(upstreams: Upstreams, use: Callable[[Upstream], Awaitable[None]]) -> None:
    async with left(upstreams) as upstream:
        await use(upstream)


@pytest.mark.usefixtures("short_graces")
@pytest.mark.parametrize("leave", [ended, cancelled])
@pytest.mark.parametrize(("flags", "tool"), [((), "fork"), (("stubborn",), "hold"), (("stubborn",), "fork")])
async def test_no_process_is_left_behind(
    stdio: Any, pipe: Pipe, leave: Callable[..., Awaitable[None]], flags: tuple[str, ...], tool: str
) -> None:
    async def use(upstream: Upstream) -> None:
        await call(upstream, tool, pipe=pipe.path)
        await pipe.held()

    with anyio.fail_after(30):
        await leave(Upstreams({"raw": stdio(*flags)}, on_change=lambda *_: None), use)
        await pipe.released()


async def test_the_child_of_a_dead_process_is_not_left_behind_either(connect: Any, stdio: Any, pipe: Pipe) -> None:
    async with connect(stdio()) as upstream:
        await call(upstream, "fork", pipe=pipe.path)
        await pipe.held()
        with pytest.raises(UpstreamLost):
            await call(upstream, "die")
        await pipe.released()


async def test_a_server_on_the_official_sdk_is_spoken_to_in_either_era(connect: Any) -> None:
    script = Path(__file__).parents[2] / "servers" / "sdk_stdio.py"
    settings = UpstreamSettings(command=sys.executable, args=(str(script),))
    for era, revision in (("handshake", "2025-11-25"), ("modern", "2026-07-28")):
        async with connect(settings, era=era) as upstream:
            assert (upstream.era, upstream.revision) == (era, revision)
            result = await call(upstream, "add", a=2, b=3)
            assert result["content"] == [{"type": "text", "text": "5"}]
