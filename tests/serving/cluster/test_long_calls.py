"""Long calls whose replica is not the one that is asked: their outcomes are promised, so they outlive it."""

import re
from collections.abc import Callable

from tests.serving.cluster.conftest import BOB, Host, Replicas
from tests.serving.cluster.test_state import A_MINUTE, IMPATIENT, collected, long_call
from tests.telemetry.conftest import Serving

ENDED = r"\d+ \d+"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def as_task(host: Host, at: Serving, seconds: float) -> str:
    """Begin a long call as a host that takes tasks."""
    asked = {"name": "all__sleep", "arguments": {"seconds": seconds}}
    return host.stateless(at, "tools/call", "all__sleep", asked, TASKS)["result"]["taskId"]


def test_the_outcome_of_a_call_outlives_its_replica(replicas: Replicas, host: Callable[..., Host]) -> None:
    replicas.more = IMPATIENT
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    for at in (first, second):
        assert "gateway_wait" in alice.ask_tools(at)
    call, task = long_call(alice.now(first, "all__sleep", seconds=3)), as_task(alice, first, 3)
    outcome = collected(alice, first, call)
    assert re.fullmatch(ENDED, outcome)
    while alice.stateless(first, "tasks/get", "", {"taskId": task}, TASKS)["result"]["status"] == "working":
        replicas.settle()
    running = long_call(alice.now(first, "all__sleep", seconds=A_MINUTE))
    replicas.settle()
    first.process.kill()
    first.process.wait()
    for _ in range(2):
        assert alice.now(second, "gateway_wait", call=call) == outcome
    assert "had already ended" in alice.now(second, "gateway_cancel", call=call)
    state = alice.stateless(second, "tasks/get", "", {"taskId": task}, TASKS)["result"]
    assert state["status"] == "completed"
    assert re.fullmatch(ENDED, state["result"]["content"][0]["text"])
    assert "no call" in bob.now(second, "gateway_wait", call=call)
    assert "no task" in bob.stateless(second, "tasks/get", "", {"taskId": task}, TASKS)["error"]["message"]
    lost = alice.now(second, "gateway_wait", call=running)
    assert "the replica of the gateway that ran the call" in lost
    assert "is gone" in lost


def test_a_replica_that_is_told_to_stop_finishes_its_long_calls(replicas: Replicas, host: Callable[..., Host]) -> None:
    replicas.more = IMPATIENT
    first, second = replicas.start(), replicas.start()
    alice = host()
    for at in (first, second):
        assert "gateway_wait" in alice.ask_tools(at)
    call = long_call(alice.now(first, "all__sleep", seconds=6))
    first.process.terminate()
    assert first.process.wait(A_MINUTE) == 0
    assert re.fullmatch(ENDED, collected(alice, second, call))


def test_a_session_collects_what_another_replica_runs(replicas: Replicas, host: Callable[..., Host]) -> None:
    """Some hosts open a session for each call, and the load balancer sends that anywhere."""
    replicas.more = IMPATIENT
    first, second = replicas.start(), replicas.start()
    one, other = host(), host()
    one.open(first)
    other.open(second)
    assert one.ask(first, "tools/list")["result"]["tools"]
    assert other.ask(second, "tools/list")["result"]["tools"]
    call = long_call(one.call(first, "all__sleep", seconds=5))
    replicas.settle()
    assert "is still running" in other.call(second, "gateway_wait", call=call)
    assert "goes on" in other.call(second, "gateway_cancel", call=call)
    while "is still running" in (answer := other.call(second, "gateway_wait", call=call)):
        pass
    assert re.fullmatch(ENDED, answer)
    assert "no call" in other.call(second, "gateway_wait", call="c_made_up")


def test_a_redis_that_comes_back_empty_is_told_of_calls_and_tasks(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    replicas.more = IMPATIENT
    first, second = replicas.start(), replicas.start()
    alice = host()
    for at in (first, second):
        assert "gateway_wait" in alice.ask_tools(at)
    call = long_call(alice.now(first, "all__sleep", seconds=3))
    running = as_task(alice, first, A_MINUTE)
    outcome = collected(alice, first, call)
    replicas.settle()
    replicas.redis.stop()
    assert "try again in a moment" in alice.now(second, "gateway_wait", call=call).lower()
    replicas.redis.start()
    for one in (first, second):
        one.line_with("has forgotten this replica")
    replicas.settle()
    state = alice.stateless(second, "tasks/get", "", {"taskId": running}, TASKS)["result"]
    assert state["status"] == "working"
    first.process.kill()
    first.process.wait()
    assert alice.now(second, "gateway_wait", call=call) == outcome
