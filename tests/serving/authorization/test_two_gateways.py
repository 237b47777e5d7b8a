"""Two gateways as processes, behind one address, with one state: what one gives or takes counts at the other."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from tests.servers import postgres_server, redis_server
from tests.servers.postgres_server import PostgresDatabaseOfTest
from tests.servers.redis_server import RedisServer
from tests.serving.authorization.conftest import (
    CHALLENGE,
    INITIALIZE,
    PASSPHRASE,
    REDIRECT,
    VERIFIER,
    passphrase_hash,
)
from tests.telemetry.conftest import Serving

PUBLIC = "http://localhost:9"
CONFIG = f"""
[gateway]
public_url = "{PUBLIC}"
[access.people.alice]
hash = "%(hash)s"
[access.authorization_server]
state = "%(state)s"
"""
A_MINUTE = 60


class Site:
    """One of the gateways, and the programs and browsers that reach it."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.http = httpx2.Client(base_url=serving.url, trust_env=False, timeout=30)

    def register(self) -> str:
        given = {"client_name": "Some Host", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
        answer = self.http.post("/register", json=given)
        assert answer.status_code == 201, answer.text
        return answer.json()["client_id"]

    def approve(self, client_id: str, other: "Site | None" = None) -> str:
        """Log in and approve in a browser, the forms going to `other` if there is one; gives the code."""
        answer = self.log_in(client_id, other)
        answer = self.sent(urlsplit(answer.headers["location"]).path, other or self, "approve")
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))["code"]

    def address_for(self, client_id: str) -> str:
        """Where a host sends the browser."""
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{PUBLIC}/mcp",
        }
        return f"/authorize?{urlencode(asked)}"

    def log_in(self, client_id: str, other: "Site | None" = None) -> httpx2.Response:
        """Log in; the answer sends the browser to the page that asks for the approval."""
        return self.sent(self.address_for(client_id), other or self, "login", name="alice", passphrase=PASSPHRASE)

    def sent(self, address: str, to: "Site", action: str, expected: int = 303, **fields: str) -> httpx2.Response:
        """Open a page here, and send its form to a gateway, in one browser."""
        page = self.http.get(address)
        to.http.cookies.update(self.http.cookies)
        found = re.search(r'name="csrf" value="([^"]*)"', page.text)
        assert found, page.text
        answer = to.http.post(address, data={"csrf": found[1], "action": action, **fields})
        assert answer.status_code == expected, answer.text
        return answer

    def token(self, **form: str) -> httpx2.Response:
        return self.http.post("/token", data=form)

    def exchange(self, client_id: str, code: str) -> httpx2.Response:
        form = {"code": code, "redirect_uri": REDIRECT, "client_id": client_id, "code_verifier": VERIFIER}
        return self.token(grant_type="authorization_code", **form)

    def status_of(self, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        return self.http.post("/mcp", json=INITIALIZE, headers=headers).status_code

    def until(self, token: str, status: int) -> float:
        """Wait until the token is answered like this, and return the seconds that this took."""
        began = time.monotonic()
        while (found := self.status_of(token)) != status:
            assert time.monotonic() - began < A_MINUTE, found
            time.sleep(0.2)
        return time.monotonic() - began


class Shared(NamedTuple):
    """What the gateways share: its URL in the configuration, its password, and how it is stopped and started."""

    url: str
    password: str
    stop: Callable[[], None]
    start: Callable[[], None]


@pytest.fixture(params=["redis", "postgres"])
def shared(request: pytest.FixtureRequest) -> Shared:
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis")
        url = f"redis://:${{STATE_PASSWORD}}@127.0.0.1:{redis.port}/0"
        return Shared(url, redis_server.PASSWORD, redis.stop, redis.start)
    database: PostgresDatabaseOfTest = request.getfixturevalue("postgres")
    server = database.server
    url = f"postgresql://{postgres_server.USER}:${{STATE_PASSWORD}}@127.0.0.1:{server.port}/{database.name}"
    return Shared(url, postgres_server.PASSWORD, server.stop, server.start)


@contextmanager
def two(shared: Shared, tmp_path: Path, more: str = "") -> Generator[tuple[Site, Site]]:
    with ExitStack() as stack:

        def site(name: str) -> Site:
            folder = tmp_path / name
            folder.mkdir()
            config = folder / "mcp-gateway.toml"
            config.write_text(CONFIG % {"hash": passphrase_hash(), "state": shared.url} + more, "utf-8")
            password = shared.password.replace(" ", "%20")
            serving = Serving(config, "--debug", STATE_PASSWORD=password, MCP_GATEWAY_STATE=str(folder / "state"))
            stack.callback(serving.end)
            made = Site(serving)
            stack.callback(made.http.close)
            return made

        yield site("first"), site("second")


@pytest.fixture
def sites(shared: Shared, tmp_path: Path) -> Generator[tuple[Site, Site]]:
    with two(shared, tmp_path) as made:
        yield made


def test_what_one_gateway_gives_and_takes_counts_at_the_other(sites: tuple[Site, Site]) -> None:
    first, second = sites
    client_id = first.register()
    code = first.approve(client_id)
    answer = second.exchange(client_id, code)
    assert answer.status_code == 200, answer.text
    tokens = answer.json()
    assert second.status_of(tokens["access_token"]) == 200
    renewed = second.token(
        grant_type="refresh_token", refresh_token=tokens["refresh_token"], client_id=client_id
    ).json()
    assert first.status_of(renewed["access_token"]) == 200
    assert second.status_of(renewed["access_token"]) == 200  # known there, for some seconds
    revoked = first.http.post("/revoke", data={"token": renewed["access_token"], "client_id": client_id})
    assert revoked.status_code == 200
    assert first.status_of(renewed["access_token"]) == 401
    second.until(renewed["access_token"], 401)
    again = second.token(grant_type="refresh_token", refresh_token=renewed["refresh_token"], client_id=client_id)
    assert again.json()["error"] == "invalid_grant"


def test_each_page_of_a_login_may_be_another_gateways(sites: tuple[Site, Site]) -> None:
    first, second = sites
    client_id = first.register()
    code = first.approve(client_id, other=second)
    assert second.exchange(client_id, code).status_code == 200


def test_a_page_of_another_gateway_is_for_the_same_browser_alone(sites: tuple[Site, Site]) -> None:
    first, second = sites
    client_id = first.register()
    asking = urlsplit(first.log_in(client_id).headers["location"]).path
    with httpx2.Client(base_url=second.serving.url, trust_env=False, timeout=30) as stranger:
        assert stranger.get(asking).status_code == 400
        page = stranger.get(first.address_for(client_id))  # which gives it a cookie of its own
        assert stranger.get(asking).status_code == 400
        own = re.search(r'name="csrf" value="([^"]*)"', page.text)
        assert own is not None
        assert stranger.post(asking, data={"csrf": own[1], "action": "approve"}).status_code == 400
    assert first.http.get(asking).status_code == 200
    assert first.sent(asking, second, "approve").status_code == 303
    assert first.http.get(asking).status_code == 400  # decided


def test_a_refresh_token_that_comes_again_elsewhere_ends_what_it_gave(sites: tuple[Site, Site]) -> None:
    first, second = sites
    client_id = first.register()
    tokens = first.exchange(client_id, first.approve(client_id)).json()
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": client_id}
    renewed = first.token(**form).json()
    assert second.token(**form).json()["error"] == "invalid_grant"
    first.until(renewed["access_token"], 401)


def test_while_the_state_is_away_hosts_are_told_to_come_back(sites: tuple[Site, Site], shared: Shared) -> None:
    first, second = sites
    client_id = first.register()
    tokens = first.exchange(client_id, first.approve(client_id)).json()
    shared.stop()
    refused = second.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], client_id=client_id)
    assert (refused.status_code, refused.json()["error"]) == (503, "temporarily_unavailable")
    assert int(refused.headers["Retry-After"]) > 0
    given = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
    assert second.http.post("/register", json=given).status_code == 503
    assert second.status_of(tokens["access_token"]) == 503
    page = second.http.get(f"/authorize?client_id={client_id}&redirect_uri={REDIRECT}")
    assert (page.status_code, "Try again later" in page.text) == (503, True)
    shared.start()
    for site in sites:  # the Redis keeps nothing, so everything begins anew
        code = site.approve(client_id := site.register())
        assert site.status_of(site.exchange(client_id, code).json()["access_token"]) == 200
        assert site.serving.process.poll() is None
    for site in sites:
        said = "\n".join(site.serving.lines)
        assert shared.password not in said
        assert shared.password.replace(" ", "%20") not in said
        assert "Traceback" not in said


