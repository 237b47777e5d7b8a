"""Calls of several hosts at once on one session of an upstream: what it asks reaches the host whose call it is."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

KINDS = ("handshake-stdio", "handshake-http", "handshake-sse", "modern-http")
ROUNDS = 6


@pytest.fixture(scope="module")
def origins(tmp_path_factory, make_bridge):
    """The origin of a gateway with one session of an upstream for everybody, for each kind of upstream."""
    made = make_bridge(tmp_path_factory.mktemp("concurrent"))
    kept: dict[str, str] = {}

    def origin(kind: str) -> str:
        if kind not in kept:
            kept[kind] = made.gateway(made.config({"bridge": made.upstream(kind, "shared") | {"session": "shared"}}))
        return kept[kind]

    yield origin
    made.close()


def answering(name: str) -> dict[str, Any]:
    """A host that answers with its name, and with what it was asked."""
    return {
        "elicitation/create": lambda params: {
            "action": "accept",
            "content": {"by": name, "asked": params["message"]},
        }
    }


def ask(host: Any, name: str, number: int) -> None:
    message = f"{name} {number}"
    answer = host.call("elicit", message=message)["structuredContent"]["answers"]["form"]
    assert answer["content"] == {"by": name, "asked": message}


@pytest.mark.parametrize("upstream_kind", KINDS)
@pytest.mark.parametrize(
    "host_kinds",
    [
        ("handshake-http", "handshake-http"),
        ("handshake-sse", "handshake-http"),
        ("modern-http", "modern-http"),
        ("handshake-http", "modern-http"),
    ],
    ids="+".join,
)
def test_each_host_is_asked_what_its_own_calls_ask(origins, fresh, upstream_kind, host_kinds):
    names = ("left", "right")
    left, right = (
        fresh.host(kind, origins(upstream_kind), name=name, answers=answering(name))
        for kind, name in zip(host_kinds, names, strict=True)
    )
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(ask, host, name, number)
            for number in range(ROUNDS)
            for host, name in ((left, "left"), (right, "right"))
        ]
        for one in asked:
            one.result(60)
    for host, name in ((left, "left"), (right, "right")):
        messages = [params["message"] for _, params, _ in host.asked]
        assert sorted(messages) == [f"{name} {number}" for number in range(ROUNDS)]


@pytest.mark.parametrize("upstream_kind", KINDS)
def test_a_host_that_takes_its_time_is_not_answered_for_by_another(origins, fresh, upstream_kind):
    release = threading.Event()
    slow = answering("slow")
    quick_answer = slow["elicitation/create"]

    def later(params: dict[str, Any]) -> dict[str, Any]:
        assert release.wait(20)
        return quick_answer(params)

    slow["elicitation/create"] = later
    first = fresh.host("handshake-http", origins(upstream_kind), name="slow", answers=slow)
    second = fresh.host("handshake-http", origins(upstream_kind), name="quick", answers=answering("quick"))
    waiting = first.begin("elicit", message="slow 0")
    first.is_asked("elicitation/create")
    quick = second.begin("elicit", message="quick 0")
    assert second.request("tools/list")["tools"]  # the gateway goes on serving whoever waits
    release.set()
    for exchange, name in ((waiting, "slow"), (quick, "quick")):
        answer = exchange.wait()["structuredContent"]["answers"]["form"]
        assert answer["content"] == {"by": name, "asked": f"{name} 0"}


@pytest.mark.parametrize("upstream_kind", KINDS)
def test_progress_and_log_messages_go_to_the_host_whose_call_it_is(origins, fresh, upstream_kind):
    hosts = [fresh.host("handshake-http", origins(upstream_kind), name=name) for name in ("left", "right")]
    for host in hosts:
        host.log_from("debug")
    exchanges = [(host, host.begin("steps", count=4)) for host in hosts for _ in range(3)]
    exchanges += [(host, host.begin("chatter")) for host in hosts]
    for _, exchange in exchanges:
        exchange.wait()
    for host in hosts:
        mine = {exchange.token: exchange for owner, exchange in exchanges if owner is host}
        assert {one["progressToken"] for one in host.told("notifications/progress")} <= set(mine)
        for exchange in mine.values():
            steps = [one["progress"] for one in exchange.progress]
            assert steps == sorted(set(steps))
        assert sum(bool(exchange.progress) for exchange in mine.values()) == 3
        assert len(host.told("notifications/message")) == 8
