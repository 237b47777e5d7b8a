"""Changes are told to whom they concern: not beyond what a token reaches, nor to other principals."""

from typing import Any

import pytest

from gateway.config.token_hashes import hash_of

TOKENS = {"alice": "alices-token-of-this-test", "bob": "bobs-token-of-this-test"}
URI = "bridge://rows/the-same-everywhere"
UPDATED = "notifications/resources/updated"


@pytest.fixture(scope="module")
def origin(tmp_path_factory, make_bridge):
    """A gateway with three upstreams that have the same resources. Alice does not reach `theirs`."""
    made = make_bridge(tmp_path_factory.mktemp("callers"))
    reach = {name: made.upstream("handshake-stdio", name) for name in ("ours", "own", "theirs")}
    access: dict[str, Any] = {
        "access.tokens.alice": {"hash": hash_of(TOKENS["alice"]), "upstreams": ["ours", "own"]},
        "access.tokens.bob": {"hash": hash_of(TOKENS["bob"])},
    }
    reach["ours"] |= {"session": "shared"}
    reach["own"] |= {"session": "principal"}
    yield made.gateway(made.config(reach, **access))
    made.close()


@pytest.fixture(params=["handshake-http", "modern-http"])
def hosts(origin, fresh, request) -> tuple[Any, Any]:
    """A host of Alice's, and one of Bob's, which have both seen the lists."""

    def of(person: str) -> Any:
        host = fresh.host(request.param, origin, name=person, headers={"Authorization": f"Bearer {TOKENS[person]}"})
        host.everything("tools")
        return host

    return of("alice"), of("bob")


@pytest.mark.parametrize("kind", ["tools", "resources"])
def test_a_list_that_a_token_does_not_reach_has_not_changed_for_its_host(hosts, kind):
    alice, bob = hosts
    for host in hosts:
        host.listen()
    since = [len(host.heard) for host in hosts]
    bob.call("theirs__change", kind=kind)
    bob.hears(f"notifications/{kind}/list_changed", since=since[1])
    bob.call("ours__change", kind="prompts")
    alice.hears("notifications/prompts/list_changed", since=since[0])  # what went before has come by now
    assert alice.told(f"notifications/{kind}/list_changed", since[0]) == []


def test_a_resource_of_an_upstream_that_a_token_does_not_reach_is_not_the_one_that_its_host_watches(hosts):
    alice, bob = hosts
    for host in hosts:
        host.listen(URI)
    since = [len(host.heard) for host in hosts]
    bob.call("theirs__touch", uri=URI)
    bob.call("own__touch", uri=URI)
    assert alice.told(UPDATED, since[0]) == []
    bob.call("ours__touch", uri=URI)
    for host, before in zip(hosts, since, strict=True):
        assert host.hears(UPDATED, since=before)["uri"] == URI
    assert len(alice.told(UPDATED, since[0])) == 1
