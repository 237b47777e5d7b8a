"""Whose state a call acts on, by every rule that the configuration knows."""

from dataclasses import replace

import pytest

from gateway.core.model.caller import Caller
from gateway.upstream.connection.owners import client_of, owner_of

HOST = Caller(client_name="host", principal="ann", session="1", headers={"x-user": "bob"})
LATER = replace(HOST, session="2")
STATELESS = replace(HOST, session=None)


@pytest.mark.parametrize("rule", [None, "host-session"])
def test_a_hosts_connection_owns_what_it_uses(rule: str | None) -> None:
    assert owner_of(rule, HOST) == owner_of(rule, replace(HOST, client_name="renamed", headers={}))
    assert owner_of(rule, HOST) != owner_of(rule, LATER)


@pytest.mark.parametrize("rule", [None, "host-session"])
def test_a_host_without_a_connection_is_known_by_principal_name_and_profile(rule: str | None) -> None:
    assert owner_of(rule, STATELESS) == client_of(STATELESS)
    assert owner_of(rule, STATELESS) != owner_of(rule, replace(STATELESS, client_name="other"))
    assert owner_of(rule, STATELESS) != owner_of(rule, replace(STATELESS, principal="eve"))
    assert owner_of(rule, STATELESS) != owner_of(rule, replace(STATELESS, profile="cline"))
    assert owner_of(rule, replace(STATELESS, client_name=None)) == owner_of(rule, replace(STATELESS, client_name=None))


def test_shared_is_one_for_all() -> None:
    assert owner_of("shared", HOST) == owner_of("shared", replace(STATELESS, principal="eve", client_name="x"))


def test_a_client_is_the_same_over_every_connection_of_its_name_and_path() -> None:
    assert owner_of("client", HOST) == owner_of("client", LATER) == owner_of("client", STATELESS)
    for other in ({"client_name": "x"}, {"principal": "eve"}, {"profile": "cline"}):
        assert owner_of("client", HOST) != owner_of("client", replace(HOST, **other))


def test_a_principal_is_the_same_from_every_host() -> None:
    assert owner_of("principal", HOST) == owner_of("principal", replace(STATELESS, client_name="x"))
    assert owner_of("principal", HOST) != owner_of("principal", replace(HOST, principal="eve"))


def test_a_header_names_an_owner_within_the_principal() -> None:
    rule = "header:X-User"
    assert owner_of(rule, HOST) == owner_of(rule, replace(LATER, client_name="x"))
    assert owner_of(rule, HOST) != owner_of(rule, replace(HOST, headers={"x-user": "carl"}))
    assert owner_of(rule, HOST) != owner_of(rule, replace(HOST, principal="eve"))
    assert owner_of(rule, HOST) != owner_of("header:X-Other", replace(HOST, headers={"x-other": "carl"}))


@pytest.mark.parametrize("headers", [{}, {"x-user": ""}, {"x-other": "bob"}])
def test_without_the_header_a_host_is_known_by_principal_and_name(headers: dict[str, str]) -> None:
    assert owner_of("header:X-User", replace(HOST, headers=headers)) == client_of(HOST)


NAMES = ["", " ", "a", "a b", "b", "a b c", "b c", "'a'", "a' 'b", "shared", "None"]


@pytest.mark.parametrize("rule", [None, "host-session", "client", "principal", "header:x-user", "header:x-none"])
def test_no_two_principals_ever_own_the_same_whatever_they_call_themselves(rule: str | None) -> None:
    owners: dict[str, str] = {}
    for principal in NAMES:
        for name in NAMES:
            for profile in (None, name):
                caller = Caller(client_name=name, principal=principal, profile=profile, headers={"x-user": name})
                assert owners.setdefault(owner_of(rule, caller), principal) == principal


def test_no_name_of_a_client_makes_it_the_owner_of_something_else() -> None:
    victims = {owner_of(rule, HOST) for rule in (None, "shared", "principal", "header:X-User")}
    for name in [*victims, *(f"x {owner}" for owner in victims), *(owner.removeprefix("client ") for owner in victims)]:
        assert owner_of(None, Caller(client_name=name, principal="eve")) not in victims
