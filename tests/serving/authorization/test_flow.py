"""The way from a host without a token to one with a token, and back."""

from typing import Any

import anyio

from gateway.serving.access import Identified
from tests.serving.authorization.conftest import BASE, REDIRECT, Gateway, parameters_in, passphrase_hash


def test_a_host_registers_is_approved_and_calls(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    browser = gateway.browser()
    assert browser.open(client_id).status_code == 200
    assert browser.log_in("alice").status_code == 200
    answer = browser.send("approve")
    assert answer.headers["location"].startswith(f"{REDIRECT}?")
    given = parameters_in(answer)
    assert given["state"] == "a state"
    assert given["iss"] == BASE
    tokens = gateway.exchange(client_id, given["code"])
    assert tokens.headers["cache-control"] == "no-store"
    assert tokens.json()["expires_in"] == 3_600
    assert gateway.status_of(tokens.json()["access_token"]) == 200


def test_the_metadata_names_what_there_is(gateway: Gateway) -> None:
    found = gateway.http.get("/.well-known/oauth-authorization-server").json()
    assert gateway.http.get("/.well-known/openid-configuration").json() == found
    assert found["issuer"] == BASE
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert found["client_id_metadata_document_supported"] is True
    for endpoint in ("authorization", "token", "registration", "revocation"):
        assert gateway.http.request("PUT", found[f"{endpoint}_endpoint"].removeprefix(BASE)).status_code == 405


def test_a_host_gets_the_scopes_that_it_asks_for_and_that_are_approved(gateway: Gateway) -> None:
    client_id = gateway.register()["client_id"]
    browser = gateway.browser()
    browser.open(client_id, scope="openid github.admin offline_access")
    browser.log_in()
    assert "It also asks for github.admin" in " ".join(browser.text.split())
    code = parameters_in(browser.send("approve"))["code"]
    tokens = gateway.exchange(client_id, code).json()
    assert tokens["scope"] == "mcp github.admin"
    less = gateway.refresh(client_id, tokens["refresh_token"], scope="mcp").json()
    assert less["scope"] == "mcp"
    found = anyio.run(gateway.server.verify, less["access_token"])
    assert isinstance(found, Identified)
    assert found.scopes == {"mcp"}
    again = gateway.refresh(client_id, less["refresh_token"]).json()
    assert again["scope"] == "mcp github.admin"
    assert gateway.tokens()["scope"] == "mcp"


def test_the_resource_names_the_server_and_a_challenge_leads_to_it(gateway: Gateway) -> None:
    refused = gateway.http.post("/mcp", json={})
    assert refused.status_code == 401
    metadata = refused.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    assert gateway.http.get(metadata).json()["authorization_servers"] == [BASE]


def test_tokens_say_what_their_person_reaches(opened: Any) -> None:
    person = {"hash": passphrase_hash(), "profile": "claude-ai", "calls_per_minute": 9, "admin": True}
    with opened(people={"bob": {**person, "upstreams": ["docs"], "tools": ["docs__*"]}}) as gateway:
        token = gateway.tokens(name="bob")["access_token"]
        found = anyio.run(gateway.server.verify, token)
        assert (found.principal, found.profile, found.is_admin) == ("bob", "claude-ai", True)
        assert found.grant[:3] == (("docs",), ("docs__*",), 9)
        assert found.expires == gateway.clock.now + 3_600
        assert found == anyio.run(gateway.server.verify, token)
        assert anyio.run(gateway.server.verify, "mcpg_of_the_configuration") is None


def test_one_person_needs_no_name(opened: Any) -> None:
    with opened(people={"alice": {"hash": passphrase_hash()}}) as gateway:
        browser = gateway.browser()
        browser.open(gateway.register()["client_id"])
        assert 'name="name"' not in browser.page.text
        assert browser.log_in("").status_code == 200
        assert "You are alice" in " ".join(browser.text.split())


def test_below_a_path_the_endpoints_are_there_too(opened: Any) -> None:
    with opened(public_url=f"{BASE}/gw", root_path="/gw") as gateway:
        for place in ("/.well-known/oauth-authorization-server/gw", "/gw/.well-known/openid-configuration"):
            found = gateway.http.get(place).json()
            assert (found["issuer"], found["token_endpoint"]) == (f"{BASE}/gw", f"{BASE}/gw/token")
        client_id = gateway.register()["client_id"]
        browser = gateway.browser()
        browser.open(client_id, resource=f"{BASE}/gw/mcp")
        assert browser.log_in().status_code == 200
        assert str(browser.page.url).startswith(f"{BASE}/gw/authorize/approve/")
        assert parameters_in(browser.send("approve"))["iss"] == f"{BASE}/gw"
