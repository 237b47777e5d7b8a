"""Which host an upstream means, when it asks or tells something in the middle of calls."""

import contextvars
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import HostRefused, UpstreamTimeout
from gateway.upstream.bridging.bridge import open_bridge
from gateway.upstream.connection.deadlines import Deadline
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.connection.request_context import RequestContext

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=30, idle=30)
ROOTS = "roots/list"
LOG = "notifications/message"
BRIDGE = Path(__file__).parents[2] / "servers" / "bridge_server.py"


class Host:
    """A host that answers with its own name, by default."""

    bounds_waiting = False

    def __init__(
        self, name: str, *, connection: "Host | None" = None, answer: Callable[[], Awaitable[Any]] | None = None
    ) -> None:
        self.party = name.split(" ")[0]
        self.name = name
        self.connection = connection
        self.told: list[Any] = []
        self._answer = answer

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"by": self.name} if self._answer is None else await self._answer()

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append(params.get("data"))

    async def let_go(self) -> None:
        """Nothing of it is held for a stream."""


@pytest.fixture
def host_requests() -> HostRequests:
    return HostRequests(5)


def calling(host_requests: HostRequests, host: Host | None, *, alone: bool = False, limits: Timeouts = LIMITS) -> Any:
    return host_requests.call(host, Deadline(limits), alone=alone)


async def whom(host_requests: HostRequests) -> str:
    return (await host_requests.answer(ROOTS, {}))["by"]


async def from_elsewhere(host_requests: HostRequests) -> str:
    """Whom a message means that comes on no stream of a call, as over stdio."""
    found: list[str] = []

    async def ask() -> None:
        found.append(await whom(host_requests))

    async with anyio.create_task_group() as tasks:
        contextvars.Context().run(tasks.start_soon, ask)
    return found[0]


async def test_a_message_on_the_stream_of_a_call_means_that_call(host_requests: HostRequests) -> None:
    ann, bob = Host("ann"), Host("bob")
    asked: dict[str, str] = {}
    both = anyio.Event()

    async def call(host: Host, *, last: bool) -> None:
        async with calling(host_requests, host):
            if last:
                both.set()
            await both.wait()
            asked[host.name] = await whom(host_requests)
            await host_requests.tell(LOG, {"data": host.name})

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(ann, last=False))
            tasks.start_soon(lambda: call(bob, last=True))
    assert asked == {"ann": "ann", "bob": "bob"}
    assert (ann.told, bob.told) == (["ann"], ["bob"])


async def test_a_message_on_no_stream_means_the_newest_call(host_requests: HostRequests) -> None:
    async with calling(host_requests, Host("ann 1")):
        async with calling(host_requests, Host("ann 2")):
            assert await from_elsewhere(host_requests) == "ann 2"
        assert await from_elsewhere(host_requests) == "ann 1"


async def test_a_call_of_another_session_is_not_meant(host_requests: HostRequests) -> None:
    async with calling(HostRequests(5), Host("elsewhere")):
        with pytest.raises(HostRefused, match="there is no host"):
            await host_requests.answer(ROOTS, {})
        async with calling(host_requests, Host("here")):
            assert await whom(host_requests) == "here"


async def test_after_its_calls_the_hosts_own_connection_is_there(host_requests: HostRequests) -> None:
    beyond = Host("ann beyond")
    async with calling(host_requests, Host("ann 1", connection=beyond)):
        assert await whom(host_requests) == "ann 1"
    assert await whom(host_requests) == "ann beyond"
    await host_requests.tell(LOG, {"data": "later"})
    assert beyond.told == ["later"]
    async with calling(host_requests, Host("eve")):  # has no connection
        pass
    assert await whom(host_requests) == "ann beyond"


async def test_without_any_host_there_is_nobody_to_ask_and_nothing_is_told(host_requests: HostRequests) -> None:
    async with calling(host_requests, None):
        await host_requests.tell(LOG, {})
        with pytest.raises(HostRefused) as caught:
            await host_requests.answer(ROOTS, {})
    assert caught.value.code == -32601
    async with calling(host_requests, Host("stateless")):
        pass
    with pytest.raises(HostRefused, match="there is no host"):
        await host_requests.answer(ROOTS, {})


@pytest.mark.parametrize("method", ["tools/call", "initialize", "", "sampling/other"])
async def test_what_no_host_is_ever_asked_is_refused(host_requests: HostRequests, method: str) -> None:
    async with calling(host_requests, Host("ann")):
        with pytest.raises(HostRefused, match="does not serve") as caught:
            await host_requests.answer(method, {})
    assert caught.value.code == -32601


