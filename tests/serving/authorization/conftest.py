"""A gateway with its authorization server in this process, and hosts and browsers before it."""

import base64
import hashlib
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from gateway.config.schema import Settings
from gateway.content.links.base_url import Bases
from gateway.serving.access import Access
from gateway.serving.authorization.authorization_server import AuthorizationServer
from gateway.serving.authorization.passphrases import hash_passphrase
from gateway.serving.authorization.sql_state import SqlState
from gateway.serving.authorization.sqlite_database import SqliteDatabase
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app
from tests.servers.downstream_service import SampleService

BASE = "https://tools.example.com"
REDIRECT = "https://host.example/callback"
PASSPHRASE = "correct horse battery"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}},
}


@cache
def passphrase_hash() -> str:
    """Of `PASSPHRASE`: hashing is slow on purpose."""
    return hash_passphrase(PASSPHRASE)


def settings_of(
    server: dict[str, Any], people: dict[str, Any], gateway: dict[str, Any], tables: dict[str, Any] | None = None
) -> Settings:
    return Settings.model_validate(
        {
            "gateway": {"name": "The gateway", "public_url": BASE, **gateway},
            "access": {
                "people": people,
                "authorization_server": server,
                "scopes": {"github__delete_*": ["github.admin"]},
            },
            "upstreams": {
                "docs": {"command": "docs"},
                "github": {"command": "github"},
                "old": {"command": "old", "enabled": False},
            },
            **(tables or {}),
        }
    )


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Gateway:
    """The gateway, with the hosts that use it."""

    def __init__(
        self,
        server: AuthorizationServer,
        access: Access,
        state: Path,
        database: SqliteDatabase,
        client: TestClient,
        clock: Clock,
        peer: str,
    ) -> None:
        self.peer = peer
        """The address that requests come from."""
        self.server = server
        self.access = access
        self.state = state
        """The file of the database."""
        self.database = database
        self.http = client
        self.clock = clock

    def browser(self, **headers: str) -> "Browser":
        return Browser(self.http, self.peer, headers)

    def register(self, *redirect_uris: str, **metadata: Any) -> dict[str, Any]:
        given = {
            "client_name": "Some Host",
            "redirect_uris": list(redirect_uris) or [REDIRECT],
            "token_endpoint_auth_method": "none",
            **metadata,
        }
        answer = self.http.post("/register", json=given)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def token(self, **form: Any) -> Any:
        return self.http.post("/token", data=form)

    def exchange(self, client_id: str, code: str, **more: Any) -> Any:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "client_id": client_id}
        return self.token(**{**form, "code_verifier": VERIFIER, **more})

    def refresh(self, client_id: str, token: str, **more: Any) -> Any:
        return self.token(grant_type="refresh_token", refresh_token=token, client_id=client_id, **more)

    def tokens(self, client_id: str | None = None, **person: str) -> dict[str, Any]:
        """Register, approve and exchange: a new pair of tokens, and the client's id."""
        used: str = client_id or self.register()["client_id"]
        code = self.browser().approved(used, **person)["code"]
        answer = self.exchange(used, code)
        assert answer.status_code == 200, answer.text
        return {**answer.json(), "client_id": used}

    def status_of(self, token: str) -> int:
        """How the gateway answers a host with this token."""
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        return self.http.post("/mcp", json=INITIALIZE, headers=headers).status_code


class Browser:
    """A browser of its own, with its own cookies."""

    def __init__(self, client: TestClient, peer: str, headers: dict[str, str]) -> None:
        self.http = TestClient(
            client.app, base_url=BASE, follow_redirects=False, headers=headers, client=(peer, 50_001)
        )

    @staticmethod
    def query(client_id: str, **parameters: str | None) -> str:
        given = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "a state",
            "resource": f"{BASE}/mcp",
            **parameters,
        }
        return urlencode({name: value for name, value in given.items() if value is not None})

    def open(self, client_id: str, **parameters: str | None) -> Any:
        """Open the page to which a host sends the browser."""
        self.page = self.http.get(f"/authorize?{self.query(client_id, **parameters)}")
        return self.page

    def send(self, action: str, **fields: str) -> Any:
        """Send the form of the page, as it is, or with other fields."""
        found = re.search(r'name="csrf" value="([^"]*)"', self.page.text)
        csrf = found[1] if found else ""
        answer = self.http.post(str(self.page.url), data={"csrf": csrf, "action": action, **fields})
        self.page = answer
        return answer

    def log_in(self, name: str = "alice", passphrase: str = PASSPHRASE) -> Any:
        """Log in, and open the page that asks for the approval."""
        answer = self.send("login", name=name, passphrase=passphrase)
        if answer.status_code == 303:
            self.page = self.http.get(answer.headers["location"])
        return self.page

    def approved(self, client_id: str, name: str = "alice", **parameters: str | None) -> dict[str, str]:
        """Log in and approve; gives the parameters of the answer to the host."""
        self.open(client_id, **parameters)
        self.log_in(name)
        return parameters_in(self.send("approve"))

    @property
    def text(self) -> str:
        """What is to be read on the page."""
        return unescape(re.sub(r"<[^>]+>", " ", self.page.text.partition("<main>")[2]))


def parameters_in(answer: Any) -> dict[str, str]:
    """The parameters of a redirect to a host."""
    assert answer.status_code == 303, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    """A gateway: takes settings of the authorization server, people, and settings of the gateway."""

    @contextmanager
    def opened(
        server: dict[str, Any] | None = None,
        people: dict[str, Any] | None = None,
        proxies: tuple[str, ...] = (),
        peer: str = "testclient",
        tables: dict[str, Any] | None = None,
        **gateway: Any,
    ) -> Generator[Gateway]:
        hashed = passphrase_hash()
        everybody = {"alice": {"hash": hashed}, "bob": {"hash": hashed, "upstreams": ["docs"]}}
        settings = settings_of(server or {}, everybody if people is None else people, gateway, tables)
        clock, state = Clock(), tmp_path / "state" / "authorization.sqlite3"
        database = SqliteDatabase(state)
        authorization = AuthorizationServer(settings, SqlState(database), clock)
        access = Access(settings.http, settings.access, clock, public_url=settings.gateway.public_url)
        access.add(authorization, authorization.issuer)
        app = http_app(
            SampleService(),
            settings.http,
            Identity("sample", "1.0"),
            access=access,
            public_url=settings.gateway.public_url,
            bases=Bases(settings.gateway.root_path, proxies),
            public=authorization.routes(),
        )
        with TestClient(app, base_url=BASE, client=(peer, 50_000)) as client:
            yield Gateway(authorization, access, state, database, client, clock, peer)
        database.close()

    return opened


@pytest.fixture
def gateway(opened: Callable[..., Any]) -> Generator[Gateway]:
    """A gateway with two people: alice, who reaches everything, and bob, who reaches only docs."""
    with opened() as gateway:
        yield gateway
