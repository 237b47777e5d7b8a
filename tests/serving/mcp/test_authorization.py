"""What hosts are told that have no token, or one that is not enough; tokens in addresses; pages of other origins."""

import logging
import re
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.issuer_settings import IssuerSettings
from gateway.content.links.base_url import Bases
from gateway.core.model.grant import Grant
from gateway.errors import AuditUnavailable, ConfigError
from gateway.serving.access import Access, Fault, Identified
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app
from gateway.serving.mcp.security import check_bind
from tests.servers.downstream_service import SampleService

ISSUER = "https://login.example.com/realms/house"
ALICE, PHONE = "alice-alice-alice-alice", "phone-phone-phone-phone"
METADATA = "/.well-known/oauth-protected-resource"
BOTH = {"Accept": "application/json, text/event-stream"}


class Verifier:
    """Knows one token for each fault, and one with the scope `mcp`."""

    async def verify(self, token: str) -> Identified | Fault | None:
        match token:
            case "expired" | "unavailable" | "insufficient" | "forbidden":
                return token
            case "carol":
                return Identified("carol", Grant(), scopes=frozenset({"mcp", "other"}))
            case _:
                return None


def app(*, issuer: bool = True, public_url: str | None = None, bases: Bases | None = None, **settings: Any):
    issuers = {"house": IssuerSettings(issuer=ISSUER, audience=("gateway",), required_scopes=("mcp",))}
    tokens = {"alice": TokenSettings(token=ALICE), "phone": TokenSettings(token=PHONE, url=True)}
    scopes = {"sample__who": ("names",)} if issuer else {}
    http = HttpSettings(**settings)
    access = Access(http, AccessSettings(tokens=tokens, issuers=issuers if issuer else {}, scopes=scopes))
    access.add(Verifier())
    public = [Route("/authorize", PlainTextResponse("allow?"))]
    options: dict[str, Any] = {"access": access, "bases": bases, "public_url": public_url, "public": public}
    return http_app(SampleService(), http, Identity("sample", "1.0"), profile_names=("codex",), **options)


@pytest.fixture
def ask():
    """Ask an application made with these options; gives the response."""

    def ask(method: str, path: str, headers: dict[str, str] | None = None, *, body: Any = None, **options: Any):
        with TestClient(app(**options), base_url="http://127.0.0.1:8484") as client:
            return client.request(method, path, headers=headers, json=body)

    return ask


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/codex", "/mcp/codex/work", "/sse", "/sse/codex"])
def test_the_metadata_of_every_endpoint_names_the_authorization_server(ask, path):
    found = ask("GET", METADATA + path)
    assert found.status_code == 200
    assert found.json() == {
        "resource": f"http://127.0.0.1:8484{path}",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp", "names"],
    }


@pytest.mark.parametrize("path", ["/messages", "/mcp/a/b/c", "/mcp/a%22b", "/content", "//evil.example", "/t/x/mcp"])
def test_there_is_no_metadata_of_anything_else(ask, path):
    assert ask("GET", METADATA + path).status_code == 404


def test_without_an_authorization_server_there_is_no_metadata(ask):
    assert ask("GET", METADATA, issuer=False).status_code == 404
    assert ask("GET", "/mcp", issuer=False).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("where", ["/.well-known/oauth-protected-resource/gateway/mcp", f"/gateway{METADATA}/mcp"])
def test_behind_a_proxy_the_metadata_is_that_of_the_public_address(ask, where):
    public = {"public_url": "https://tools.example.com/gateway", "bases": Bases("/gateway")}
    headers = {"Host": "tools.example.com"}
    assert ask("GET", where, headers, **public).json()["resource"] == "https://tools.example.com/gateway/mcp"
    told = ask("POST", "/gateway/mcp", headers, **public).headers["www-authenticate"]
    assert f'resource_metadata="https://tools.example.com/gateway{METADATA}/mcp"' in told


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("/mcp", "/mcp"),
        ("/mcp/codex", "/mcp/codex"),
        ("/sse", "/sse"),
        ("/", "/mcp"),
        ("/content", "/mcp"),
        ("/mcp/%22,%20error=%22x", "/mcp"),
        ("/mcp/a%0d%0aSet-Cookie:x", "/mcp"),
    ],
)
def test_a_host_without_a_token_is_told_where_to_get_one(ask, path, described):
    refused = ask("POST", path)
    assert refused.status_code == 401
    metadata = f"http://127.0.0.1:8484{METADATA}{described}"
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}", scope="mcp"'


@pytest.mark.parametrize(
    ("token", "status", "error"),
    [
        ("wrong", 401, "invalid_token"),
        ("expired", 401, "invalid_token"),
        ("insufficient", 403, "insufficient_scope"),
        ("forbidden", 403, None),
        ("unavailable", 503, None),
    ],
)
def test_a_host_is_told_what_its_token_lacks(ask, token, status, error):
    refused = ask("POST", "/mcp", bearer(token))
    told = refused.headers.get("www-authenticate", "")
    found = re.search('error="([a-z_]+)"', told)
    assert (refused.status_code, found[1] if found else None) == (status, error)
    assert ("retry-after" in refused.headers) is (status == 503)
    assert token not in told.split()


@pytest.mark.parametrize("query", ["access_token=x", "a=b&access_token=x", f"access_token={ALICE}"])
def test_a_token_in_a_query_is_refused_even_beside_a_good_one(ask, query):
    refused = ask("POST", f"/mcp?{query}", bearer(ALICE))
    assert refused.status_code == 400
    assert 'error="invalid_request"' in refused.headers["www-authenticate"]
    assert ask("GET", f"/?not_access_token={ALICE}", bearer(ALICE)).status_code == 200