async def test_the_hosts_error_is_the_upstreams(host_requests: HostRequests) -> None:
    async def refuse() -> Any:
        raise HostRefused(-1, "no ☃", {"why": 1})

    async with calling(host_requests, Host("ann", answer=refuse)):
        with pytest.raises(HostRefused) as caught:
            await host_requests.answer(ROOTS, {})
    assert (caught.value.code, caught.value.message, caught.value.data) == (-1, "no ☃", {"why": 1})


async def test_a_host_that_never_answers_is_waited_for_so_long_and_no_longer() -> None:
    host_requests = HostRequests(0.05)
    async with calling(host_requests, Host("ann", answer=anyio.sleep_forever)):
        with pytest.raises(HostRefused, match=r"did not answer within 0\.05 s") as caught, anyio.fail_after(30):
            await host_requests.answer(ROOTS, {})
    assert caught.value.code == -32603


async def test_the_time_that_a_host_takes_is_not_the_upstreams(host_requests: HostRequests) -> None:
    async def slowly() -> Any:
        await anyio.sleep(0.3)
        return {}

    deadline = Deadline(Timeouts(call=0.2, idle=0.1))
    with deadline.scope:
        async with host_requests.call(Host("ann", answer=slowly), deadline, alone=False):
            assert await host_requests.answer(ROOTS, {}) == {}
            await anyio.lowlevel.checkpoint()
    assert not deadline.scope.cancel_called
    with deadline.scope:
        await anyio.sleep(5)
    assert deadline.scope.cancelled_caught


async def test_time_in_which_hosts_are_asked_two_things_at_once_counts_once_and_as_a_whole() -> None:
    deadline = Deadline(Timeouts(call=100, idle=100))
    before = deadline.scope.deadline
    first, second = deadline.held(), deadline.held()
    with first:
        await anyio.sleep(0.1)
        second.__enter__()
    await anyio.sleep(0.05)
    assert deadline.scope.deadline == float("inf")
    second.__exit__(None, None, None)
    deadline.touch()
    assert deadline._end - before == pytest.approx(0.15, abs=0.04)  # pyright: ignore[reportPrivateUsage]


async def test_what_an_upstream_tells_is_a_sign_of_life(host_requests: HostRequests) -> None:
    deadline = Deadline(Timeouts(call=60, idle=10))
    async with host_requests.call(Host("ann"), deadline, alone=False):
        await host_requests.tell(LOG, {})
        assert deadline.scope.deadline == pytest.approx(anyio.current_time() + 10, abs=1)


# -- one party at a time


async def test_calls_of_one_party_run_together_and_those_of_another_wait_for_their_end(
    host_requests: HostRequests,
) -> None:
    order: list[str] = []
    ends = {name: anyio.Event() for name in ("ann 1", "ann 2", "bob 1", "bob 2")}

    async def call(name: str) -> None:
        async with calling(host_requests, Host(name), alone=True):
            order.append(name)
            assert await whom(host_requests) == name
            await ends[name].wait()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for name in ends:
                tasks.start_soon(call, name)
            await anyio.wait_all_tasks_blocked()
            assert order == ["ann 1", "ann 2"]
            ends["ann 1"].set()
            await anyio.wait_all_tasks_blocked()
            assert len(order) == 2
            ends["ann 2"].set()
            await anyio.wait_all_tasks_blocked()
            assert order[2:] == ["bob 1", "bob 2"]
            for end in ends.values():
                end.set()


async def test_who_does_not_get_the_floor_in_time_is_told_what_it_waited_for(host_requests: HostRequests) -> None:
    async with calling(host_requests, Host("ann"), alone=True):
        deadline = Deadline(Timeouts(call=0.05, idle=10))
        with deadline.scope:
            async with host_requests.call(Host("bob"), deadline, alone=True):
                raise AssertionError("bob must not run now")
        error = deadline.error("x", "tools/call")
        assert isinstance(error, UpstreamTimeout)
        assert "another host" in error.message
        assert "host-session" in (error.remedy or "")
    with anyio.fail_after(30):
        async with calling(host_requests, Host("bob"), alone=True):
            assert await whom(host_requests) == "bob"


async def test_a_call_that_fails_gives_the_floor_back(host_requests: HostRequests) -> None:
    with pytest.raises(KeyError):
        async with calling(host_requests, Host("ann"), alone=True):
            raise KeyError
    with anyio.fail_after(30):
        async with calling(host_requests, Host("bob"), alone=True):
            pass


