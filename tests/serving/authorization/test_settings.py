"""What the configuration says: who may log in, where the server is, and what is the gateway's own."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets
from gateway.config.settings_diff import compare, live_part
from gateway.core.model.grant import Grant
from gateway.errors import ConfigError
from gateway.serving.authorization.authorization_server import AuthorizationServer, issuer_of, opened_server
from gateway.serving.authorization.passphrases import Attempts, hash_passphrase, is_passphrase
from gateway.serving.authorization.reach_words import reach_in_words
from gateway.serving.authorization.redirect_uris import destination, with_parameters
from gateway.serving.authorization.sql_state import SqlState
from gateway.serving.authorization.sqlite_database import SqliteDatabase
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.databases.local_records import LocalRecords
from tests.serving.authorization.conftest import BASE, Clock, passphrase_hash, settings_of


def settings(server: Any = None, **others: Any) -> Settings:
    people = {"alice": {"hash": passphrase_hash()}}
    access = {"people": people, "authorization_server": server or {}}
    return Settings.model_validate({"access": access, **others})


def test_the_issuer_is_the_public_url_or_the_loopback_address() -> None:
    assert issuer_of(settings(gateway={"public_url": "https://x.example/gw/"})) == "https://x.example/gw"
    assert issuer_of(settings(http={"port": 8484})) == "http://127.0.0.1:8484"
    assert issuer_of(settings(http={"bind": "::1"}, gateway={"root_path": "/gw"})) == "http://[::1]:8484/gw"
    assert issuer_of(settings(gateway={"public_url": "http://localhost:9000"})) == "http://localhost:9000"


@pytest.mark.parametrize(
    "others",
    [
        {"gateway": {"public_url": "http://tools.example.com"}},
        {"http": {"port": 0}},
        {"http": {"bind": "0.0.0.0"}},
    ],
)
def test_an_address_that_hosts_could_not_use_is_refused(others: Any) -> None:
    with pytest.raises(ConfigError, match=r"access\.authorization_server"):
        issuer_of(settings(**others))


def test_a_server_without_people_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text("[access.authorization_server]\n[access.people.alice]\nadmin = true\n", "utf-8")
    with pytest.raises(ConfigError, match="mcp-gateway person add"):
        load_settings(path, environ={})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[access.people.alice]\nhash = "scrypt:3:a:b"', "hash"),
        ('[access.people."a b"]\n', "is not a name for a person"),
        ("[access.people.local]\n", "is the gateway's own"),
        ("[access.authorization_server]\nregistraton = true", "did you mean 'registration'"),
        ('[access.authorization_server]\nstate = "http://127.0.0.1:6379"', "state"),
        ('[access.authorization_server.oidc]\nissuer = "http://x.example"', "https://"),
    ],
)
def test_a_fault_is_told_by_its_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=words) as raised:
        load_settings(path, environ={})
    assert "access." in str(raised.value)


def test_the_database_is_relative_to_the_file_and_the_secret_is_one(tmp_path: Path) -> None:
    path = tmp_path / "mcp-gateway.toml"
    provider = 'issuer = "https://x.example"\nclient_id = "g"\nclient_secret = "a secret of ours"\npeople = ["*"]'
    path.write_text(
        f'[access.authorization_server]\ndatabase = "logins.db"\n[access.authorization_server.oidc]\n{provider}\n',
        "utf-8",
    )
    loaded = load_settings(path, environ={}).settings
    assert loaded.access.authorization_server.database == tmp_path / "logins.db"
    assert "a secret of ours" in set(all_secrets(loaded))


def test_the_password_of_a_redis_is_a_secret(tmp_path: Path) -> None:
    path, secret = tmp_path / "mcp-gateway.toml", tmp_path / "password"
    secret.write_text("pass%20word\n", "utf-8")
    state = f"redis://gateway:${{file:{secret}}}@redis.internal:6379/0"
    people = f'[access.people.alice]\nhash = "{passphrase_hash()}"\n'
    path.write_text(f'{people}[access.authorization_server]\nstate = "{state}"\n', "utf-8")
    loaded = load_settings(path, environ={}).settings
    assert loaded.access.authorization_server.state == "redis://gateway:pass%20word@redis.internal:6379/0"
    assert {"pass%20word", "pass word"} <= set(all_secrets(loaded))


def test_people_are_applied_at_once_and_the_server_at_the_next_start() -> None:
    old, new = settings(), settings({"registration": False})
    new = new.model_copy(update={"access": new.access.model_copy(update={"people": {}})})
    difference = compare(old, new)
    assert difference.restart_needed == ("access.authorization_server",)
    assert difference.applied == ("access.people",)
    assert live_part(old, new).access.authorization_server.registration is True
    assert live_part(old, new).access.people == {}


def test_a_database_that_is_none_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "authorization.sqlite3").write_text("not a database, but long enough to be read as one" * 20)
    with pytest.raises(ConfigError, match=r"access\.authorization_server\.database"):
        opened_server(settings(), tmp_path)
    newer = SqliteDatabase(tmp_path / "newer.sqlite3")
    newer.run_now(lambda connection: connection.execute("PRAGMA user_version = 99"))
    newer.close()
    with pytest.raises(ConfigError, match="newer version"):
        SqliteDatabase(tmp_path / "newer.sqlite3").check()


def test_without_a_folder_the_state_is_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    opened_server(settings(), None)
    assert "every host has to be approved again" in caplog.text


@pytest.mark.parametrize("url", [BASE, f"{BASE}/", f"{BASE}/mcp", f"{BASE}/mcp/claude-ai", f"{BASE}:443/sse"])
def test_every_endpoint_is_the_gateways(url: str) -> None:
    assert server().is_resource(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://tools.example.com.evil.example/mcp",
        "https://evil.example/mcp",
        "http://tools.example.com/mcp",
        f"{BASE}:8443/mcp",
        f"{BASE}/mcpx",
        f"{BASE}/content",
        f"{BASE}/mcp?x=1",
        f"{BASE}/mcp#x",
        f"{BASE}/mcp/../x",
        "https://user@tools.example.com/mcp",
        "https://[::1",
        "mcp",
        "",
    ],
)
def test_nothing_else_is(url: str) -> None:
    assert not server().is_resource(url)


def server() -> AuthorizationServer:
    return AuthorizationServer(
        settings_of({}, {"alice": {"hash": passphrase_hash()}}, {}), SqlState(SqliteDatabase(None))
    )


def test_a_passphrase_is_known_by_its_hash() -> None:
    assert is_passphrase("correct horse battery", passphrase_hash())
    assert not is_passphrase("correct horse batterY", passphrase_hash())
    assert not is_passphrase("", None)
    assert hash_passphrase("same") != hash_passphrase("same")


def test_attempts_have_to_wait_longer_and_are_forgotten() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    waits: list[int] = []
    for _ in range(12):
        clock.now += attempts.wait("alice")
        attempts.failed("alice")
        waits.append(attempts.wait("alice"))
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60]
    clock.now += 3_601
    assert attempts.wait("alice") == 0
    attempts.failed("alice")
    assert attempts.wait("alice") == 0


@pytest.mark.anyio
async def test_replicas_count_registrations_together(tmp_path: Path) -> None:
    clock = Clock()
    records = LocalRecords(tmp_path / "records", clock)
    given = {"redirect_uris": ["https://host.example/callback"], "token_endpoint_auth_method": "none"}
    async with AsyncExitStack() as stack:
        replicas: list[httpx2.AsyncClient] = []
        for name in ("one", "two"):
            of_it = settings_of({}, {"alice": {"hash": passphrase_hash()}}, {})
            server = AuthorizationServer(of_it, SqlState(SqliteDatabase(tmp_path / f"{name}.sqlite")))
            stack.push_async_callback(server.aclose)
            server.shared = LocalUse(records, name, lambda: ["one", "two"], clock)
            transport = httpx2.ASGITransport(Starlette(routes=server.routes()))
            client = httpx2.AsyncClient(transport=transport, base_url="http://gateway")
            replicas.append(await stack.enter_async_context(client))
        answers = [await replicas[number % 2].post("/register", json=given) for number in range(22)]
        assert [answer.status_code for answer in answers] == [201] * 20 + [429] * 2
        assert answers[-1].headers["Retry-After"] == "60"
        clock.now += 61
        assert (await replicas[0].post("/register", json=given)).status_code == 201
        await records.close()
        alone = await replicas[0].post("/register", json=given)
        assert alone.status_code == 201, "each counts for itself while it cannot be asked"


@pytest.mark.parametrize(
    ("uri", "words", "local"),
    [
        ("https://claude.ai/api/callback", "claude.ai", False),
        ("https://host.example:8443/x", "host.example:8443", False),
        ("http://127.0.0.1:3000/x", "a program on this device", True),
        ("http://[::1]:3000/x", "a program on this device", True),
        ("cursor://anysphere/callback", "a program on this device (cursor:)", True),
    ],
)
def test_where_a_redirect_leads_is_put_in_words(uri: str, words: str, local: bool) -> None:
    assert (destination(uri).words, destination(uri).is_local) == (words, local)


@pytest.mark.parametrize(
    ("uri", "whole"),
    [
        ("https://x.example/cb", "https://x.example/cb?code=a+b"),
        ("https://x.example/cb?a=1", "https://x.example/cb?a=1&code=a+b"),
        ("https://x.example/cb?", "https://x.example/cb?code=a+b"),
        ("app:///cb", "app:///cb?code=a+b"),
        ("app:cb", "app:cb?code=a+b"),
    ],
)
def test_the_answer_is_added_to_a_redirect_uri_as_it_is(uri: str, whole: str) -> None:
    assert with_parameters(uri, [("code", "a b")]) == whole


def test_what_somebody_reaches_is_put_in_words() -> None:
    everything = "all tools and everything to read"
    assert reach_in_words(Grant(), ["docs", "git"]) == [f"docs: {everything}", f"git: {everything}"]
    assert reach_in_words(Grant(("docs",)), ["docs", "git"]) == [f"docs: {everything}"]
    assert reach_in_words(Grant(("*",), ("git__get_*", "git__list")), ["docs", "git"]) == [
        "docs: no tools, but everything to read",
        "git: the tools get_*, list, and everything to read",
    ]
    assert reach_in_words(Grant(("*",), ("*__search",)), ["docs"]) == ["docs: the tools search, and everything to read"]
