"""Tokens on their way: every HTTP transport sends them, gets others where it must, and to nobody else."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.errors import FailureCode, GatewayError, LoginRequired, UpstreamError
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import Credentials
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.connection import connect
from gateway.upstream.connection.deadlines import Deadline
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.connection.session import Session
from gateway.upstream.transports.failures import Subject, failure_of
from gateway.upstream.transports.redaction import Secrets
from tests.upstream.authorization.conftest import Logins, Person
from tests.upstream.authorization.oauth_servers import RESOURCE, AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)

Connected = Callable[..., AbstractAsyncContextManager[Session]]


class AlicesTokens:
    """What a connection of alice's sends."""

    def __init__(self, logins: UpstreamLogins) -> None:
        self._logins = logins

    async def token(self) -> Credentials | None:
        return await self._logins.token("x", "alice")

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        return await self._logins.challenged("x", "alice", sent, status, www_authenticate)


@pytest.fixture(params=["gateway", "sdk"])
def connected(request: pytest.FixtureRequest, upstream: ProtectedServer) -> Connected:
    """A session with `upstream`, over either client of Streamable HTTP."""

    @asynccontextmanager
    async def opened(logins: UpstreamLogins, **given: Any) -> AsyncGenerator[Session]:
        settings = UpstreamSettings(url=upstream.url, http_client=request.param, **given)
        subject = Subject("x", settings, Secrets(settings), AlicesTokens(logins))
        host = HostRequests(1)
        async with connect("http", subject, ClientIdentity(), host, ignored, lambda _: None) as session:
            yield session

    return opened


async def ignored(method: str, params: Any) -> None:
    """Nothing that the upstream sends by itself matters here."""


async def opened(session: Session) -> dict[str, Any]:
    await session.open("handshake")
    return await session.request("tools/list", {}, Deadline(LIMITS))


async def test_a_session_is_opened_with_the_token(
    logins: Logins, connected: Connected, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        engine = logins()
        await Person(engine, upstream).log_in()
        upstream.authorizations.clear()
        async with connected(engine) as session:
            assert [tool["name"] for tool in (await opened(session))["tools"]] == ["look"]
        assert len(set(upstream.authorizations)) == 1
        assert None not in upstream.authorizations


async def test_without_a_login_a_call_says_which_command_logs_in(
    logins: Logins, connected: Connected, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        error: GatewayError | None = None
        async with connected(logins()) as session:
            try:
                await opened(session)
            except GatewayError as raised:
                error = raised
        assert isinstance(error, UpstreamError)
        assert error.failure.code is FailureCode.LOGIN_REQUIRED
        assert error.failure.remedy == "mcp-gateway login x"
        settings = UpstreamSettings(url=upstream.url)
        failure = failure_of(error, Subject("x", settings, Secrets(settings)))
        assert isinstance(failure.error("x"), LoginRequired)


async def test_a_token_that_is_refused_during_a_session_is_replaced(
    logins: Logins, connected: Connected, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        engine = logins(grant="client_credentials", client_id="us", client_secret="secret")
        authorization.accepted = {"us": "secret"}
        upstream.needs = {"tools/call": ("write",)}
        async with connected(engine) as session:
            await opened(session)
            result = await session.request("tools/call", {"name": "look", "arguments": {}}, Deadline(LIMITS))
        assert result["content"][0]["text"] == "seen"
        assert authorization.of("/token")[-1]["scope"] == "write"


async def test_attempts_with_other_tokens_are_bounded(
    connected: Connected, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    class Endless:
        """Always has another token."""

        def __init__(self) -> None:
            self.given = 0

        async def token(self, upstream: str, principal: str) -> Credentials:
            return Credentials("0")

        async def challenged(self, *asked: Any) -> Credentials:
            self.given += 1
            return Credentials(str(self.given))

    upstream.refuses = 401, ""
    endless: Any = Endless()
    async with served(authorization, upstream):
        error: GatewayError | None = None
        async with connected(endless) as session:
            try:
                await session.open("handshake")
            except GatewayError as raised:
                error = raised
        assert isinstance(error, UpstreamError)
        assert error.failure.code is FailureCode.UNAUTHORIZED
        # The last message may have been tried as one of another revision as well.
        assert len(upstream.authorizations) <= 6


async def test_the_older_transport_sends_the_token_with_its_stream_and_its_messages(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    upstream.at = f"{RESOURCE}/sse"
    async with served(authorization, upstream):
        engine = logins(grant="client_credentials", client_id="us", client_secret="secret")
        authorization.accepted = {"us": "secret"}
        upstream.needs = {"tools/list": ("read",)}
        settings = UpstreamSettings(url=f"{upstream.origin}/sse")
        subject = Subject("x", settings, Secrets(settings), AlicesTokens(engine))
        async with connect("sse", subject, ClientIdentity(), HostRequests(1), ignored, lambda _: None) as session:
            assert [tool["name"] for tool in (await opened(session))["tools"]] == ["look"]
        assert authorization.of("/token")[-1]["scope"] == "read"
