"""A host with a hard limit on calls gets an answer before it gives up, and the result of the call later."""

import re
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.bridges import hosts
from tests.bridges.conftest import Bridge

LIMIT = 1.5
"""Seconds that the host waits: it is answered after two thirds of them."""

PROFILE = f"""
[profiles.hurried]
extends = "passthrough"
sets = {{ "wait.call" = {LIMIT}, "wait.progress_resets" = false }}
"""
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}}
CALL = re.compile(r"\bc_[a-z0-9]{16}\b")

Connect = Callable[..., Any]


class Hurried:
    """A host that never answers rounds of input by itself."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Its result, however long that takes: a slow machine fails no test of what is said."""
        return self.host.begin(tool, **arguments).wait()

    def begin(self, tool: str, **arguments: Any) -> str:
        """Make a call that takes longer than the host waits; its id."""
        words = text(self.call(tool, **arguments))
        assert words.startswith(f"[{tool} is still running (")
        found = CALL.search(words)
        assert found is not None, words
        return found[0]

    def result(self, call: str, rounds: int = 10) -> dict[str, Any]:
        """Wait for a call as often as the answer says so, and answer what it asks."""
        for _ in range(rounds):
            result = self.host.call("gateway_wait", call=call)
            if "still running" not in text(result):
                return result
        raise AssertionError("it did not end")


def text(result: dict[str, Any]) -> str:
    return result["content"][0].get("text", "")


def said(result: dict[str, Any]) -> Any:
    return result["structuredContent"]["answers"]["form"]


