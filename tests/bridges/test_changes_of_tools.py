"""A changed list of tools is told to hosts that reach one of the tools that changed, through a real gateway."""

from typing import Any

import pytest

from gateway.config.token_hashes import hash_of

PEOPLE = ("driver", "worker", "reader", "visitor", "bob")
CHANGED = "notifications/tools/list_changed"
LAST = "notifications/prompts/list_changed"


def token(person: str) -> str:
    return f"{person}s-token-of-this-test"


@pytest.fixture(scope="module")
def origin(tmp_path_factory, make_bridge):
    """A gateway whose tokens reach all of the upstream `ours`, or some of its tools, or none; Bob is held by a rule."""
    made = make_bridge(tmp_path_factory.mktemp("tools"))
    tools = {"worker": ["ours__extra_*"], "reader": ["ours__counter"], "visitor": ["theirs__*"]}
    access: dict[str, Any] = {
        f"access.tokens.{person}": {"hash": hash_of(token(person))}
        | ({"tools": tools[person]} if person in tools else {})
        for person in PEOPLE
    }
    rule = {"name": "no-extras", "effect": "deny", "principals": ["bob"], "tools": ["ours__extra_*"]}
    upstreams = {name: made.upstream("handshake-stdio", name) | {"session": "shared"} for name in ("ours", "theirs")}
    yield made.gateway(made.config(upstreams, policy={"rules": [rule]}, **access))
    made.close()


@pytest.fixture(params=["handshake-http", "modern-http"])
def people(origin, fresh, request) -> dict[str, Any]:
    """A host of each of them, which has seen the lists and listens."""

    def of(person: str) -> Any:
        host = fresh.host(request.param, origin, name=person, headers={"Authorization": f"Bearer {token(person)}"})
        host.everything("tools")
        host.listen()
        return host

    return {person: of(person) for person in PEOPLE}


def told(people: dict[str, Any], **change: Any) -> set[str]:
    """Who is told that the tools have changed, after the driver has changed something."""
    since = {person: len(host.heard) for person, host in people.items()}
    people["driver"].call("ours__change", kind="tools", **change)
    people["driver"].hears(CHANGED, since=since["driver"])
    people["driver"].call("ours__change", kind="prompts")
    for person, host in people.items():
        host.hears(LAST, since=since[person])  # what went before has come by now
    return {person for person, host in people.items() if host.told(CHANGED, since[person])}


def test_a_new_tool_is_told_to_those_who_reach_it(people):
    before = {person: host.everything("tools") for person, host in people.items()}
    hearers = told(people)
    lists_differ = {person for person, host in people.items() if host.everything("tools") != before[person]}
    assert hearers == lists_differ == {"driver", "worker"}


def test_what_an_upstream_only_says_is_told_to_those_who_reach_any_of_its_tools(people):
    assert told(people, only_said=True) >= {"driver", "reader", "bob"}
    assert "visitor" not in told(people, only_said=True)
