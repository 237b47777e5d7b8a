"""As whom the gateway speaks: as the host in front, and never as one that can do more."""

from typing import Any

import pytest

from gateway.core.model.caller import Caller
from gateway.upstream.connection.client_identity import GATEWAY, ClientIdentity, identity_of

TASKS = "io.modelcontextprotocol/tasks"
UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


def shown(revision: str = "2025-11-25", **capabilities: Any) -> Any:
    return identity_of(Caller(revision=revision, capabilities=capabilities)).capabilities


def test_an_upstream_is_shown_who_the_host_is_and_what_it_wants_to_be_told() -> None:
    info = {"name": "host", "version": "3", "later": None}
    identity = identity_of(Caller(client_info=info, log_level="warning"))
    assert (identity.client_info, identity.log_level) == (info, "warning")
    assert identity_of(Caller()).client_info == GATEWAY


def test_what_the_host_declared_is_declared_and_nothing_else() -> None:
    declared = {"sampling": {"tools": {}}, "elicitation": {"url": {}}, "experimental": {"x": 1}, "future": [None]}
    assert shown(**declared) == declared
    assert shown() == {}


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        ({"tasks": {"list": {}}, "sampling": {}}, {"sampling": {}}),
        ({"extensions": UI}, {"extensions": UI}),
        ({"extensions": {}}, {"extensions": {}}),
        ({"extensions": "odd"}, {"extensions": "odd"}),
    ],
)
def test_what_cannot_be_carried_is_not_declared(declared: dict[str, Any], seen: dict[str, Any]) -> None:
    before = str(declared)
    assert shown(**declared) == seen
    assert str(declared) == before


@pytest.mark.parametrize(
    ("extensions", "in_the_handshake"), [({TASKS: {}}, {}), ({TASKS: {}, **UI}, {"extensions": UI})]
)
def test_tasks_are_declared_to_stateless_upstreams_alone(
    extensions: dict[str, Any], in_the_handshake: dict[str, Any]
) -> None:
    identity = identity_of(Caller(revision="2026-07-28", capabilities={"extensions": extensions}))
    assert identity.takes_tasks
    assert identity.capabilities == {"extensions": extensions}
    assert identity.for_handshake == in_the_handshake
    assert not identity_of(Caller(capabilities={"extensions": UI})).takes_tasks


def test_a_stateless_host_cannot_tell_that_its_roots_changed() -> None:
    changing = {"roots": {"listChanged": True}, "sampling": {}}
    stateless = identity_of(Caller(revision="2026-07-28", capabilities=changing))
    assert stateless.capabilities == changing
    assert stateless.for_handshake == {"roots": {}, "sampling": {}}
    assert identity_of(Caller(revision="2025-11-25", capabilities=changing)).for_handshake == changing
    assert identity_of(Caller(revision="2026-07-28", capabilities={"roots": "odd"})).for_handshake == {"roots": "odd"}
    assert identity_of(Caller(revision="2026-07-28")).for_handshake == {}


@pytest.mark.parametrize(
    ("capabilities", "interactive"),
    [
        ({}, False),
        ({"experimental": {}}, False),
        ({"sampling": {}}, True),
        ({"elicitation": {}}, True),
        ({"roots": {}}, True),
    ],
)
def test_a_host_that_can_be_asked_something_is_interactive(capabilities: dict[str, Any], interactive: bool) -> None:
    assert ClientIdentity(capabilities=capabilities).is_interactive is interactive


def test_equal_capabilities_have_equal_marks_in_whatever_order() -> None:
    one = ClientIdentity(capabilities={"a": {"x": 1, "y": 2}, "b": {}})
    same = ClientIdentity({"name": "other"}, {"b": {}, "a": {"y": 2, "x": 1}}, "debug")
    assert one.mark == same.mark
    assert one.mark != ClientIdentity(capabilities={"a": {"x": 1}, "b": {}}).mark