@pytest.fixture(scope="module")
def long_bridge(tmp_path_factory: pytest.TempPathFactory) -> Generator[Bridge]:
    made = Bridge(tmp_path_factory.mktemp("long"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def where(long_bridge: Bridge) -> Callable[[str], str]:
    kept: dict[str, str] = {}

    def origin(upstream_kind: str) -> str:
        if upstream_kind not in kept:
            kept[upstream_kind] = served(long_bridge, long_bridge.upstream(upstream_kind))
        return kept[upstream_kind]

    return origin


def served(bridge: Bridge, upstream: dict[str, Any], more: str = "") -> str:
    config = bridge.config({"bridge": upstream})
    config.write_text(config.read_text("utf-8") + PROFILE + more, "utf-8")
    return bridge.gateway(config, profile="hurried")


@pytest.fixture
def connect(long_bridge: Bridge, where: Callable[[str], str]) -> Generator[Connect]:
    opened: list[Any] = []

    def connect(host_kind: str = "handshake-http", upstream_kind: str = "handshake-http", **options: Any) -> Hurried:
        opened.append(long_bridge.host(host_kind, where(upstream_kind), **options))
        return Hurried(opened[-1])

    yield connect
    for host in opened:
        long_bridge.close_host(host)


PAIRS = [
    ("handshake-http", "handshake-http"),
    ("handshake-sse", "modern-http"),
    ("modern-http", "handshake-stdio"),
    ("modern-http", "modern-http"),
]


@pytest.mark.parametrize(("host_kind", "upstream_kind"), PAIRS)
def test_a_call_that_takes_longer_than_the_host_waits_brings_its_result(connect, host_kind, upstream_kind):
    host = connect(host_kind, upstream_kind, name=f"long-{host_kind}-{upstream_kind}")
    tag = f"{host_kind}-{upstream_kind}"
    call = host.begin("slow", tag=tag, seconds=2.5)
    result = host.result(call)
    assert text(result) == "slept"
    assert host.call("gateway_wait", call=call) == result  # as often as it asks
    assert host.call("recorded", tag=tag)["structuredContent"]["events"] == ["started", "finished"]


def test_a_short_call_is_answered_at_once(connect):
    assert text(connect().call("slow", tag="short", seconds=0.1)) == "slept"


def test_the_result_is_what_the_call_itself_would_have_brought(connect):
    host = connect()
    call = host.begin("content_late", seconds=1.6)
    late, at_once = host.result(call), host.call("content")
    assert {key: late[key] for key in at_once} == at_once


def test_the_answer_says_how_far_the_call_is(connect):
    words = text(connect().call("slow", tag="far", seconds=1.8, at=0.4))
    assert re.search(r"still running \(1 s, last progress 40%, started\): call gateway_wait", words), words


def test_the_tools_are_offered_to_hosts_with_such_a_limit_alone(connect):
    def offered(**options: Any) -> set[str]:
        names = {tool["name"] for tool in connect(**options).host.everything("tools")}
        return names & {"gateway_wait", "gateway_cancel"}

    assert offered() == {"gateway_wait", "gateway_cancel"}
    assert offered(headers={"X-MCP-Profile": "passthrough"}) == set()
    assert offered(headers={"X-MCP-Profile": "claude-code"}) == set()
    assert offered(host_kind="modern-http", capabilities=TASKS) == set()


def test_a_cancelled_call_ends_on_the_upstream(connect):
    host = connect()
    call = host.begin("slow", tag="cancelled")
    assert "was cancelled" in text(host.call("gateway_cancel", call=call))
    assert "cancelled" in host.call("recorded", tag="cancelled", what="cancelled")["structuredContent"]["events"]
    for tool in ("gateway_wait", "gateway_cancel"):
        refused = host.call(tool, call=call)
        assert refused["isError"]
        assert "no call" in text(refused)


def test_a_call_that_has_ended_is_not_cancelled(connect):
    host = connect()
    call = host.begin("slow", tag="ended", seconds=1.6)
    host.result(call)
    assert "had already ended" in text(host.call("gateway_cancel", call=call))
    assert text(host.call("gateway_wait", call=call)) == "slept"


@pytest.mark.parametrize(
    "arguments", [{"call": "c_nobodys234567890"}, {"call": "☃" * 10_000}, {"call": ""}, {"call": 7}, {}]
)
@pytest.mark.parametrize("tool", ["gateway_wait", "gateway_cancel"])
def test_bad_arguments_are_answered_with_what_to_do(connect, tool, arguments):
    refused = connect().call(tool, **arguments)
    assert refused["isError"]
    assert len(text(refused)) < 300
    assert "again" in text(refused) or "Give `call`" in text(refused)


def test_a_call_belongs_to_its_client(connect):
    mine, others = connect(name="mine"), connect(name="others")
    call = mine.begin("slow", tag="mine", seconds=2.5)
    for tool in ("gateway_wait", "gateway_cancel"):
        assert "no call" in text(others.call(tool, call=call))
    assert text(mine.result(call)) == "slept"


def test_another_session_of_the_client_collects_the_result(connect, long_bridge):
    """As claude.ai and ChatGPT do: they open a session for each call."""
    first = connect(name="brief")
    call = first.begin("slow", tag="brief", seconds=1.6)
    long_bridge.close_host(first.host)
    assert text(connect(name="brief").result(call)) == "slept"


def test_two_waits_at_once_get_the_same_result(connect):
    host = connect()
    call = host.begin("slow", tag="two", seconds=1.4)
    waits = [host.host.begin("gateway_wait", call=call) for _ in range(2)]
    assert [text(wait.wait()) for wait in waits] == ["slept", "slept"]


def test_a_wait_that_the_host_cancels_leaves_the_call_alone(connect):
    host = connect(name="leaves")
    call = host.begin("slow", tag="leaves", seconds=2.5)
    wait = host.host.begin("gateway_wait", call=call)
    wait.cancel()
    assert text(host.result(call)) == "slept"


def test_a_call_that_the_host_cancels_in_time_ends_on_the_upstream(connect):
    host = connect(name="gives-up")
    started = host.host.begin("slow", tag="gives-up")
    host.call("recorded", tag="gives-up", what="started")
    started.cancel()
    assert "cancelled" in host.call("recorded", tag="gives-up", what="cancelled")["structuredContent"]["events"]


def test_an_upstreams_own_error_comes_with_the_wait(connect):
    host = connect()
    call = host.begin("fail_late", seconds=1.6)
    for _ in range(2):
        with pytest.raises(hosts.Refused, match="it failed late"):
            host.result(call)


@pytest.mark.parametrize(("host_kind", "upstream_kind"), PAIRS)
def test_a_question_after_the_answer_is_asked_during_the_next_wait(connect, host_kind, upstream_kind):
    host = connect(host_kind, upstream_kind, name=f"asked-{host_kind}-{upstream_kind}")
    call = host.begin("elicit_late", seconds=1.6)
    threading.Event().wait(1.0)  # it asks meanwhile
    assert not host.host.asked
    result = host.result(call)
    assert said(result) == hosts.PERSON
    assert [method for method, _, _ in host.host.asked] == ["elicitation/create"]
    assert host.call("gateway_wait", call=call)["content"] == result["content"]


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "modern-http"])
def test_a_host_that_takes_tasks_gets_one(connect, upstream_kind):
    host = connect("modern-http", upstream_kind, name="tasks", capabilities=TASKS)
    task = host.call("slow", tag="task", seconds=1.8)
    assert (task["resultType"], task["status"]) == ("task", "working")
    assert re.match(r"still running \(1 s", task["statusMessage"])
    working = host.host.request("tasks/get", {"taskId": task["taskId"]})
    assert (working["status"], working["pollIntervalMs"]) == ("working", 2000)
    done = until(host, task, "completed")
    assert text(done["result"]) == "slept"
    with pytest.raises(hosts.Refused, match="no task"):
        connect("modern-http", upstream_kind, name="other", capabilities=TASKS).host.request(
            "tasks/get", {"taskId": task["taskId"]}
        )