def test_public_routes_need_no_token(ask):
    assert ask("GET", "/authorize?state=x").text == "allow?"
    assert ask("GET", "/authorize/other").status_code == 401
    assert ask("GET", "/authorize", {"Host": "evil.example"}).status_code == 421


MODERN = {**BOTH, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "who"}


def test_a_call_that_needs_another_scope_is_answered_so_that_the_host_can_ask_for_it(ask, wire):
    call = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    refused = ask("POST", "/mcp", {**MODERN, **bearer("carol")}, body=call)
    assert refused.status_code == 403
    told = refused.headers["www-authenticate"]
    assert told.startswith('Bearer error="insufficient_scope", resource_metadata="http://127.0.0.1:8484/')
    assert told.endswith('scope="mcp names"')
    other = wire.request(1, "tools/call", wire.modern({"name": "echo"}))
    assert ask("POST", "/mcp", {**MODERN, "Mcp-Name": "echo", **bearer("carol")}, body=other).status_code == 200
    assert ask("POST", "/mcp", {**MODERN, **bearer(ALICE)}, body=call).status_code == 200


def test_a_refusal_that_cannot_be_recorded_is_left_to_the_router(ask, wire, monkeypatch):
    async def unavailable(*_: Any, **__: Any) -> None:
        raise AuditUnavailable("the audit trail cannot be written")

    monkeypatch.setattr(SampleService, "check_scopes", unavailable)
    monkeypatch.setattr(SampleService, "respond", unavailable)
    call = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    answer = ask("POST", "/mcp", {**MODERN, **bearer("carol")}, body=call)
    assert answer.status_code == 200
    assert "the audit trail cannot be written" in answer.text


def test_so_is_a_call_in_a_session(wire):
    headers = {**BOTH, **bearer("carol")}
    with TestClient(app(), base_url="http://127.0.0.1:8484") as client:
        begun = client.post("/mcp", json=wire.initialize("2025-11-25"), headers=headers)
        headers |= {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        refused = client.post("/mcp", json=wire.request(2, "tools/call", {"name": "who"}), headers=headers)
        assert refused.status_code == 403
        assert 'scope="mcp names"' in refused.headers["www-authenticate"]
        good = client.post("/mcp", json=wire.request(3, "tools/call", {"name": "echo"}), headers=headers)
        assert good.status_code == 200
        for odd in (b"", b"[]", b"{", b'{"method": "tools/call", "params": [1]}'):
            assert client.post("/mcp", content=odd, headers=headers).status_code == 400


@pytest.mark.parametrize("path", ["/mcp", "/mcp/codex", "/mcp/"])
def test_a_token_in_the_path_opens_where_that_is_chosen(ask, wire, path, caplog):
    caplog.set_level(logging.DEBUG)
    call = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    answer = ask("POST", f"/t/{PHONE}{path}", MODERN, body=call, issuer=False)
    assert answer.json()["result"]["structuredContent"]["principal"] == "phone"
    ask("POST", f"/t/{ALICE}{path}", MODERN, body=call)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("gateway")]
    assert ours
    assert not [line for line in ours if PHONE in line or ALICE in line]


@pytest.mark.parametrize(
    "path",
    [
        f"/t/{ALICE}/mcp",  # a token that is not for addresses
        "/t/carol/mcp",  # nor is one of an authorization server
        "/t/wrong/mcp",
        "/t//mcp",
        "/t/mcp",
        f"/t/{PHONE}",
        f"/t/{PHONE}/",
        f"/t/{PHONE}/metrics",
        f"/t/{PHONE}/sse",
        f"/t/{PHONE}/content",
        f"/t/{PHONE}/mcp/../metrics",
        f"/t/{PHONE}/t/{PHONE}/mcp",
        f"/t/{PHONE}/mcpx",
    ],
)
def test_any_other_path_with_a_token_does_not_exist(ask, path):
    refused = ask("POST", path)
    assert refused.status_code == 404
    assert PHONE not in refused.text
    assert "www-authenticate" not in refused.headers


def test_a_token_in_the_path_is_worth_nothing_where_none_is_needed():
    open_to_all = http_app(SampleService(), HttpSettings(), Identity("sample", "1.0"))
    with TestClient(open_to_all, base_url="http://127.0.0.1:8484") as client:
        assert client.post("/t/x/mcp").status_code == 404


def test_a_page_of_any_origin_may_call_if_that_is_chosen(ask, wire):
    page = {"Origin": "https://anywhere.example"}
    preflight = ask("OPTIONS", "/mcp", {**page, "Access-Control-Request-Headers": "mcp-name"}, allowed_origins=("*",))
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-headers"] == "mcp-name"
    call = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    answer = ask("POST", "/mcp", {**MODERN, **page, **bearer(ALICE)}, body=call, allowed_origins=("*",))
    assert answer.status_code == 200
    session = ask("POST", "/mcp", {**BOTH, **page, **bearer(ALICE)}, body=wire.initialize(), allowed_origins=("*",))
    refused = ask("POST", "/mcp", page, allowed_origins=("*",))
    metadata = ask("GET", METADATA, page, allowed_origins=("*",))
    for response in (preflight, answer, session, refused, metadata):
        assert response.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers
    exposed = refused.headers["access-control-expose-headers"]
    assert {"Mcp-Session-Id", "WWW-Authenticate", "Retry-After"} <= set(exposed.split(", "))
    assert (session.status_code, refused.status_code, metadata.status_code) == (200, 401, 200)


def test_pages_of_any_origin_need_a_token():
    with pytest.raises(ConfigError, match=r"http\.allowed_origins"):
        check_bind(HttpSettings(allowed_origins=("*",)), needs_token=False)
    check_bind(HttpSettings(allowed_origins=("*",)), needs_token=True)
