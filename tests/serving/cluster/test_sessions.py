"""Sessions of the handshake era before several replicas, behind a load balancer that sends each request anywhere."""

import signal
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

import redis as client_of_redis

from gateway.serving.cluster.keys import session_key
from tests.serving.cluster.conftest import BOB, Host, Replicas


def test_a_session_is_answered_whichever_replica_is_asked(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    counts = [alice.call(at, "own__count") for at in (first, second, second, first)]
    assert [count.split()[0] for count in counts] == ["1", "2", "3", "4"]
    assert len({count.split()[1] for count in counts}) == 1, "each call found the process with the state"


def test_a_session_is_nobody_elses_at_any_replica(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    bob.headers["Mcp-Session-Id"] = alice.open(first)
    for at in (first, second):
        answer = bob.post(at, bob.message("tools/list", {}))
        assert answer.status_code == 404, answer.text
    first.process.kill()
    first.process.wait()
    answer = bob.post(second, bob.message("tools/list", {}))
    assert answer.status_code == 404, "nor does anybody take over the session of another principal"
    assert alice.ask(second, "tools/list")["result"]["tools"]


def test_a_session_goes_on_at_another_replica_when_its_own_is_killed(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    assert alice.ask(first, "logging/setLevel", level="warning")["result"] == {}
    assert alice.call(first, "all__count").startswith("1 ")
    replicas.settle()
    first.process.kill()
    first.process.wait()
    assert alice.call(second, "all__count").startswith("1 "), "an upstream that is shared just works"
    assert alice.call(third, "all__count").startswith("2 "), "the third finds the session at the second"
    assert any("taken over" in line for line in second.lines)


def test_a_call_whose_replica_is_killed_is_answered_where_its_stream_is_resumed(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    call = alice.message("tools/call", {"name": "all__sleep", "arguments": {"seconds": 60}})
    threading.Timer(1.0, first.process.kill).start()
    with alice.stream(second, call) as events:
        assert list(events) == [None], "there is an id to resume from, and then the stream ends"
    with alice.stream(second, **{"Last-Event-ID": events.id}) as rest:
        (answer,) = rest
    assert answer["id"] == call["id"]
    assert "gone" in answer["error"]["message"]


def test_a_host_that_cannot_resume_gets_the_error_at_once(replicas: Replicas, host: Callable[..., Host]) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host(revision="2025-06-18")
    alice.open(first)
    call = alice.message("tools/call", {"name": "all__sleep", "arguments": {"seconds": 60}})
    threading.Timer(1.0, first.process.kill).start()
    with alice.stream(second, call) as events:
        (answer,) = events
    assert answer["id"] == call["id"]
    assert "gone" in answer["error"]["message"]


def test_a_session_whose_record_is_of_another_version_is_an_unknown_session(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    hosts = {record: host() for record in ('{"version": 9}', "[", '"text"', "null", "[" * 20_000)}
    sessions = {record: one.open(first) for record, one in hosts.items()}
    replicas.settle()
    with client_of_redis.Redis.from_url(replicas.redis.url) as redis:
        for record, session in sessions.items():
            assert redis.exists(session_key(session)) == 1
            redis.set(session_key(session), record)
    first.process.kill()
    first.process.wait()
    for one in hosts.values():
        answer = one.post(second, one.message("tools/list", {}))
        while answer.status_code == 503:  # until the first one counts as gone
            answer = one.post(second, one.message("tools/list", {}))
        assert answer.status_code == 404, answer.text
    second.line_with("is broken, or of another version")
    assert host().open(second), "and nothing else is wrong"


def test_a_replica_that_stood_still_gives_up_the_sessions_that_others_have_taken_over(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second, third = replicas.start(), replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    replicas.settle()
    first.process.send_signal(signal.SIGSTOP)
    second.line_with("has left")
    assert [alice.call(second, "own__count").split()[0] for _ in range(2)] == ["1", "2"]
    first.process.send_signal(signal.SIGCONT)
    assert alice.call(first, "own__count").startswith("3 "), "it asks before it answers by itself"
    replicas.settle()
    assert alice.call(third, "own__count").startswith("4 "), "nor has it said meanwhile that the session is its own"
    second.process.kill()
    second.process.wait()
    assert "its state is lost" in alice.call(first, "own__count"), "what the second one knew of it has been kept"
    assert alice.call(third, "own__count").startswith("1 ")


def test_a_replica_in_place_of_one_that_was_killed_takes_over_its_sessions(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    """Started again at the same address, by systemd say, while the first one still counts as there."""
    first, second = replicas.start(), replicas.start()
    alice, bob = host(), host(BOB)
    alice.open(first)
    bob.open(first)
    assert alice.call(first, "own__count").startswith("1 ")
    replicas.settle()
    first.process.kill()
    first.process.wait()
    again = replicas.start("--port", str(urlsplit(first.url).port))
    assert again.url == first.url
    answer = bob.post(second, bob.message("tools/list", {}))
    while answer.status_code == 503:  # until the second one knows it, too
        assert "try again" in answer.text
        answer = bob.post(second, bob.message("tools/list", {}))
    assert answer.status_code == 200
    assert "its state is lost" in alice.call(again, "own__count")
    assert [alice.call(at, "own__count").split()[0] for at in (second, again)] == ["1", "2"]


def test_what_is_lost_with_a_replica_is_told_by_one_that_stood_still(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    first, second = replicas.start(), replicas.start()
    alice = host()
    alice.open(first)
    assert alice.call(first, "own__count").startswith("1 ")
    first.process.send_signal(signal.SIGSTOP)
    second.line_with("has left")
    assert "its state is lost" in alice.call(second, "own__count")
    first.process.send_signal(signal.SIGCONT)
    replicas.settle()
    assert [alice.call(at, "own__count").split()[0] for at in (first, second, first)] == ["1", "2", "3"]
