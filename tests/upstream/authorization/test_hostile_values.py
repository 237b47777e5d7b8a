"""Values that pass one check and break the next one: a login is refused in words, whatever a server says."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import LoginFailed
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import TokenVault
from gateway.upstream.authorization.vault import FILE_NAME, SealedVault, SealingKey
from tests.upstream.authorization.conftest import REDIRECT, Person
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio

HALF = "HALF-OF-A-PAIR"
"""Written as an escape of half a surrogate pair, which Python's own writer of JSON would refuse."""
URLS = ["http://[", "http://[::1", "https://exa\u2100mple.com/x", "http://127.0.0.1:99999/", "http://x/" + "y" * 5_000]


@dataclass
class RawServer(AuthorizationServer):
    """Says `registers` when it registers a client, and writes HALF as half a surrogate pair."""

    registers: dict[str, Any] = field(default_factory=dict[str, Any])

    async def _metadata(self, request: Request) -> Response:
        return _raw(await super()._metadata(request))

    async def _register(self, request: Request) -> Response:
        asked = await request.json()
        said = {"redirect_uris": asked["redirect_uris"], "token_endpoint_auth_method": "none", "client_id": "c"}
        self.accepted["c"] = ""
        return _raw(JSONResponse({**said, **self.registers}, 201))


class RawUpstream(ProtectedServer):
    """Writes HALF as half a surrogate pair."""

    async def _metadata(self, request: Request) -> Response:
        return _raw(await super()._metadata(request))


def _raw(answer: Response) -> Response:
    body = bytes(answer.body).replace(HALF.encode(), b"\\ud800")
    return Response(body, answer.status_code, media_type="application/json")


async def _refusal(upstream: ProtectedServer, vault: TokenVault) -> str:
    """Return why a login is refused; an empty string if it is given, and ended again."""
    logins = UpstreamLogins(vault, lambda _: UpstreamSettings(url=upstream.url))
    person = Person(logins, upstream)
    try:
        pending = await logins.begin("x", "alice", REDIRECT)
        if httpx2.URL(pending.url).path == "/authorize":
            await logins.complete(pending.state, await person.browse(pending.url), principal="alice")
            await person.ask()
            await logins.forget("x", "alice")
    except LoginFailed as failed:
        return failed.message
    return ""


UPSTREAM: list[dict[str, Any]] = [
    *({"authorization_servers": [url]} for url in (*URLS, HALF)),
    *({"resource": url} for url in (*URLS, f"http://127.0.0.1/{HALF}")),
    {"scopes_supported": [HALF]},
    {"scopes_supported": ["x" * 100_000]},
    {"scopes_supported": [f"{n}:{'%' * 190}" for n in range(1_000)]},
]
SERVER: list[dict[str, Any]] = [
    *({name: url} for name in ("issuer", "token_endpoint", "registration_endpoint") for url in (*URLS, HALF)),
    *({name: url} for name in ("authorization_endpoint", "revocation_endpoint") for url in (*URLS, HALF)),
]
REGISTERED: list[dict[str, Any]] = [
    {"client_id": HALF},
    {"client_id": "c" * 100_000},
    *({"client_secret": secret, "client_secret_expires_at": 0} for secret in (HALF, "s" * 100_000)),
    {"client_secret": "s", "client_secret_expires_at": 10**400},
]


@pytest.mark.parametrize(
    ("says", "of_server", "registers"),
    [
        *((says, {}, {}) for says in UPSTREAM),
        *(({}, says, {}) for says in SERVER),
        *(({}, {}, says) for says in REGISTERED),
    ],
    ids=lambda value: str(value)[:60].encode("ascii", "replace").decode(),
)
async def test_a_login_is_given_or_refused_in_words(
    tmp_path: Path, says: dict[str, Any], of_server: dict[str, Any], registers: dict[str, Any]
) -> None:
    server = RawServer(says=of_server, registers=registers)
    upstream = RawUpstream(server, says=says)
    async with served(server, upstream):
        refusal = await _refusal(upstream, SealedVault(tmp_path / FILE_NAME, SealingKey("a key for these tests")))
    assert refusal == "" or refusal.isprintable()
    assert len(refusal) < 700
