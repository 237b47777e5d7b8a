"""Changes are told to whom they concern: not beyond what a token reaches, nor to other principals."""

from typing import Any

import pytest

from gateway.config.token_hashes import hash_of

TOKENS = {"alice": "alices-token-of-this-test", "bob": "bobs-token-of-this-test", "carol": "carols-token-of-this-test"}
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
        "access.tokens.carol": {"hash": hash_of(TOKENS["carol"]), "upstreams": ["own", "theirs"]},
    }
    reach["ours"] |= {"session": "shared"}
    reach["own"] |= {"session": "principal"}
    yield made.gateway(made.config(reach, **access))
    made.close()


@pytest.fixture(params=["handshake-http", "modern-http"])
def hosts(origin, fresh, request) -> tuple[Any, Any, Any]:
    """A host of each of them, which has seen the lists."""

    def of(person: str) -> Any:
        host = fresh.host(request.param, origin, name=person, headers={"Authorization": f"Bearer {TOKENS[person]}"})
        host.everything("tools")
        return host

    return of("alice"), of("bob"), of("carol")


@pytest.mark.parametrize("kind", ["tools", "resources"])
def test_a_list_that_a_token_does_not_reach_has_not_changed_for_its_host(hosts, kind):
    alice, bob, _ = hosts
    for host in hosts:
        host.listen()
    since = [len(host.heard) for host in hosts]
    bob.call("theirs__change", kind=kind)
    bob.hears(f"notifications/{kind}/list_changed", since=since[1])
    bob.call("ours__change", kind="prompts")
    alice.hears("notifications/prompts/list_changed", since=since[0])  # what went before has come by now
    assert alice.told(f"notifications/{kind}/list_changed", since[0]) == []


def test_a_resource_is_that_of_the_upstream_and_of_the_principal_that_watch_it(hosts):
    alice, bob, carol = hosts
    for host in hosts:
        host.listen(URI)
    since = [len(host.heard) for host in hosts]
    carol.call("own__touch", uri=URI)
    assert carol.hears(UPDATED, since=since[2])["uri"] == URI
    assert alice.told(UPDATED, since[0]) == bob.told(UPDATED, since[1]) == []
    bob.call("ours__touch", uri=URI)
    for host, before in zip((alice, bob), since, strict=False):
        assert host.hears(UPDATED, since=before)["uri"] == URI
    assert len(alice.told(UPDATED, since[0])) == 1
    assert len(carol.told(UPDATED, since[2])) == 1
