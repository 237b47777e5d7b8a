"""Headers that say who calls: from claims, for one upstream, on connections of one principal."""

import json
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWith
from gateway.errors import LoginFailed, UpstreamError
from gateway.upstream import RequestContext, Upstreams
from gateway.upstream.authorization.caller_headers import caller_headers
from tests.servers.identity_provider import IdentityProvider
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio

CANARY = "canary@example.com"


@dataclass
class TrustingServer(ProtectedServer):
    """An MCP server that takes X-User for whoever calls; its one tool says who that is."""

    server: AuthorizationServer = field(default_factory=AuthorizationServer)
    seen: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    """The method and the user of every message."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def routes(self) -> list[Route]:
        return [Route(path, self._serve, methods=["POST", "GET", "DELETE"]) for path in ("/mcp", "/moved", "/away")]

    async def _serve(self, request: Request) -> Response:
        user = request.headers.get("x-user")
        self.headers.append(dict(request.headers))
        if request.url.path == "/moved":
            return Response(status_code=307, headers={"location": "/mcp"})
        if request.url.path == "/away":
            return Response(status_code=307, headers={"location": self.says["elsewhere"]})
        if request.method != "POST":
            self.seen.append((request.method, user))
            return Response(status_code=405)
        message = json.loads(await request.body())
        self.seen.append((message.get("method", ""), user))
        if "id" not in message:
            return Response(status_code=202)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "trusting", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": str(user)}]},
            "ping": {},
        }
        known = results.get(message["method"])
        answer = {"error": {"code": -32601, "message": "no"}} if known is None else {"result": known}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **answer})


class Came:
    """The claims of those who have come."""

    def __init__(self, **claims: dict[str, Any]) -> None:
        self.claims = claims

    def with_(self, principal: str) -> CameWith | None:
        return CameWith("token", "house", self.claims[principal]) if principal in self.claims else None


@asynccontextmanager
async def opened(server: TrustingServer, came: Came, **given: Any) -> AsyncGenerator[Upstreams]:
    given = {"headers_from_claims": {"X-User": "email"}, **given}
    with anyio.fail_after(30):
        async with served(server):
            settings = {"x": UpstreamSettings.model_validate({"url": server.url, **given})}
            async with Upstreams(settings, on_change=lambda *_: None, came_with=came.with_) as upstreams:
                yield upstreams


async def call(upstreams: Upstreams, principal: str) -> str:
    caller = Caller(revision="2025-11-25", client_name="host", principal=principal, session=principal)
    params = {"name": "whoami", "arguments": {}}
    result = await upstreams["x"].request("tools/call", params, RequestContext(caller))
    return result["content"][0]["text"]


@pytest.mark.parametrize("client", ["gateway", "sdk"])
@pytest.mark.parametrize("session", ["shared", "host-session"])
async def test_every_message_of_a_principal_says_who_calls_and_no_other(client: str, session: str) -> None:
    server, came = TrustingServer(), Came(alice={"email": "alice@x"}, bob={"email": "bob@x"})
    async with opened(server, came, http_client=client, session=session) as upstreams:
        assert [await call(upstreams, each) for each in ("alice", "bob", "alice")] == ["alice@x", "bob@x", "alice@x"]
        came.claims["alice"] = {"email": "alice@y"}
        assert await call(upstreams, "alice") == "alice@y"
        # The operator came without a claim, so nothing was ever sent without one.
        assert {user for _, user in server.seen} == {"alice@x", "bob@x", "alice@y"}
        assert {"initialize", "tools/list", "tools/call"} <= {method for method, user in server.seen if user == "bob@x"}


async def test_whoever_comes_without_the_claim_is_refused_and_nothing_is_sent() -> None:
    server, came = TrustingServer(), Came(alice={"email": CANARY}, carol={"sub": "carol"})
    async with opened(server, came) as upstreams:
        for principal in ("carol", "nobody", "local"):
            with pytest.raises(UpstreamError, match="claim email") as refused:
                await call(upstreams, principal)
            assert "identity provider" in str(refused.value.failure.remedy)
        assert not server.headers
        assert await call(upstreams, "alice") == CANARY
        del came.claims["alice"]  # her token has expired
        with pytest.raises(UpstreamError, match="claim email") as refused:
            await call(upstreams, "alice")
        assert CANARY not in str(refused.value)


@pytest.mark.parametrize("client", ["gateway", "sdk"])
async def test_the_headers_go_wherever_the_server_itself_is_and_nowhere_else(
    client: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gateway")
    elsewhere, server, came = TrustingServer(), TrustingServer(), Came(alice={"email": CANARY})
    async with served(elsewhere), opened(server, came, http_client=client) as upstreams:
        settings = upstreams["x"].settings
        upstreams.apply({"x": settings.model_copy(update={"url": f"{server.origin}/moved"})})
        assert await call(upstreams, "alice") == CANARY
        server.says["elsewhere"] = elsewhere.url
        upstreams.apply({"x": settings.model_copy(update={"url": f"{server.origin}/away"})})
        with pytest.raises(UpstreamError):
            await call(upstreams, "alice")
    assert not elsewhere.headers
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("claim", "value", "sent"),
    [
        ("email", "a@b", "a@b"),
        ("principal", "ignored", "company:alice"),
        ("realm.roles", {"unused": 1}, None),
        ("groups", ["a", "b c"], "a,b c"),
        ("https://x.example/user", "u", "u"),
        ("level", 3, "3"),
        ("admin", True, "true"),
    ],
    ids=str,
)
def test_claims_become_text(claim: str, value: Any, sent: str | None) -> None:
    settings = UpstreamSettings(url="https://x", headers_from_claims={"X-A": claim})
    came = CameWith("token", "house", {claim: value, "realm": {"roles": ["deep"]}})
    given = caller_headers("x", settings, "company:alice", came) if sent else {"x-a": "deep"}
    assert given == {"x-a": sent or "deep"}


@pytest.mark.parametrize(
    "value",
    [
        "a\r\nX-Admin: true",
        "a\nb",
        "a\x00b",
        "tab\there",
        "müller",
        "日本",
        " a",
        "a ",
        "x" * 2_001,
        ["a,b"],
        ["a", ["b"]],
        ["a", None],
        ["a", ""],
        ["x" * 100] * 100,
        {"a": 1},
        1.5,
    ],
    ids=range(16),
)
def test_a_claim_that_could_be_taken_for_something_else_is_refused_unquoted(value: Any) -> None:
    settings = UpstreamSettings(url="https://x", headers_from_claims={"X-A": "c"})
    with pytest.raises(LoginFailed, match="cannot be sent as a header") as refused:
        caller_headers("x", settings, "alice", CameWith("token", "house", {"c": value}))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [None, "", []], ids=str)
def test_an_empty_claim_is_a_missing_one(value: Any) -> None:
    settings = UpstreamSettings(url="https://x", headers_from_claims={"X-A": "c"})
    with pytest.raises(LoginFailed, match="came without it"):
        caller_headers("x", settings, "alice", CameWith("token", "house", {"c": value}))


def test_claims_of_another_issuer_do_not_count() -> None:
    settings = UpstreamSettings(url="https://x", headers_from_claims={"X-A": "sub"}, claims_from="house")
    assert caller_headers("x", settings, "a", CameWith("token", "house", {"sub": "chief"})) == {"x-a": "chief"}
    with pytest.raises(LoginFailed, match="came without it") as refused:
        caller_headers("x", settings, "a", CameWith("token", "partners", {"sub": "chief"}))
    assert "issuer house" in (refused.value.remedy or "")


@asynccontextmanager
async def gateway(config: Path) -> AsyncGenerator[tuple[str, list[str]]]:
    """Run `serve --http`; gives its URL, and the lines that it has written."""
    command = [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0", "--config", str(config)]
    written: list[str] = []
    address = anyio.Event()
    async with await anyio.open_process(command, stderr=subprocess.PIPE) as process, anyio.create_task_group() as tasks:

        async def read() -> None:
            assert process.stderr is not None
            async for text in TextReceiveStream(process.stderr):
                written.append(text)
                if "/mcp (Streamable HTTP)" in "".join(written):
                    address.set()

        tasks.start_soon(read)
        with anyio.fail_after(60):
            await address.wait()
        line = next(each for each in "".join(written).splitlines() if "listening on" in each)
        yield line.partition("listening on ")[2].partition(" ")[0], written
        process.terminate()
        await process.wait()


async def said(url: str, token: str) -> str:
    """Call the tool as a host does, and return what it says."""
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as host,
    ):
        result = await host.call_tool("x__whoami", {})
    return "".join(getattr(each, "text", "") for each in result.content)


async def test_two_people_over_http_are_two_users_of_the_upstream(tmp_path: Path) -> None:
    server = TrustingServer()
    config = tmp_path / "mcp-gateway.toml"
    async with IdentityProvider().running() as provider, served(server):
        config.write_text(
            f"""
            [access.issuers.house]
            issuer = "{provider.issuer}"
            audience = ["gateway"]

            [access.tokens.robot]
            token = "a-token-of-the-robot"

            [upstreams.x]
            url = "{server.url}"
            headers_from_claims = {{ X-User = "email", X-Principal = "principal" }}
            """
        )
        people = {name: provider.token(sub=name, aud="gateway", email=f"{name}@x") for name in ("alice", "bob")}
        with anyio.fail_after(120):
            async with gateway(config) as (url, written):
                assert [await said(url, people[name]) for name in ("alice", "bob", "alice")] == [
                    "alice@x",
                    "bob@x",
                    "alice@x",
                ]
                assert "claim email" in await said(url, "a-token-of-the-robot")
    seen = {(each.get("x-user"), each.get("x-principal")) for each in server.headers}
    assert seen == {("alice@x", "house:alice"), ("bob@x", "house:bob")}
    assert not any("authorization" in each for each in server.headers)  # a host's token is for the gateway
    assert "@x" not in "".join(written)
