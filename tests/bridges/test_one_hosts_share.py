"""What one host keeps waiting is its own business: other hosts are asked, called for and told meanwhile."""

import threading
from collections import deque
from typing import Any

import pytest

from tests.bridges import hosts

SECONDS = 30.0
"""How long an answer may take here: what would not come at all is what is looked for."""


@pytest.fixture(scope="module")
def origin(tmp_path_factory, make_bridge):
    """The origin of a gateway with an upstream of the handshake era, and the same as everybody's."""
    made = make_bridge(tmp_path_factory.mktemp("shares"))
    reach = made.upstream("handshake-stdio", "shares")
    yield made.gateway(made.config({"own": reach, "all": reach | {"session": "shared"}}))
    made.close()


def asked(host: Any, upstream: str = "own") -> dict[str, Any]:
    """A call that asks: what it is answered with at first."""
    return host.once("tools/call", {"name": f"{upstream}__elicit", "arguments": {"message": "who?"}}).wait(SECONDS)


def test_a_stateless_host_may_leave_so_many_calls_waiting_and_the_others_are_still_asked(origin, fresh):
    busy, other = (fresh.host("modern-http", origin, name=name) for name in ("busy", "other"))
    waiting = [asked(busy) for _ in range(64)]
    assert {one["resultType"] for one in waiting} == {"input_required"}
    with pytest.raises(hosts.Refused, match="64 calls of this host are waiting"):
        asked(busy)
    again = other.request("tools/call", {"name": "own__elicit", "arguments": {"message": "and you?"}}, seconds=SECONDS)
    assert again["structuredContent"]["answers"]["form"]["action"] == "accept"
    params = busy.retried({"name": "own__elicit", "arguments": {"message": "who?"}}, waiting[0])
    assert busy.request("tools/call", params, seconds=SECONDS)["content"]
    assert asked(busy)["resultType"] == "input_required"  # its place is free again


def test_a_host_that_always_has_a_call_running_lets_another_have_the_shared_session(origin, fresh):
    busy, other = (fresh.host("handshake-http", origin, name=name) for name in ("always", "now-and-then"))
    over = threading.Event()

    # One after the other ends, and another begins then: some of them are always running.
    running = deque(busy.begin("all__slow", tag="on", seconds=0.3 * (number + 1)) for number in range(4))

    def call_on_and_on() -> None:
        while running:
            running.popleft().wait(60)
            if not over.is_set():
                running.append(busy.begin("all__slow", tag="on", seconds=1.2))

    caller = threading.Thread(target=call_on_and_on)
    caller.start()
    try:
        result = other.request("tools/call", {"name": "all__counter", "arguments": {}}, seconds=SECONDS)
        assert result["structuredContent"]["count"]
    finally:
        over.set()
        caller.join(60)


def test_what_waits_for_a_host_whose_stream_is_gone_is_given_up_at_once(origin, fresh):
    gone, other = (fresh.host("handshake-sse", origin, name=name) for name in ("gone", "still-there"))
    release = threading.Event()
    gone.answers["elicitation/create"] = lambda params: release.wait(60) and {"action": "decline"}
    gone.begin("all__elicit", message="who?")
    gone.is_asked("elicitation/create", seconds=SECONDS)
    waiting = other.once("tools/call", {"name": "all__counter", "arguments": {}})
    fresh.close_host(gone)
    assert waiting.wait(SECONDS)["structuredContent"]["count"]
    release.set()
