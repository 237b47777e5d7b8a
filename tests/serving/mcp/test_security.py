"""Who may talk to the gateway over HTTP."""

import socket

import anyio
import httpx2
import pytest
from starlette.testclient import TestClient

from gateway.config.http_settings import HttpSettings
from gateway.errors import ConfigError
from gateway.serving.access import Access
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from gateway.serving.mcp.security import allowed_by, check_bind
from tests.servers.downstream_service import SampleService

ROUTES = (
    ("GET", "/"),
    ("GET", "/nothing"),
    ("GET", "/mcp"),
    ("POST", "/mcp"),
    ("POST", "/mcp/codex"),
    ("DELETE", "/mcp"),
    ("GET", "/sse"),
    ("GET", "/sse/codex"),
    ("POST", "/messages"),
    ("POST", "/messages/codex"),
)


@pytest.fixture
def ask():
    """Ask the application, in process, with these settings; gives the response."""

    def ask(method, path, headers, **settings):
        options = HttpSettings(**settings)
        app = http_app(SampleService(), options, Identity("sample", "1.0"), profile_names=("codex",))
        with TestClient(app, base_url="http://127.0.0.1:8484") as client:
            return client.request(method, path, headers=headers)

    return ask


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_a_foreign_host(ask, method, path):
    response = ask(method, path, {"Host": "evil.example"})
    assert response.status_code == 421
    assert "allowed_hosts" in response.json()["error"]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_every_route_refuses_a_foreign_origin(ask, method, path, origin):
    response = ask(method, path, {"Origin": origin})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", "Bearer", "Basic c2VzYW1l", "sesame", "Bearer sesame2", "Bearer é"]
)
def test_every_route_wants_the_token_that_is_set(ask, method, path, given):
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    response = ask(method, path, headers, token="sesame")
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert "sesame" not in response.text


def test_a_host_that_sends_no_token_is_logged_and_a_browser_is_not(ask, caplog):
    ask("GET", "/", {}, token="sesame")
    assert "no token" not in caplog.text
    ask("POST", "/mcp", {}, token="sesame")
    assert "the gateway: no token in a request from testclient" in caplog.text


def test_the_right_token_opens_and_is_the_principal(ask):
    found = ask("GET", "/", {"Authorization": "Bearer sesame"}, token="sesame")
    assert found.status_code == 200
    assert found.text.endswith("you are token\n")
    assert ask("GET", "/", {"authorization": "bearer  sesame "}, token="sesame").status_code == 200
    assert ask("GET", "/", {"Authorization": "Bearer sésame".encode()}, token="sésame").status_code == 200