def test_the_command_line_revokes_for_all(sites: tuple[Site, Site], command_in: Callable[..., str]) -> None:
    first, second = sites
    client_id = first.register()
    tokens = first.exchange(client_id, first.approve(client_id)).json()
    assert second.status_of(tokens["access_token"]) == 200
    [approved] = json.loads(command_in("second", "access", "ls", "--json"))
    assert (approved["principal"], approved["client_name"]) == ("alice", "Some Host")
    assert "revoked: Some Host" in command_in("second", "access", "revoke", "--all")
    for site in sites:
        site.until(tokens["access_token"], 401)


@pytest.fixture
def command_in(tmp_path: Path, shared: Shared) -> Callable[..., str]:
    """A command with the configuration of one of the gateways."""

    def run(name: str, *words: str) -> str:
        env = {**os.environ, "STATE_PASSWORD": shared.password.replace(" ", "%20"), "NO_COLOR": "1"}
        whole = [sys.executable, "-m", "gateway", *words, "--config", str(tmp_path / name / "mcp-gateway.toml")]
        done = subprocess.run(whole, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("shared", ["redis"], indirect=True)
def test_replicas_count_wrong_passphrases_together(shared: Shared, tmp_path: Path) -> None:
    with two(shared, tmp_path, f'[cluster]\nurl = "{shared.url}"\n') as (first, second):
        address = first.address_for(first.register())
        for _ in range(5):
            first.sent(address, first, "login", 403, name="alice", passphrase="wrong")
        first.sent(address, first, "login", 429, name="alice", passphrase="wrong")
        second.sent(address, second, "login", 403, name="alice", passphrase="wrong")
        second.sent(address, second, "login", 429, name="alice", passphrase=PASSPHRASE)