@pytest.mark.parametrize("upstream_kind", ["handshake-stdio", "modern-http"])
def test_a_task_asks_its_host(connect, upstream_kind):
    host = connect("modern-http", upstream_kind, name="task-asks", capabilities=TASKS)
    task = host.call("elicit_late", seconds=1.6)
    asking = until(host, task, "input_required")
    (key,) = asking["inputRequests"]
    host.host.request("tasks/update", {"taskId": task["taskId"], "inputResponses": {key: hosts.PERSON}})
    assert said(until(host, task, "completed")["result"]) == hosts.PERSON


def test_a_task_is_cancelled_and_fails_as_the_call_would(connect):
    host = connect("modern-http", name="task-ends", capabilities=TASKS)
    task = host.call("slow", tag="task-ends")
    host.host.request("tasks/cancel", {"taskId": task["taskId"]})
    assert "cancelled" in host.call("recorded", tag="task-ends", what="cancelled")["structuredContent"]["events"]
    failed = until(host, host.call("fail_late", seconds=1.6), "failed")
    assert "it failed late" in failed["error"]["message"]


def until(host: Hurried, task: dict[str, Any], status: str) -> dict[str, Any]:
    ticking = threading.Event()
    for _ in range(200):
        state = host.host.request("tasks/get", {"taskId": task["taskId"]})
        if state["status"] == status:
            return state
        ticking.wait(0.05)
    raise AssertionError(state)


def test_a_reload_keeps_the_call_and_a_tool_can_be_left_out(fresh: Bridge):
    config = fresh.config({"bridge": fresh.upstream("handshake-http")})
    before = config.read_text("utf-8")
    config.write_text(before + PROFILE, "utf-8")
    host = Hurried(fresh.host("handshake-http", fresh.gateway(config, profile="hurried")))
    call = host.begin("slow", tag="reload", seconds=3.0)
    # In one go, so that the gateway cannot notice half of it.
    changed = config.with_suffix(".new")
    changed.write_text(before + 'tools = { never_early = ["sl*"], exclude = ["echo"] }\n' + PROFILE, "utf-8")
    changed.replace(config)
    host.host.hears("notifications/tools/list_changed")
    assert text(host.result(call)) == "slept"
    assert text(host.call("slow", tag="whole", seconds=1.8)) == "slept"


def test_the_answer_comes_before_the_host_gives_up(connect):
    words = text(connect().host.begin("slow", tag="in time", seconds=3.0).wait(LIMIT))
    assert "still running" in words