@pytest.mark.anyio
async def test_a_call_with_the_token_belongs_to_its_owner(served, wire):
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "who",
        "Authorization": "Bearer sesame",
    }
    message = wire.request(1, "tools/call", wire.modern({"name": "who"}))
    with anyio.fail_after(30):
        async with served(token="sesame") as gateway, httpx2.AsyncClient(headers=headers) as client:
            answer = (await client.post(f"{gateway.url}/mcp", json=message)).json()
    assert answer["result"]["structuredContent"]["principal"] == "token"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8484", True),
        ("localhost:1", True),
        ("LOCALHOST:80", True),
        ("[::1]:8484", True),
        ("[::1]", True),
        ("10.0.0.7:8484", True),
        ("gateway.example", True),
        ("gateway.example:99", True),
        ("strict.example:443", True),
        ("strict.example:444", False),
        ("strict.example", False),
        ("localhost.evil.example", False),
        ("localhost:80:80", False),
        ("localhost:80@evil.example", False),
        ("evil.example", False),
        ("::1", False),
        ("", False),
    ],
)
def test_a_host_is_ours_by_name_with_any_port_unless_one_is_given(value, named):
    allowed = allowed_by(HttpSettings(bind="10.0.0.7", allowed_hosts=("Gateway.example", "strict.example:443")))
    assert allowed.host(value) is named


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("http://localhost:6274", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:3000", True),
        ("https://app.example", True),
        ("https://app.example:8443", True),
        ("http://app.example", False),
        ("https://app.example.evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_an_origin_is_allowed_with_its_scheme(value, named):
    assert allowed_by(HttpSettings(allowed_origins=("https://app.example/",))).origin(value) is named


@pytest.mark.parametrize(
    ("value", "beyond_loopback"),
    [
        ("192.168.1.20:8484", True),  # of this machine, or of the router or container host in front of it
        ("192.168.1.20", True),
        ("[fd00::7]:8484", True),
        ("[fd00::7]", True),
        (socket.gethostname().upper(), True),
        (f"{socket.gethostname().partition('.')[0]}.local:8484", True),
        ("192.168.1.20.evil.example:8484", False),
        ("192.168.1.20:8484:1", False),
        ("192.168.1.20:", False),
        ("192.168.1.20:x", False),
        ("192.168.1", False),
        ("0300.1.1.1", False),
        ("[192.168.1.20]", False),
        ("[fd00::7", False),
        ("[fd00::7]8484", False),
        ("fd00::7", False),
        ("localhost.local", False),
        ("evil.local", False),
        ("", False),
    ],
)
def test_beyond_loopback_any_address_and_this_machines_name_are_allowed_hosts(value, beyond_loopback):
    assert allowed_by(HttpSettings(bind="0.0.0.0")).host(value) is beyond_loopback
    assert allowed_by(HttpSettings(bind="::")).host(value) is beyond_loopback
    assert not allowed_by(HttpSettings()).host(value)


@pytest.mark.parametrize(
    ("host", "status"), [("192.168.1.20:8484", 200), ("[fd00::7]:8484", 200), ("evil.example", 421)]
)
def test_another_machine_reaches_mcp_by_the_address(host, status):
    settings = HttpSettings(bind="0.0.0.0", token="sesame")
    app = http_app(SampleService(), settings, Identity("sample", "1.0"))
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer sesame", "Host": host}
    with TestClient(app, base_url="http://127.0.0.1:8484") as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        assert client.post("/mcp", headers=headers, json=message).status_code == status


def test_each_refused_host_is_logged_once_and_not_without_end(caplog):
    app = http_app(SampleService(), HttpSettings(), Identity("sample", "1.0"))
    with TestClient(app, base_url="http://127.0.0.1:8484") as client:
        for number in (*range(3), *range(3), *range(200)):
            assert client.get("/", headers={"Host": f"h{number}.example"}).status_code == 421
        client.get("/", headers={"Host": "a\u0007" + "b" * 5_000})
    said = [record.getMessage() for record in caplog.records if "refused a request with the Host" in record.message]
    assert len(said) == 20
    assert said[0].endswith("the Host h0.example: list it in [http] allowed_hosts if it is the gateway's")
    assert said[-1].endswith("(further ones are not logged)")


def test_an_ipv6_address_to_bind_to_is_a_host_in_brackets():
    assert allowed_by(HttpSettings(bind="fd00::7")).host("[fd00::7]:8484")


def test_a_page_of_an_allowed_origin_may_read_the_answers(ask):
    origin = {"Origin": "http://localhost:6274"}
    wanted = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-protocol-version",
    }
    preflight = ask("OPTIONS", "/mcp", wanted, token="sesame")
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert preflight.headers["access-control-allow-headers"] == "authorization,mcp-protocol-version"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    refused = ask("GET", "/", origin, token="sesame")
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "http://localhost:6274")
    page = ask("GET", "/", origin)
    assert "Mcp-Session-Id" in page.headers["access-control-expose-headers"]
    assert page.headers["vary"] == "Origin"


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.0.0.9", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(bind):
    check_bind(HttpSettings(bind=bind), needs_token=False)


@pytest.mark.parametrize(
    ("proxies", "public_url", "where"),
    [
        ((), "https://tools.example.com", "gateway.public_url"),
        ((), "http://192.168.1.4:8080/tools", "gateway.public_url"),
        (("127.0.0.1",), None, "http.trusted_proxies"),
        ((), "http://127.0.0.1:8484", None),
        ((), "http://localhost:8484", None),
    ],
)
def test_what_a_proxy_passes_on_needs_a_token(proxies, public_url, where):
    http = HttpSettings(trusted_proxies=proxies)
    check_bind(http, needs_token=True, public_url=public_url)
    if where is None:
        check_bind(http, needs_token=False, public_url=public_url)
        return
    with pytest.raises(ConfigError, match="a token is needed") as caught:
        check_bind(http, needs_token=False, public_url=public_url)
    assert caught.value.where == where


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.4", "gateway.example", "127.0.0.1.evil.example", ""])
@pytest.mark.parametrize("token", [None, ""])
def test_any_other_address_needs_a_token(bind, token):
    http = HttpSettings(bind=bind, token=token)
    with pytest.raises(ConfigError) as caught:
        check_bind(http, needs_token=Access(http).needs_token)
    assert caught.value.where == "http.bind"
    check_bind(http, needs_token=Access(HttpSettings(bind=bind, token="sesame")).needs_token)


@pytest.mark.anyio
async def test_serving_beyond_loopback_without_a_token_does_not_begin():
    settings = HttpSettings(bind="0.0.0.0", port=0)
    app = http_app(SampleService(), settings, Identity("sample", "1.0"))
    with anyio.fail_after(10), pytest.raises(ConfigError):
        await serve_http(app, settings)


@pytest.mark.parametrize(
    ("bind", "token", "warned"),
    [("0.0.0.0", "...", True), ("0.0.0.0", "0123456789abcdef", False), ("127.0.0.1", "...", False)],
)
def test_a_token_that_can_be_guessed_is_warned_about(bind, token, warned, caplog):
    check_bind(HttpSettings(bind=bind, token=token), needs_token=True)
    assert ("only 3 characters" in caplog.text) is warned
