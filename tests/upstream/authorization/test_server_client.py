"""Requests to authorization servers: only to permitted addresses, within bounds, and never elsewhere."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.upstream.authorization.refusals import Refused
from gateway.upstream.authorization.server_client import MOST_BYTES, ServerClient
from tests.upstream.authorization.oauth_servers import AuthorizationServer, served

pytestmark = pytest.mark.anyio


def resolver(**addresses: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [addresses[host.replace(".", "_")]]

    return resolve


@pytest.mark.parametrize("address", ["10.1.2.3", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "0.0.0.0"])
async def test_a_public_upstream_leads_to_no_private_address(address: str) -> None:
    client = ServerClient(
        ["https://x.example/mcp"], resolver(x_example="93.184.215.14", login_example=address, evil_example=address)
    )
    with pytest.raises(Refused, match="not public"):
        await client.get("https://login.example/")


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0", "fe80::1"])
async def test_an_upstream_on_a_private_network_leads_to_neither_this_machine_nor_to_odd_addresses(
    address: str,
) -> None:
    client = ServerClient(["https://x.example/mcp"], resolver(x_example="10.1.2.3", login_example=address))
    with pytest.raises(Refused, match="not public"):
        await client.get("https://login.example/")


async def test_the_address_that_was_checked_is_the_one_that_is_used(authorization: AuthorizationServer) -> None:
    """A second lookup may give another address (DNS rebinding), so there is none."""
    lookups: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["10.0.0.1"]

    async with served(authorization):
        url = authorization.origin.replace("127.0.0.1", "localhost")
        answer = await ServerClient([url], resolve).get(f"{url}/.well-known/oauth-authorization-server")
        assert (answer.status, lookups) == (200, ["localhost"])


class Odd(AuthorizationServer):
    """A server with odd answers."""

    def routes(self) -> list[Route]:
        async def redirect(request: Request) -> Response:
            return RedirectResponse("http://127.0.0.1:1/")

        async def enormous(request: Request) -> Response:
            async def chunks() -> AsyncIterator[bytes]:
                for _ in range(100):
                    yield b" " * 65_536

            return StreamingResponse(chunks())

        async def deep(request: Request) -> Response:
            return Response(b"[" * 100_000)

        return [Route("/redirect", redirect), Route("/enormous", enormous), Route("/deep", deep)]


async def test_answers_are_bounded_and_redirects_are_not_followed() -> None:
    odd = Odd()
    async with served(odd):
        client = ServerClient([odd.origin])
        assert (await client.get(f"{odd.origin}/redirect")).status == 307
        assert (await client.get(f"{odd.origin}/deep")).json is None
        with pytest.raises(Refused, match=f"{MOST_BYTES:,} bytes"):
            await client.get(f"{odd.origin}/enormous")


async def test_a_server_that_is_not_there_is_away_for_a_while() -> None:
    with pytest.raises(Refused, match="cannot be reached") as refused:
        await ServerClient(["http://127.0.0.1:9"]).get("http://127.0.0.1:9/")
    assert refused.value.is_passing


@pytest.mark.parametrize(
    "url", ["http://login.example/", "https://user:pass@login.example/", "https://login.example/#x", "gopher://x", "::"]
)
def test_a_url_without_tls_or_with_a_user_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        ServerClient(["https://x.example/mcp"]).checked(url)
