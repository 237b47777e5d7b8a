"""An HTTP API that wants tokens, or to be told who calls, as any upstream at a URL."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.config.schema import Settings
from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWith
from gateway.errors import UpstreamError
from gateway.runtime import run_gateway
from gateway.upstream import RequestContext, Upstreams
from tests.servers.http_api import Api, running_api
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio


class ClosedApi(Api):
    """Wants a bearer token for everything but its document."""

    async def _any(self, request: Request) -> Response:
        if not request.headers.get("authorization", "").startswith("Bearer "):
            self.asked.append(request)
            return JSONResponse({"error": "who are you?"}, 401, headers={"www-authenticate": "Bearer"})
        return await super()._any(request)


@pytest.fixture
async def closed() -> AsyncIterator[Api]:
    async with running_api(ClosedApi()) as api:
        yield api


async def called(upstreams: Upstreams, tool: str, principal: str = "local", **arguments: Any) -> dict[str, Any]:
    caller = Caller(revision="2026-07-28", client_name="host", principal=principal)
    params = {"name": tool, "arguments": arguments}
    return await upstreams["pets"].request("tools/call", params, RequestContext(caller))


async def test_the_gateway_gets_a_token_for_itself(closed: Api) -> None:
    authorization = AuthorizationServer()
    authorization.accepted = {"us": "secret"}
    with anyio.fail_after(60):
        async with served(authorization, ProtectedServer(authorization)):
            auth = UpstreamAuthSettings(
                grant="client_credentials", issuer=authorization.origin, client_id="us", client_secret="secret"
            )
            pets = UpstreamSettings(openapi=f"{closed.url}/openapi.json", auth=auth)
            async with run_gateway(Settings(upstreams={"pets": pets})) as gateway:
                assert await gateway.upstreams["pets"].ready(30), gateway.upstreams["pets"].cause
                result = await called(gateway.upstreams, "getPet", petId=1)
    assert result["structuredContent"]["id"] == 1
    assert len(authorization.of("/token")) == 1


async def test_an_api_that_wants_a_token_says_so_to_the_model(closed: Api) -> None:
    pets = UpstreamSettings(openapi=f"{closed.url}/openapi.json", headers={"X-Key": "something-else"})
    with anyio.fail_after(60):
        async with Upstreams({"pets": pets}, on_change=lambda *_: None) as upstreams:
            assert await upstreams.settled(30)
            result = await called(upstreams, "getPet", petId=1)
    assert result["isError"]
    assert result["content"][0]["text"].startswith("HTTP 401 Unauthorized (")
    assert "who are you?" in result["content"][0]["text"]


async def test_an_api_is_told_who_calls() -> None:
    claims = {name: CameWith("t", "house", {"email": f"{name}@example.com"}) for name in ("alice", "bob")}
    async with running_api() as api:
        pets = UpstreamSettings(openapi=f"{api.url}/openapi.json", headers_from_claims={"X-User": "email"})
        with anyio.fail_after(60):
            async with Upstreams({"pets": pets}, on_change=lambda *_: None, came_with=claims.get) as upstreams:
                for name in ("alice", "bob", "alice"):
                    await called(upstreams, "getPet", name, petId=1)
                    assert api.last.headers["x-user"] == f"{name}@example.com"
                before = len(api.asked)
                with pytest.raises(UpstreamError):
                    await called(upstreams, "getPet", "eve", petId=1)
                assert not any(one.url.path.endswith("/1") for one in api.asked[before:])
