"""The cookie that a browser is recognised by, as browsers and proxies see it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from gateway.serving.logins.routes import login_routes
from gateway.upstream.authorization.login_desk import LoginDesk, Offer
from gateway.upstream.authorization.ports import LoginKey, PendingLogin

pytestmark = pytest.mark.anyio


class Logins:
    """Begins and completes whatever is asked."""

    def __init__(self) -> None:
        self.named: Callable[[str], str] = str

    async def begin(
        self, upstream: str, principal: str, redirect_uri: str, *, scopes: Sequence[str] = ()
    ) -> PendingLogin:
        return PendingLogin("https://login.example/?state=state", "state")

    async def complete(self, state: str, query: Mapping[str, str], *, principal: str | None = None) -> LoginKey:
        return LoginKey(principal or "", "notes", "https://login.example")


async def offered(base: str) -> tuple[httpx2.AsyncClient, Offer]:
    """A login, and a client that sends no cookies by itself."""
    logins: Any = Logins()
    desk = LoginDesk(logins, lambda upstream, principal, issuer: None)

    async def place(_: str) -> str:
        return base

    desk.serve_at(place)
    offer = await desk.offer("notes", "alice")
    assert offer is not None
    app = Starlette(routes=login_routes(desk, asks=False))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://behind-a-proxy"), offer


async def test_with_tls_no_other_host_of_the_domain_can_set_the_cookie() -> None:
    client, offer = await offered("https://gateway.example/base")
    async with client:
        begun = await client.get(f"/oauth/login/{offer.ticket}")
        cookie = begun.headers["set-cookie"]
        name, secret = cookie.partition(";")[0].split("=")
        assert name == "__Host-mcp-gateway-login"
        assert "Secure" in cookie
        assert "Path=/;" in cookie
        assert "Domain" not in cookie
        client.cookies.clear()
        back = "/oauth/callback?state=state&code=x"
        assert (await client.get(back, headers={"cookie": f"mcp-gateway-login={secret}"})).status_code == 400
        await client.get(f"/oauth/login/{offer.ticket}", headers={"cookie": f"{name}={secret}"})
        client.cookies.clear()
        assert (await client.get(back, headers={"cookie": f"{name}={secret}"})).status_code == 200


async def test_without_tls_the_cookie_goes_to_the_pages_of_logins_alone() -> None:
    client, offer = await offered("http://127.0.0.1:9")
    async with client:
        cookie = (await client.get(f"/oauth/login/{offer.ticket}")).headers["set-cookie"]
        assert cookie.startswith("mcp-gateway-login=")
        assert "Path=/oauth;" in cookie
