"""Logins to upstreams on loopback, with a browser that follows redirects."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import httpx2
import pytest

from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.system.tls import ssl_context
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import Credentials, LoginKey, Tokens
from gateway.upstream.authorization.ports import Logins as AnyLogins
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer

REDIRECT = "http://127.0.0.1:9999/callback"


class MemoryVault:
    """Tokens in memory; `fails` is raised instead."""

    def __init__(self) -> None:
        self.kept: dict[LoginKey, Tokens] = {}
        self.fails: Exception | None = None

    def expire_in(self, seconds: float) -> None:
        """Let all access tokens expire in some seconds, for however long they were issued."""
        for key, tokens in self.kept.items():
            self.kept[key] = tokens.model_copy(update={"expires": time.time() + seconds})

    async def get(self, key: LoginKey) -> Tokens | None:
        self._check()
        return self.kept.get(key)

    async def put(self, key: LoginKey, tokens: Tokens) -> None:
        self._check()
        self.kept[key] = tokens

    async def delete(self, key: LoginKey) -> None:
        self._check()
        self.kept.pop(key, None)

    async def keys(self, principal: str | None = None) -> Sequence[LoginKey]:
        self._check()
        return [key for key in self.kept if principal in (None, key.principal)]

    def alone(self, principal: str, upstream: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails


class Person:
    """Somebody with a browser, and with requests to the upstream `x`."""

    def __init__(self, logins: AnyLogins, upstream: ProtectedServer, name: str = "alice") -> None:
        self.logins = logins
        self.upstream = upstream
        self.name = name

    async def browse(self, url: str) -> dict[str, str]:
        """Open the page: the parameters with which the browser comes back."""
        async with httpx2.AsyncClient(trust_env=False, verify=ssl_context()) as browser:
            answer = await browser.get(url)
        assert answer.is_redirect, answer.text
        location = httpx2.URL(answer.headers["location"])
        assert str(location).startswith(REDIRECT)
        return dict(location.params)

    async def log_in(self) -> LoginKey:
        pending = await self.logins.begin("x", self.name, REDIRECT)
        return await self.logins.complete(pending.state, await self.browse(pending.url), principal=self.name)

    async def ask(self, method: str = "tools/list") -> int:
        """Send a request as a transport does; its status."""
        token = await self.logins.token("x", self.name)
        while True:
            answer = await self._sent(method, token)
            if answer.status_code not in (401, 403):
                return answer.status_code
            challenges = answer.headers.get_list("www-authenticate")
            another = await self.logins.challenged("x", self.name, token, answer.status_code, challenges)
            if another is None or another == token:
                return answer.status_code
            token = another

    async def _sent(self, method: str, token: Credentials | None) -> httpx2.Response:
        headers = {} if token is None else token.headers("POST", self.upstream.url)
        async with httpx2.AsyncClient(trust_env=False, verify=ssl_context()) as client:
            return await client.post(
                self.upstream.url, json={"jsonrpc": "2.0", "id": 1, "method": method}, headers=headers
            )


@pytest.fixture
def vault() -> MemoryVault:
    return MemoryVault()


@pytest.fixture
def authorization() -> AuthorizationServer:
    return AuthorizationServer()


@pytest.fixture
def upstream(authorization: AuthorizationServer) -> ProtectedServer:
    return ProtectedServer(authorization)


Logins = Callable[..., UpstreamLogins]


@pytest.fixture
def logins(vault: MemoryVault, upstream: ProtectedServer) -> Logins:
    """The logins to `upstream` (or `of`) under the name `x`, with settings of `auth`."""

    def made(public_url: str | None = None, of: ProtectedServer = upstream, **auth: Any) -> UpstreamLogins:
        def settings(name: str) -> UpstreamSettings | None:
            given = UpstreamAuthSettings(**auth) if auth else None
            return UpstreamSettings(url=of.url, auth=given) if name == "x" else None

        return UpstreamLogins(vault, settings, public_url=lambda: public_url)

    return made