async def test_calls_that_cannot_be_asked_anything_do_not_wait_for_each_other(host_requests: HostRequests) -> None:
    with anyio.fail_after(30):
        async with calling(host_requests, Host("ann")), calling(host_requests, Host("bob")):
            pass


async def test_the_wait_for_a_host_that_bounds_it_itself_has_no_second_limit() -> None:
    async def answer() -> dict[str, Any]:
        await anyio.sleep(0.01)
        return {"by": "ann"}

    host_requests, host = HostRequests(patience=0), Host("ann", answer=answer)
    async with calling(host_requests, host):
        with pytest.raises(HostRefused, match="did not answer within 0 s"):
            await host_requests.answer(ROOTS, {})
        host.bounds_waiting = True
        assert await host_requests.answer(ROOTS, {}) == {"by": "ann"}


class Suspended:
    """A call whose host has to come back with an answer; `error` is what ended it."""

    def __init__(self, host_requests: HostRequests, name: str) -> None:
        self.answered = anyio.Event()
        self.error: UpstreamTimeout | None = None
        self.is_done = False
        self._host_requests = host_requests
        self._host = Host(name, answer=self._answer)
        self._host.bounds_waiting = True

    async def run(self) -> None:
        deadline = Deadline(LIMITS)
        with deadline.scope:
            async with self._host_requests.call(self._host, deadline, alone=True):
                await self._host_requests.answer(ROOTS, {})
            self.is_done = True
            return
        self.error = deadline.error("x", "tools/call")

    async def _answer(self) -> dict[str, Any]:
        await self.answered.wait()
        return {}


