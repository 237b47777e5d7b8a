"""Hosts that can send no header: the MCP SDK's OAuth client, which registers itself and has a person approve."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl


class Memory:
    """What a host keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def host_of(person: str, address: str, memory: Memory, approve: Callable[[str, str], str], redirect_uri: str) -> Any:
    """Return the SDK's OAuth client as the `auth` of an HTTP client.

    `approve` gets the address of the page to approve on and the person who is to do it, and returns the address that
    the person's browser came back to.
    """
    sent: list[str] = []

    async def redirect(url: str) -> None:
        sent.append(await anyio.to_thread.run_sync(approve, url, person))

    async def callback() -> AuthorizationCodeResult:
        given = dict(parse_qsl(urlsplit(sent.pop()).query))
        return AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given["iss"])

    metadata = OAuthClientMetadata(client_name=f"Host of {person}", redirect_uris=[AnyUrl(redirect_uri)])
    return OAuthClientProvider(address, metadata, memory, redirect, callback)
