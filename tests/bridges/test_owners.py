"""Whose an upstream's state is: what the configuration says, and without it, the host's that is in front."""

import time
from typing import Any

import pytest

pytestmark = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])

RULES: dict[str, dict[str, Any]] = {
    "own": {},
    "all": {"session": "shared"},
    "each": {"session": "host-session"},
    "who": {"session": "principal"},
    "named": {"session": "header:X-User"},
    "names": {"session": "client"},
    "few": {"max_sessions": 1},
    "brief": {"max_sessions": 1, "session_idle": 0.2},
}
"""The upstreams of the gateway, all alike but for whose their state is."""


@pytest.fixture(scope="module")
def origins(tmp_path_factory, make_bridge):
    """The origin of a gateway for each transport of its upstreams."""
    made = make_bridge(tmp_path_factory.mktemp("owners"))
    kept: dict[str, str] = {}

    def origin(transport: str) -> str:
        if transport not in kept:
            reach = {name: made.upstream(f"handshake-{transport}", name) for name in RULES}
            kept[transport] = made.gateway(made.config({name: reach[name] | RULES[name] for name in RULES}))
        return kept[transport]

    yield origin
    made.close()


@pytest.fixture
def connect(origins, fresh, transport):
    """`connect(kind, name)`: a new host of a kind that calls itself so, on the gateway of this transport."""

    def connected(kind: str = "modern-http", name: str = "host-a", **options: Any) -> Any:
        return fresh.host(kind, origins(transport), name=name, **options)

    return connected


def count(host: Any, upstream: str) -> tuple[str, int]:
    """Which session of the upstream a host has, and how often it has counted by now."""
    seen = host.call(f"{upstream}__counter")["structuredContent"]
    return seen["session"], seen["count"]


def test_what_an_upstream_keeps_is_there_for_the_next_call_of_a_host_without_sessions(connect):
    session, number = count(connect(name="modern-a"), "own")
    assert count(connect(name="modern-a"), "own") == (session, number + 1)


def test_a_host_that_opens_a_session_for_each_call_begins_anew_unless_its_state_is_its_clients(connect, fresh):
    seen = {upstream: [] for upstream in ("own", "names")}
    for _ in range(3):
        host = connect("handshake-http", "one-session-a-call")
        for upstream, counted in seen.items():
            counted.append(count(host, upstream))
        fresh.close_host(host)
    assert len({session for session, _ in seen["own"]}) == 3
    assert len({session for session, _ in seen["names"]}) == 1
    assert [number - seen["names"][0][1] for _, number in seen["names"]] == [0, 1, 2]


def test_a_host_whose_connection_broke_still_has_what_is_its_own(connect):
    host = connect("handshake-http", "lost-and-found")
    session, number = count(host, "own")
    host.wire.hang_up("standing")
    host.wire.initialized(host)  # it opens its stream again
    assert count(host, "own") == (session, number + 1)


@pytest.mark.parametrize("kind", ["handshake-http", "handshake-sse"])
def test_two_sessions_that_are_open_at_once_share_nothing(connect, kind):
    first, second = connect(kind, "twice"), connect(kind, "twice")
    seen = [count(host, "own")[0] for host in (first, second, first, second)]
    assert seen[0] == seen[2] != seen[1] == seen[3]


def test_two_clients_without_sessions_share_nothing(connect):
    first, second = connect(name="client-x"), connect(name="client-y")
    seen = [count(host, "own")[0] for host in (first, second, first, second)]
    assert seen[0] == seen[2] != seen[1] == seen[3]


def test_hosts_that_declare_other_capabilities_share_nothing(connect):
    first, second = connect(name="able"), connect(name="able", capabilities={})
    assert count(first, "own")[0] != count(second, "own")[0]


def test_a_shared_session_is_everybodys(connect):
    hosts = [connect("handshake-http", "s-a"), connect("handshake-http", "s-b"), connect("handshake-sse", "s-c")]
    seen = [count(host, "all") for host in hosts]
    assert len({session for session, _ in seen}) == 1
    assert [number - seen[0][1] for _, number in seen] == [0, 1, 2]


def test_a_session_of_the_hosts_is_nobody_elses(connect):
    first, second = connect("handshake-http", "h-a"), connect("handshake-http", "h-a")
    seen = [count(host, "each")[0] for host in (first, second, first, second)]
    assert seen[0] == seen[2] != seen[1] == seen[3]


def test_a_session_of_the_hosts_ends_with_it(connect, fresh):
    first = connect("handshake-http", "h-b")
    session, _ = count(first, "each")
    fresh.close_host(first)
    assert count(connect("handshake-http", "h-b"), "each")[0] != session


def test_a_session_of_the_principal_is_there_for_all_its_hosts(connect):
    seen = [count(connect("handshake-http", name), "who")[0] for name in ("p-a", "p-b", "p-a")]
    assert len(set(seen)) == 1


def test_a_session_by_header_is_whose_the_header_says(connect):
    def host(user: str | None, name: str = "any") -> Any:
        return connect("modern-http", name, headers={} if user is None else {"X-User": user})

    ann, bob = count(host("ann"), "named")[0], count(host("bob"), "named")[0]
    assert ann != bob
    assert count(host("ann", "another"), "named")[0] == ann
    assert count(host("bob", "another"), "named")[0] == bob
    assert count(host(None), "named")[0] not in (ann, bob)


def test_an_upstream_whose_sessions_are_all_of_hosts_that_are_there_says_so(connect):
    first = connect("handshake-http", "first")  # with its stream of events open
    session, _ = count(first, "few")
    refused = words(connect("handshake-http", "second"), "few")
    assert "few" in refused
    assert "max_sessions" in refused
    assert count(first, "few")[0] == session


@pytest.mark.parametrize("kind", ["handshake-http", "modern-http"])
def test_a_host_that_has_nothing_open_makes_room(connect, kind):
    first = connect(kind, "first")
    if kind == "handshake-http":
        first.wire.hang_up("standing")
    session, _ = count(first, "few")
    second = connect("handshake-http", "second")
    deadline = time.monotonic() + 60
    while "max_sessions" in words(second, "few"):  # until it is known that the stream is closed
        assert time.monotonic() < deadline
    assert count(second, "few")[0] != session
    assert "max_sessions" in words(first, "few")


def test_a_session_that_nobody_calls_makes_room(connect):
    first, second = connect("handshake-http", "first"), connect("handshake-http", "second")
    session, _ = count(first, "brief")
    deadline = time.monotonic() + 60
    while "max_sessions" in words(second, "brief"):
        assert time.monotonic() < deadline
    assert count(second, "brief")[0] != session


def words(host: Any, upstream: str) -> str:
    """What a call of the counter says: what it has counted, or why it could not."""
    result = host.call(f"{upstream}__counter")
    return " ".join(block["text"] for block in result["content"] if block["type"] == "text")
