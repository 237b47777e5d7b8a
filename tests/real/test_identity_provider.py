"""A certified identity provider as the issuer of tokens: people log in with the official SDK's OAuth client."""

import asyncio
import html
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from gateway.config.access_settings import AccessSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.issuer_settings import IssuerSettings
from gateway.serving.access import Access
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from tests.servers.downstream_service import SampleService

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parent / "providers" / "oidc_provider.mjs"
CALLBACK = "http://127.0.0.1:1/callback"
"""Nobody listens there: whoever logs in reads the code from the address."""

HOST = OAuthClientInformationFull(client_id="host", redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none")
"""A host that the provider knows. One that registers itself can ask for no scope later than those of its beginning."""


@asynccontextmanager
async def provider(algorithm: str) -> AsyncGenerator[str]:
    """Run the identity provider; gives its URL."""
    node = shutil.which("node")
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node, SCRIPT, algorithm, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("http"), "the identity provider did not start"
        yield line
    finally:
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def gateway(issuer: str, **settings: Any) -> AsyncGenerator[str]:
    """Serve the sample service to whoever has a token of the issuer; gives the endpoint's URL."""
    http = HttpSettings(port=0)
    access = Access(http)
    app = http_app(SampleService(), http, Identity("sample", "1.0"), access=access)
    async with anyio.create_task_group() as tasks:
        bound = asyncio.Queue[int]()
        tasks.start_soon(partial(serve_http, app, http, on_bound=bound.put_nowait))
        url = f"http://127.0.0.1:{await bound.get()}/mcp"
        house = IssuerSettings(issuer=issuer, audience=(url,), required_scopes=("mcp",), **settings)
        access.reconfigure(AccessSettings(issuers={"house": house}, scopes={"sample__echo": ("names",)}))
        yield url
        tasks.cancel_scope.cancel()


class Person:
    """Logs in and allows what is asked for, as a person does in a browser; remembers what that was.

    The host registers itself, or is the `client` that the provider knows.
    """

    def __init__(self, name: str, client: OAuthClientInformationFull | None = None) -> None:
        self.name = name
        self.asked: list[set[str]] = []
        self.tokens: OAuthToken | None = None
        self._client = client
        self._answer = AuthorizationCodeResult(code="")

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def open(self, url: str) -> None:
        scopes = parse_qs(urlsplit(url).query)["scope"][0].split()
        self.asked.append(set(scopes) - {"offline_access"})  # which is for refresh tokens
        async with httpx2.AsyncClient(trust_env=False) as browser:
            page = await browser.get(url)
            while not (address := page.headers.get("location", "")).startswith(CALLBACK):
                page = await (browser.get(page.url.join(address)) if address else self._submit(browser, page))
        found = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self._answer = AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async def _submit(self, browser: httpx2.AsyncClient, page: httpx2.Response) -> httpx2.Response:
        assert page.status_code == 200, page.text
        action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
        prompt = re.search(r'name="prompt" value="([^"]+)"', page.text)
        assert action is not None
        assert prompt is not None
        form = {"prompt": prompt[1], "login": self.name, "password": "any"}
        return await browser.post(page.url.join(html.unescape(action[1])), data=form)

    async def answer(self) -> AuthorizationCodeResult:
        return self._answer

    @asynccontextmanager
    async def connected(self, url: str) -> AsyncGenerator[Client]:
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(CALLBACK)], client_name="A host")
        login = OAuthClientProvider(url, metadata, self, self.open, self.answer)
        async with (
            httpx2.AsyncClient(auth=login, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), cache=None) as client,
        ):
            yield client


async def principal(client: Client) -> str:
    result: Any = await client.call_tool("who", {})
    return result.structured_content["principal"]


@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "EdDSA"])
async def test_two_people_log_in_and_one_is_asked_for_another_scope(node_modules: Path, algorithm: str):
    alice, bob = Person("alice", HOST), Person("bob")
    with anyio.fail_after(120):
        async with provider(algorithm) as issuer, gateway(issuer) as url:
            async with alice.connected(url) as hers, bob.connected(url) as his:
                assert (await principal(hers), await principal(his)) == ("house:alice", "house:bob")
                assert alice.asked == [{"mcp"}]
                await hers.call_tool("echo", {})
                assert alice.asked == [{"mcp"}, {"mcp", "names"}]
                assert await principal(hers) == "house:alice"
                assert bob.asked == [{"mcp"}]
            assert alice.tokens is not None
            async with httpx2.AsyncClient(trust_env=False) as http:
                token = alice.tokens.access_token
                changed = f"{token[:-6]}{'AAAAAA' if token[-6:] != 'AAAAAA' else 'BBBBBB'}"
                for given, status in ((token, 200), (changed, 401)):
                    headers = {"Authorization": f"Bearer {given}"}
                    assert (await http.get(url.removesuffix("mcp"), headers=headers)).status_code == status


async def test_the_provider_is_asked_about_tokens_that_say_nothing(node_modules: Path):
    alice = Person("alice")
    with anyio.fail_after(120):
        async with provider("opaque") as issuer:
            client = {"client_id": "gateway", "client_secret": "the-secret-of-the-gateway"}
            async with (
                gateway(issuer, introspection_url=f"{issuer}/token/introspection", **client) as url,
                alice.connected(url) as hers,
            ):
                assert await principal(hers) == "house:alice"
                assert alice.tokens is not None
                assert "." not in alice.tokens.access_token
