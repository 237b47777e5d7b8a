"""What is kept between requests without a session: each replica is asked in turn, and it is found."""

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.serving.cluster.conftest import ALICE, BOB, LOST_AFTER, SERVERS, Host, Replicas
from tests.telemetry.conftest import Serving

A_MINUTE = 60


def test_a_host_without_a_session_finds_its_state_from_every_replica(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    for at in (first, second, third):
        assert alice.ask_tools(at)
    counts = [alice.now(at, "own__count") for at in (first, second, third, first)]
    assert [count.split()[0] for count in counts] == ["1", "2", "3", "4"]
    assert bob.now(second, "own__count").startswith("1 "), "another principal has a state of its own"


def test_state_that_is_lost_with_its_replica_is_told_once(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice, session = host(), host()
    session.open(first)
    assert alice.ask_tools(second)
    assert alice.now(first, "own__count").startswith("1 ")
    assert session.call(first, "own__count").startswith("1 ")
    replicas.settle()
    first.process.kill()
    first.process.wait()
    for call in (alice.now, session.call):
        lost = call(second, "own__count")
        assert "its state is lost" in lost
        assert "call again" in lost
        assert call(second, "own__count").startswith("1 ")
    assert alice.now(second, "all__count").startswith("1 ")


def test_state_at_a_replica_that_stood_still_is_not_found_again(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    assert alice.ask_tools(second)
    assert [alice.now(first, "own__count").split()[0] for _ in range(2)] == ["1", "2"]
    first.process.send_signal(signal.SIGSTOP)
    second.line_with("has left")
    assert "its state is lost" in alice.now(second, "own__count")
    assert alice.now(second, "own__count").startswith("1 ")
    first.process.send_signal(signal.SIGCONT)
    assert alice.now(first, "own__count").startswith("2 "), "it asks where the state is now"
    second.process.kill()
    second.process.wait()
    assert "its state is lost" in alice.now(first, "own__count")
    assert alice.now(first, "own__count").startswith("1 "), "anew, and not as it was long ago"


def test_sessions_of_a_principal_with_one_state_are_at_one_replica(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    replicas.more = '[upstreams.one]\nurl = "http://127.0.0.1:9/mcp"\nsession = "principal"\n'
    first, second = replicas.start(), replicas.start()
    hosts = [host(), host(), host()]
    homes = {one.open(at).partition(".")[0] for one, at in zip(hosts, (first, second, first), strict=True)}
    assert len(homes) == 1


def test_a_call_that_waits_for_its_host_goes_on_wherever_the_host_asks(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    call: dict[str, Any] = {"name": "all__ask", "arguments": {}}
    able = {"elicitation": {"form": {}}}
    asked = alice.stateless(first, "tools/call", "all__ask", call, able)["result"]
    assert asked["resultType"] == "input_required"
    answers = {key: {"action": "accept", "content": {"answer": "yes"}} for key in asked["inputRequests"]}
    again = {**call, "requestState": asked["requestState"], "inputResponses": answers}
    done = alice.stateless(second, "tools/call", "all__ask", again, able)["result"]
    assert done["content"][0]["text"] == "yes"
    asked = alice.stateless(first, "tools/call", "all__ask", call, able)["result"]
    first.process.kill()
    first.process.wait()
    again = {**call, "requestState": asked["requestState"], "inputResponses": answers}
    refused = alice.stateless(second, "tools/call", "all__ask", again, able)
    assert "no longer waiting" in refused["error"]["message"]


def test_a_task_is_found_from_every_replica(replicas: Replicas, host: Callable[..., Host]) -> None:
    command = json.dumps([str(SERVERS / "bridge_server.py"), "--era", "modern"])
    replicas.more = f"[upstreams.slow]\ncommand = {json.dumps(sys.executable)}\nargs = {command}\n"
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    able = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert "slow__later" in alice.ask_tools(first)
    asked = {"name": "slow__later", "arguments": {}}
    task = alice.stateless(first, "tools/call", "slow__later", asked, able)["result"]["taskId"]
    replicas.settle()
    state = alice.stateless(second, "tasks/get", "", {"taskId": task}, able)
    assert state["result"]["status"] == "input_required"
    refused = bob.stateless(second, "tasks/get", "", {"taskId": task}, able)
    assert "no task" in refused["error"]["message"]


def test_limits_are_counted_by_all_replicas_together(replicas: Replicas, host: Callable[..., Host]) -> None:
    replicas.more = "[access.limits]\ncalls_per_minute = 3\n"
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    for at in (first, second):
        assert alice.ask_tools(at)
    for at in (first, second, first):
        assert "only" not in alice.now(at, "all__count")
    for at in (first, second):
        assert "only 3 tool calls a minute are allowed" in alice.now(at, "all__count")
    assert "only" not in bob.now(second, "all__count")
    replicas.redis.stop()
    assert "only" not in bob.now(second, "all__count"), "without Redis, each counts for itself"


def test_requests_a_minute_are_counted_by_all_replicas_together(replicas: Replicas, host: Callable[..., Host]) -> None:
    replicas.more = "[access.limits]\nrequests_per_minute = 20\n"
    first, second = replicas.start(), replicas.start()

    def asked(token: str, number: int) -> list[int]:
        known = {"Authorization": f"Bearer {token}"}
        return [(first, second)[place % 2].get("/metrics", **known)[0] for place in range(number)]

    assert asked(ALICE, 25) == [200] * 20 + [429] * 5
    assert asked(BOB, 2) == [200, 200]
    replicas.redis.stop()
    assert 200 in asked(BOB, 4), "without Redis, each counts for itself"


def test_wrong_tokens_are_slowed_down_by_all_replicas_together(replicas: Replicas) -> None:
    first, second = replicas.start(), replicas.start()
    known = {"Authorization": "Bearer a-wrong-token-0123456789"}
    for _ in range(6):
        assert first.get("/metrics", **known)[0] == 401
    began = time.monotonic()
    assert second.get("/metrics", **known)[0] == 401
    assert time.monotonic() - began >= 1, "the seventh is answered after 1 s, wherever it comes to"
    replicas.redis.stop()
    assert second.get("/metrics", **known)[0] == 401


def test_a_script_acts_on_the_states_that_it_names_or_says_that_they_are_at_several_replicas(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    server = (
        f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVERS / 'stateful_stdio.py'))}, 'also']"
    )
    changes = '[code_mode]\nenabled = true\nmay_change = ["own__*", "also__*"]\n'
    replicas.more = f"[upstreams.also]\n{server}\n{changes}"
    first, second = replicas.start(), replicas.start()
    alice = host()
    for at in (first, second):
        assert {"own__count", "also__count"} <= set(alice.ask_tools(at))
    assert alice.now(first, "own__count").startswith("1 ")
    assert alice.now(second, "also__count").startswith("1 ")
    for number, at in enumerate((first, second), start=2):
        for tool in ("own__count", "also__count"):
            assert alice.now(at, "gateway_run", code=f"print(await {tool}())").startswith(f"{number} "), tool
    both = alice.now(first, "gateway_run", code="print(await own__count(), await also__count())")
    assert "another replica of the gateway holds its state" in both
    assert "by themselves" in both
    assert alice.now(first, "own__count").split()[0] in ("4", "3")


def test_without_redis_what_needs_none_goes_on_and_afterwards_everything_does(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    assert alice.call(second, "own__count").startswith("1 ")
    replicas.redis.stop()
    first.line_with("the Redis of the cluster cannot be used")
    assert alice.call(first, "own__count").startswith("2 ")
    assert alice.call(second, "own__count").startswith("3 "), "the others are still known"
    assert host().now(second, "all__count")
    late = host()
    late.open(second)
    assert sum("cannot be used" in line for line in second.lines) <= 1, "it is said once"
    replicas.redis.start()
    for one in (first, second):
        one.line_with("the Redis of the cluster can be used again")
        one.line_with("has forgotten this replica")
    replicas.settle()
    first.process.kill()
    first.process.wait()
    assert alice.call(second, "all__count"), "the session was told to the empty Redis again"


def test_state_is_found_or_said_to_be_unknown_while_redis_is_away(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice = host()
    for at in (first, second, third):
        assert alice.ask_tools(at)
    assert alice.now(first, "own__count").startswith("1 ")
    assert alice.now(second, "own__count").startswith("2 ")
    time.sleep(LOST_AFTER)  # the third reads it
    replicas.redis.stop()
    third.line_with("the Redis of the cluster cannot be used")
    assert alice.now(second, "own__count").startswith("3 "), "it is remembered where it was"
    assert alice.now(third, "own__count").startswith("4 "), "also where nobody has asked for it"
    bob = host(BOB)
    assert bob.ask_tools(third)
    assert "cannot be asked at present" in bob.now(third, "own__count"), "nothing begins anew without a word"
    replicas.redis.start()
    for one in (first, second, third):
        one.line_with("has forgotten this replica")
    assert not any("has left" in line for line in second.lines), "nobody has left because Redis forgot"
    time.sleep(LOST_AFTER)
    for at in (third, second):
        assert alice.now(at, "own__count").split()[0] in ("5", "6"), "it was never lost"


def test_a_loss_is_told_also_if_redis_has_forgotten_meanwhile_who_had_it(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    """One killed, one drained, one added, Redis restarted: the survivors tell the empty Redis what they have seen."""
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice, bob, carol = host(), host(BOB), host()
    carol.client = "carol"
    for at in (first, second, third):
        assert alice.ask_tools(at)
    assert alice.now(first, "own__count").startswith("1 ")
    assert bob.now(second, "own__count").startswith("1 ")
    time.sleep(LOST_AFTER)  # the others read it
    first.process.kill()
    first.process.wait()
    second.process.terminate()
    second.process.wait()
    fourth = replicas.start()
    assert alice.ask_tools(fourth)
    fourth.line_with("is at")
    replicas.redis.stop()
    third.line_with("the Redis of the cluster cannot be used")
    replicas.redis.start()
    for at in (third, fourth):
        at.line_with("has forgotten this replica")
    time.sleep(LOST_AFTER)
    assert carol.now(fourth, "own__count").startswith("1 "), "who has lost nothing is told nothing"
    third.process.kill()
    third.process.wait()
    for one in (alice, bob):
        assert "its state is lost" in one.now(fourth, "own__count")
        assert one.now(fourth, "own__count").startswith("1 ")


def test_a_loss_that_is_not_told_is_told_by_the_next_replica(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    assert alice.call(first, "own__count").startswith("1 ")
    replicas.settle()
    first.process.kill()
    first.process.wait()
    assert alice.ask(second, "tools/list")["result"]["tools"], "it is taken over, and nothing is said of the state"
    replicas.settle()
    second.process.kill()
    second.process.wait()
    assert "its state is lost" in alice.call(third, "own__count")
    assert alice.call(third, "own__count").startswith("1 ")


def test_a_replica_that_comes_later_is_one_of_them(replicas: Replicas, host: Callable[..., Host]) -> None:
    first = replicas.start()
    alice, late = host(), host()
    alice.open(first)
    assert alice.call(first, "own__count").startswith("1 ")
    second = replicas.start()
    assert alice.call(second, "own__count").startswith("2 ")
    late.open(second)
    assert late.call(first, "own__count").startswith("1 ")


def test_a_call_that_waits_for_its_user_is_approved_wherever_that_is_said(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    rule = '[[policy.rules]]\nname = "ask-first"\neffect = "approve"\ntools = ["all__count"]\n'
    replicas.more = f'[policy]\napproval = "two-step"\n{rule}'
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice = host()
    for at in (first, second, third):
        assert "gateway_approve" in alice.ask_tools(at)
    refused = alice.now(first, "all__count")
    found = re.search(r"\b[0-9a-f]{10}\b", refused)
    assert found, refused
    approved = alice.now(second, "gateway_approve", id=found[0], tool="all__count", arguments={})
    assert approved.startswith("[Approved"), approved
    assert alice.now(third, "all__count").startswith("1 ")


def test_a_long_call_is_collected_and_cancelled_from_every_replica(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    """Both ways to collect: `gateway_wait`, and a task for hosts that take tasks."""
    replicas.more = IMPATIENT
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert "gateway_wait" in alice.ask_tools(first)
    assert "gateway_wait" in alice.ask_tools(second)
    call = long_call(alice.now(first, "all__sleep", seconds=4))
    asked = {"name": "all__sleep", "arguments": {"seconds": 4}}
    task = alice.stateless(first, "tools/call", "all__sleep", asked, tasks)["result"]["taskId"]
    replicas.settle()
    assert "no call" in bob.now(second, "gateway_wait", call=call)
    assert "no task" in bob.stateless(second, "tasks/get", "", {"taskId": task}, tasks)["error"]["message"]
    state = alice.stateless(second, "tasks/get", "", {"taskId": task}, tasks)["result"]
    assert state["status"] in ("working", "completed")
    for at in (second, first, second):
        assert re.fullmatch(r"\d+ \d+", collected(alice, at, call))
    call = long_call(alice.now(second, "all__sleep", seconds=A_MINUTE))
    replicas.settle()
    assert "was cancelled" in alice.now(first, "gateway_cancel", call=call)
    call = long_call(alice.now(first, "all__sleep", seconds=A_MINUTE))
    replicas.settle()
    first.process.kill()
    first.process.wait()
    assert "is gone" in alice.now(second, "gateway_wait", call=call)


def test_a_program_without_mcp_finds_its_state_from_every_replica(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    replicas.more = "[http]\nopenapi = true\n"
    first, second = replicas.start(), replicas.start()
    program = host()
    counts: list[str] = []
    for at in (first, second):
        document = program.http.get(f"{at.url}/openapi.json", headers=program.headers).json()
        assert "/tools/own__count" in document["paths"]
    for at in (first, second, first):
        answer = program.http.post(f"{at.url}/tools/own__count", json={}, headers=program.headers)
        counts.append(answer.text)
    assert [re.findall(r"\d+", count)[0] for count in counts] == ["1", "2", "3"]


IMPATIENT = """
[profiles.impatient]
extends = "default"
match = [{ client_name = "h" }]
sets = { "wait.call" = 3, "wait.progress_resets" = false }
"""
"""A profile of hosts that give calls up after three seconds, so that they are answered after two."""


def long_call(answer: str) -> str:
    """Return the id in the answer to a call that goes on."""
    found = re.search(r"with call (c_\w+)", answer)
    assert found, answer
    return found[1]


def collected(host: Host, at: Serving, call: str) -> str:
    """Wait for the outcome of a long call, as its host's model would."""
    while "still running" in (answer := host.now(at, "gateway_wait", call=call)):
        pass
    return answer