async def test_a_call_that_waits_for_an_absent_host_ends_soon_where_another_host_waits_for_the_session(
    host_requests: HostRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.host_requests.PATIENCE_OF_OTHERS", 0.05)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            calls = Floored(tasks)
            calls.host_requests = host_requests
            first, second = (Suspended(host_requests, name) for name in ("ann", "eve"))
            tasks.start_soon(first.run)
            await anyio.wait_all_tasks_blocked()
            await anyio.sleep(0.1)  # as long as nobody waits, it may take its time
            assert first.error is None
            await calls.begin("bob 1")
            tasks.start_soon(second.run)
            await anyio.sleep(0.1)
            assert calls.had == ["bob 1"]
            assert "waited for its host, and other hosts" in str(first.error)
            await calls.begin("bob 2")
            await calls.end("bob 1")
            await anyio.sleep(0.1)
            assert "waited for its host, and other hosts" in str(second.error)  # they waited already when it was asked
            assert calls.had == ["bob 1", "bob 2"]
            await calls.end("bob 2")


async def test_a_call_whose_host_comes_back_in_time_goes_on_and_so_does_one_that_nobody_waits_for_any_more(
    host_requests: HostRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.host_requests.PATIENCE_OF_OTHERS", 0.1)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            calls = Floored(tasks)
            calls.host_requests = host_requests
            for is_given_up in (True, False):
                call = Suspended(host_requests, "ann")
                tasks.start_soon(call.run)
                await anyio.wait_all_tasks_blocked()
                await calls.begin("bob 1")
                if is_given_up:
                    calls.scopes["bob 1"].cancel()
                    await anyio.sleep(0.2)
                call.answered.set()
                await anyio.wait_all_tasks_blocked()
                assert (call.is_done, call.error) == (True, None)
            assert calls.had == ["bob 1"]
            await calls.end("bob 1")


# -- a real upstream


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_two_hosts_on_one_session_are_each_asked_what_their_own_call_needs(connect: Any, transport: str) -> None:
    base = Caller(revision="2025-11-25", capabilities={"elicitation": {}})

    class Person(Host):
        async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            return {"action": "accept", "content": {"name": f"{self.name} to {params['message']}"}}

    async def run(settings: UpstreamSettings) -> None:
        found: dict[str, str] = {}
        async with connect(settings) as upstream:

            async def call(name: str) -> None:
                result = await upstream.request(
                    "tools/call",
                    {"name": "elicit", "arguments": {"message": name}},
                    RequestContext(replace(base, client_name=name, session=name), host=Person(name)),
                    LIMITS,
                )
                found[name] = str(result)

            async with anyio.create_task_group() as tasks:
                for name in ("ann", "bob", "eve"):
                    tasks.start_soon(call, name)
        for name, result in found.items():
            assert f"{name} to {name}" in result
        assert len(found) == 3

    arguments = (str(BRIDGE), "--era", "handshake")
    if transport == "stdio":
        await run(UpstreamSettings(command=sys.executable, args=arguments, session="shared"))
        return
    async with await anyio.open_process([sys.executable, *arguments, "--transport", "http"], stderr=None) as process:
        assert process.stdout is not None
        port = (await process.stdout.receive()).decode().strip()
        path = "sse" if transport == "sse" else "mcp"
        url = f"http://127.0.0.1:{port}/{path}"
        try:
            await run(UpstreamSettings(url=url, transport="sse" if path == "sse" else "http", session="shared"))
        finally:
            process.kill()


async def test_a_modern_host_that_does_not_come_back_holds_a_shared_upstream_up_only_for_a_moment(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.host_requests.PATIENCE_OF_OTHERS", 0.2)
    call = {"name": "elicit", "arguments": {"message": "who?"}}
    base = Caller(revision="2026-07-28", capabilities={"elicitation": {}})
    settings = UpstreamSettings(command=sys.executable, args=(str(BRIDGE), "--era", "handshake"), session="shared")
    async with connect(settings) as upstream, open_bridge() as bridge:

        async def ask(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
            context = RequestContext(replace(base, client_name=name), host=Host(name))
            return await bridge.request(upstream, "tools/call", params, context, LIMITS)

        with anyio.fail_after(20):
            asked = {name: await ask(name, call) for name in ("ann", "bob")}

            async def answer(name: str) -> str:
                answers = {key: {"action": "accept", "content": {"name": name}} for key in asked[name]["inputRequests"]}
                state = asked[name]["requestState"]
                return str(await ask(name, call | {"requestState": state, "inputResponses": answers}))

            with pytest.raises(UpstreamTimeout, match="waited for its host, and other hosts for the session"):
                await answer("ann")
            assert "bob" in await answer("bob")


class Floored:
    """Calls of parties that share a session; `had` are those that had the floor, in order."""

    def __init__(self, tasks: Any) -> None:
        self.host_requests = HostRequests(5)
        self.had: list[str] = []
        self.ends: dict[str, anyio.Event] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}
        self._tasks = tasks

    async def begin(self, *names: str) -> None:
        for name in names:
            self.ends[name], self.scopes[name] = anyio.Event(), anyio.CancelScope()
            self._tasks.start_soon(self._call, name)
            await anyio.wait_all_tasks_blocked()

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await anyio.wait_all_tasks_blocked()

    async def _call(self, name: str) -> None:
        with self.scopes[name]:
            async with calling(self.host_requests, Host(name), alone=True):
                self.had.append(name)
                await self.ends[name].wait()


async def test_a_host_that_always_has_a_call_running_does_not_keep_the_floor() -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            calls = Floored(tasks)
            await calls.begin("ann 1", "ann 2", "bob 1", "eve 1", "ann 3", "bob 2")
            assert calls.had == ["ann 1", "ann 2"]
            await calls.end("ann 1", "ann 2")
            assert calls.had[2:] == ["bob 1", "bob 2"]
            await calls.end("bob 1", "bob 2")
            assert calls.had[4:] == ["eve 1"]
            await calls.end("eve 1", "ann 3")
            assert calls.had[5:] == ["ann 3"]


async def test_a_host_that_is_asked_may_call_for_its_answer_though_another_waits() -> None:
    answered = anyio.Event()

    async def answer() -> Any:
        await answered.wait()
        return {}

    async def ask() -> None:
        async with calling(calls.host_requests, Host("ann 1", answer=answer), alone=True):
            await calls.host_requests.answer(ROOTS, {})

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            calls = Floored(tasks)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await calls.begin("bob 1", "ann 2")
            assert calls.had == ["ann 2"]
            await calls.end("ann 2")
            answered.set()
            await anyio.wait_all_tasks_blocked()
            assert calls.had == ["ann 2", "bob 1"]
            await calls.end("bob 1")


async def test_a_call_that_is_given_up_while_it_waits_lets_the_others_join() -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            calls = Floored(tasks)
            await calls.begin("ann 1", "bob 1", "ann 2")
            assert calls.had == ["ann 1"]
            calls.scopes["bob 1"].cancel()
            await anyio.wait_all_tasks_blocked()
            assert calls.had == ["ann 1", "ann 2"]
            await calls.end("ann 1", "ann 2")
