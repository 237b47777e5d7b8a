"""Logins of people: the whole way with real servers, and everything that must not happen on it."""

import base64
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import InvalidRequest, LoginFailed, LoginRequired, VaultLocked
from gateway.upstream.authorization import logins as logins_module
from gateway.upstream.authorization import server_client
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import LoginKey
from gateway.upstream.authorization.vault import FILE_NAME, SealedVault, SealingKey
from tests.upstream.authorization.conftest import REDIRECT, Logins, MemoryVault, Person
from tests.upstream.authorization.oauth_servers import METADATA, RESOURCE, AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio


def sealed(folder: Path, key: str = "a key for the tests of logins") -> SealedVault:
    """The vault of one of the gateways that share a folder."""
    return SealedVault(folder / FILE_NAME, SealingKey(key))


async def test_a_person_logs_in_and_requests_have_the_token(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        with pytest.raises(LoginRequired, match="mcp-gateway login x"):
            await person.ask()
        key = await person.log_in()
        assert key == LoginKey("alice", "x", authorization.issuer)
        assert await person.ask() == 200
        assert await person.ask() == 200
        [asked] = authorization.of("/authorize")
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == upstream.url
        assert "scope" not in asked
        [code] = authorization.of("/token")
        assert code["resource"] == upstream.url
        assert list(vault.kept) == [key]
        # The second request was sent with the token at once.
        assert upstream.authorizations[-1] is not None
        assert upstream.authorizations[-2] is not None


@pytest.mark.parametrize(
    ("at", "hints", "metadata", "prefix"),
    [
        (f"{RESOURCE}/mcp", True, METADATA, ""),
        (f"{RESOURCE}/mcp", False, "/.well-known/openid-configuration", ""),
        (RESOURCE, False, f"{METADATA}/tenant", "/tenant"),
        ("/elsewhere.json", True, "/.well-known/openid-configuration/tenant", "/tenant"),
        ("/elsewhere.json", True, "/tenant/.well-known/openid-configuration", "/tenant"),
    ],
)
async def test_the_authorization_server_is_found_in_every_documented_order(
    logins: Logins, at: str, hints: bool, metadata: str, prefix: str
) -> None:
    authorization = AuthorizationServer(at=metadata, prefix=prefix)
    upstream = ProtectedServer(authorization, at=at, hints=hints)
    async with served(authorization, upstream):
        person = Person(logins(of=upstream), upstream)
        await person.log_in()
        assert await person.ask() == 200


@pytest.mark.parametrize("metadata", [METADATA, "/nowhere"])
async def test_a_server_of_2025_03_26_is_its_own_authorization_server(logins: Logins, metadata: str) -> None:
    upstream = ProtectedServer(AuthorizationServer(at=metadata), at=None)
    async with served(upstream):
        person = Person(logins(of=upstream), upstream)
        if metadata == "/nowhere":
            upstream.server.returns = {"iss": None}
        await person.log_in()
        assert await person.ask() == 200
        assert "resource" not in upstream.server.of("/authorize")[0]


@pytest.mark.parametrize(
    ("returns", "why"),
    [
        ({"iss": "https://evil.example.com"}, "another authorization server"),
        ({"iss": None}, "no iss"),
        ({"iss": "http://127.0.0.1:1/"}, "another authorization server"),
        ({"code": None, "error": "access_denied", "error_description": "no\x1b[2J"}, r"access_denied: no .?\[2J"),
        ({"code": None}, "without a code"),
        ({"code": "stolen"}, "invalid_grant"),
    ],
)
async def test_a_browser_that_comes_back_with_something_wrong_ends_the_login(
    logins: Logins,
    vault: MemoryVault,
    authorization: AuthorizationServer,
    upstream: ProtectedServer,
    returns: Any,
    why: str,
) -> None:
    authorization.returns = returns
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        with pytest.raises(LoginFailed, match=why) as failed:
            await person.log_in()
        assert "\x1b" not in str(failed.value)
        assert vault.kept == {}


async def test_an_issuer_that_differs_by_a_slash_is_another_one(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        authorization.returns = {"iss": f"{authorization.issuer}/"}
        with pytest.raises(LoginFailed, match="another authorization server"):
            await Person(logins(), upstream).log_in()
        assert authorization.of("/token") == []


async def test_the_code_of_one_server_is_not_taken_to_another(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    """Mix-up: the browser comes back from a server that was not asked, with the state of the one that was."""
    other = AuthorizationServer()
    async with served(authorization, other, upstream):
        engine = logins()
        pending = await engine.begin("x", "alice", REDIRECT)
        answer = {"state": pending.state, "code": "of-the-other", "iss": other.issuer}
        with pytest.raises(LoginFailed, match="another authorization server"):
            await engine.complete(pending.state, answer)
        assert authorization.of("/token") == other.of("/token") == []


@pytest.mark.parametrize("auth", [{"client_metadata_url": "https://us.example.com/us.json"}, {"client_id": "us"}])
async def test_a_page_elsewhere_is_not_opened_for_a_client_that_others_know(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, auth: Any
) -> None:
    """Mix-up: the honest server's page sends the code of a client that it knows, and the attacker would get it."""
    honest = AuthorizationServer()
    async with served(authorization, honest, upstream):
        authorization.says = {
            "authorization_endpoint": f"{honest.origin}/authorize",
            "authorization_response_iss_parameter_supported": None,
            "client_id_metadata_document_supported": True,
        }
        with pytest.raises(LoginFailed, match=r"may be another server's.*auth\.issuer"):
            await logins(**auth).begin("x", "alice", REDIRECT)
        # Not where the configuration names the server, or the browser comes back with its name, nor for a client that
        # was registered for it alone.
        await logins(**auth, issuer=authorization.issuer).begin("x", "alice", REDIRECT)
        await logins().begin("x", "alice", REDIRECT)
        authorization.says["authorization_response_iss_parameter_supported"] = True
        await logins(**auth).begin("x", "alice", REDIRECT)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"issuer": "https://attacker.example.com"}, "that of another authorization server"),
        ({"token_endpoint": "http://attacker.example.com/token"}, "does not use TLS"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "cannot be used"),
        ({"authorization_endpoint": "http://user@127.0.0.1/"}, "cannot be used"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"authorization_endpoint": None}, "no page"),
        ({"registration_endpoint": None}, "auth.client_id"),
        ({"token_endpoint": None}, "no metadata"),
    ],
)
async def test_metadata_of_a_server_that_cannot_be_trusted_is_not_used(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, says: Any, why: str
) -> None:
    authorization.says = says
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match=why):
            await logins().begin("x", "alice", REDIRECT)
        assert authorization.of("/register") == []


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"resource": "https://evil.example.com/mcp"}, "another resource"),
        ({"resource": "not a url"}, "another resource"),
        ({"authorization_servers": ["https://10.0.0.1"]}, "not public|cannot be reached|did not answer"),
        ({"authorization_servers": ["http://attacker.example.com"]}, "does not use TLS"),
        ({"authorization_servers": ["https://169.254.169.254"]}, "not public"),
        ({"authorization_servers": ["https://0.0.0.0"]}, "not public"),
        ({"authorization_servers": ["file:///etc/passwd"]}, "cannot be used"),
    ],
)
async def test_an_upstream_that_leads_elsewhere_is_not_followed(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, says: Any, why: str
) -> None:
    upstream.says = says
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match=why):
            await logins().begin("x", "alice", REDIRECT)


async def test_an_upstream_whose_metadata_fails_is_not_taken_for_an_old_one(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    upstream.metadata_status = 503
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match="HTTP 503"):
            await logins().begin("x", "alice", REDIRECT)


async def test_the_configured_server_is_the_only_one(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match=r"auth\.issuer"):
            await logins(issuer="https://login.example.com").begin("x", "alice", REDIRECT)
        await Person(logins(issuer=authorization.issuer), upstream).log_in()


async def test_a_login_works_once_and_for_whoever_began_it(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        pending = await person.logins.begin("x", "alice", REDIRECT)
        query = await person.browse(pending.url)
        with pytest.raises(InvalidRequest, match="somebody else"):
            await person.logins.complete(pending.state, query, principal="bob")
        with pytest.raises(InvalidRequest):
            await person.logins.complete("guessed", query)
        await person.logins.complete(pending.state, query, principal="alice")
        with pytest.raises(InvalidRequest):
            await person.logins.complete(pending.state, query, principal="alice")


async def test_two_logins_at_once_do_not_disturb_each_other(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        first, second = [await person.logins.begin("x", "alice", REDIRECT) for _ in range(2)]
        for pending in (second, first):
            await person.logins.complete(pending.state, await person.browse(pending.url))
        assert await person.ask() == 200
        assert len(authorization.of("/register")) == 1


async def test_logins_that_are_abandoned_make_room(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        engine = logins()
        states = [(await engine.begin("x", "alice", REDIRECT)).state for _ in range(7)]
        other = await engine.begin("x", "bob", REDIRECT)
        for state in states[:2]:
            with pytest.raises(InvalidRequest):
                await engine.complete(state, {})
        for state in (states[-1], other.state):
            with pytest.raises(LoginFailed):
                await engine.complete(state, {})


async def test_principals_have_tokens_of_their_own(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        engine = logins()
        alice, bob = Person(engine, upstream, "alice"), Person(engine, upstream, "bob")
        await alice.log_in()
        with pytest.raises(LoginRequired):
            await bob.ask()
        await bob.log_in()
        assert await engine.token("x", "alice") != await engine.token("x", "bob")
        assert await engine.principals("x") == {"alice", "bob"}
        await engine.forget("x", "alice")
        with pytest.raises(LoginRequired):
            await alice.ask()
        assert await bob.ask() == 200
        assert len(authorization.of("/revoke")) == 1


async def test_tokens_of_another_url_are_not_sent(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    """The name in the configuration now stands for another server."""
    thief = ProtectedServer(authorization)
    async with served(authorization, upstream, thief):
        await Person(logins(), upstream).log_in()
        with pytest.raises(LoginRequired):
            await Person(logins(of=thief), thief).ask()
        assert thief.authorizations == [None]


async def test_an_access_token_is_refreshed_before_it_expires_by_one_at_a_time(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        vault.expire_in(5)
        authorization.token_gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(person.ask)
            await authorization.at_gate.wait()
            authorization.token_gate.set()
        assert [form["grant_type"] for form in authorization.of("/token")] == ["authorization_code", "refresh_token"]
        assert set(upstream.authorizations[-5:]) == {upstream.authorizations[-1]}


async def test_an_access_token_that_is_never_valid_for_long_serves_many_requests(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    authorization.issues = {"expires_in": 8}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        for _ in range(3):
            assert await person.ask() == 200
        assert len(authorization.of("/token")) == 1
        now += 5
        assert await person.ask() == 200
        assert len(authorization.of("/token")) == 2


@pytest.mark.parametrize("lifetime", [10**400, -1, "soon", "1e999", [], {}])
async def test_a_lifetime_that_is_none_leaves_the_token_valid(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, lifetime: Any
) -> None:
    authorization.issues = {"expires_in": lifetime}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        assert await person.ask() == 200


async def test_a_refresh_survives_the_request_that_began_it(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.issues = {"expires_in": 0}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        authorization.issues = {}
        authorization.token_gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(person.ask)
            await authorization.at_gate.wait()
            tasks.cancel_scope.cancel()
            authorization.token_gate.set()
        [tokens] = vault.kept.values()
        assert tokens.refresh_token in authorization.refreshes
        assert await person.ask() == 200


async def test_a_refresh_that_is_not_answered_holds_up_the_end_only_for_a_while(
    logins: Logins,
    authorization: AuthorizationServer,
    upstream: ProtectedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logins_module, "_LAST_SECONDS", 0.2)
    authorization.issues = {"expires_in": 0}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        authorization.token_gate = anyio.Event()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(person.ask)
                await authorization.at_gate.wait()
                tasks.cancel_scope.cancel()
        authorization.token_gate.set()


async def test_those_who_wait_for_a_refresh_that_is_not_answered_wait_no_longer_than_the_first(
    logins: Logins,
    authorization: AuthorizationServer,
    upstream: ProtectedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_client, "SECONDS", 1.0)
    authorization.issues = {"expires_in": 0}
    failures: list[LoginFailed] = []

    async def ask() -> None:
        with pytest.raises(LoginFailed, match="did not answer") as failed:
            await person.ask()
        failures.append(failed.value)

    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        authorization.token_gate = anyio.Event()
        with anyio.fail_after(4):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(ask)
        authorization.token_gate.set()
        assert len(failures) == 5
        assert [form["grant_type"] for form in authorization.of("/token")] == ["authorization_code", "refresh_token"]


async def test_a_refresh_token_that_was_used_elsewhere_ends_the_login(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.issues = {"expires_in": 0}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        authorization.refreshes.clear()
        with pytest.raises(LoginRequired, match="expired"):
            await person.ask()
        assert vault.kept == {}


async def test_another_process_may_have_refreshed(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.issues = {"expires_in": 0}
    async with served(authorization, upstream):
        one, other = Person(logins(), upstream), Person(logins(), upstream)
        await one.log_in()
        assert await other.ask() == 200
        authorization.issues = {}
        assert await one.ask() == 200
        refreshed = len(authorization.of("/token"))
        assert await other.ask() == 200
        assert len(authorization.of("/token")) == refreshed


async def test_gateways_that_share_a_file_refresh_one_after_the_other(
    authorization: AuthorizationServer, upstream: ProtectedServer, tmp_path: Path
) -> None:
    """The server takes a refresh token that is used twice for a stolen one, and ends the login."""
    authorization.issues = {"expires_in": 0}
    authorization.ends_reused = True
    async with served(authorization, upstream):
        one, other = [
            Person(UpstreamLogins(sealed(tmp_path), {"x": UpstreamSettings(url=upstream.url)}.get), upstream)
            for _ in range(2)
        ]
        await one.log_in()
        authorization.issues = {}
        authorization.token_gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.ask)
            await authorization.at_gate.wait()
            tasks.start_soon(other.ask)
            await anyio.wait_all_tasks_blocked()
            authorization.token_gate.set()
        assert [await one.ask(), await other.ask()] == [200, 200]
        assert [form["grant_type"] for form in authorization.of("/token")] == ["authorization_code", "refresh_token"]


async def test_a_login_that_another_gateway_gave_up_is_not_used_any_longer(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        one, other = Person(logins(), upstream), Person(logins(), upstream)
        await one.log_in()
        assert await one.ask() == 200
        await other.logins.forget("x", "alice")
        assert await one.logins.token("x", "alice") is None
        with pytest.raises(LoginRequired):
            await one.ask()
        # Nor is one account used on after a login with another.
        await one.log_in()
        assert await other.ask() == 200
        await one.log_in()
        assert await other.logins.token("x", "alice") == await one.logins.token("x", "alice")


async def test_logins_whose_key_is_gone_are_replaced_by_others_or_given_up(
    authorization: AuthorizationServer, upstream: ProtectedServer, tmp_path: Path
) -> None:
    async with served(authorization, upstream):

        def person(key: str) -> Person:
            settings = {"x": UpstreamSettings(url=upstream.url)}
            return Person(UpstreamLogins(sealed(tmp_path, key), settings.get), upstream)

        await person("the key before").log_in()
        alice = person("the key of today")
        with pytest.raises(LoginFailed, match=r"sealed with another key.*mcp-gateway login x"):
            await alice.ask()
        await alice.log_in()
        assert await alice.ask() == 200
        other = person("the key of tomorrow")
        await other.logins.forget("x", "alice")
        assert await other.logins.principals("x") == set()
        with pytest.raises(LoginRequired):
            await other.ask()


@pytest.mark.parametrize("expires", [5, -1])
async def test_an_authorization_server_that_is_away_does_not_end_the_login(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer, expires: int
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        vault.expire_in(expires)
        authorization.token_status = 503
        if expires > 0:
            assert await person.ask() == 200
        else:
            with pytest.raises(LoginFailed, match="temporarily_unavailable"):
                await person.ask()
        assert len(vault.kept) == 1
        authorization.token_status = 200
        assert await person.ask() == 200


async def test_an_upstream_that_answers_401_for_ever_is_bounded(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        upstream.refuses = 401, 'error="invalid_token"'
        before = len(authorization.seen)
        for _ in range(5):
            with pytest.raises(LoginRequired):
                await person.ask()
        assert len(authorization.seen) == before
        assert vault.kept == {}


async def test_a_step_up_keeps_what_was_granted(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    upstream.needs = {"tools/list": ("read",), "tools/call": ("write",)}
    upstream.says = {"scopes_supported": ["profile"]}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        with pytest.raises(LoginRequired):
            await person.ask()
        await person.log_in()
        assert await person.ask() == 200
        with pytest.raises(LoginRequired, match="scopes: write") as required:
            await person.ask("tools/call")
        assert required.value.scopes == ("read", "write")
        await person.log_in()
        assert await person.ask("tools/call") == 200
        assert [asked["scope"] for asked in authorization.of("/authorize")] == ["read", "read write"]


async def test_an_upstream_that_asks_for_ever_more_scopes_is_bounded(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        for number in range(3):
            upstream.needs = {"tools/list": (f"more-{number}",)}
            with pytest.raises(LoginRequired):
                await person.ask()
            await person.log_in()
        upstream.needs = {"tools/list": ("one-more",)}
        with pytest.raises(LoginFailed, match="ever more scopes"):
            await person.ask()


async def test_an_upstream_that_asks_for_what_it_has_is_not_believed(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    upstream.needs = {"tools/list": ("read",)}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        with pytest.raises(LoginRequired):
            await person.ask()
        await person.log_in()
        upstream.refuses = 403, 'error="insufficient_scope", scope="read"'
        with pytest.raises(LoginFailed, match="scopes that its token has"):
            await person.ask()


async def test_a_refusal_that_no_token_can_change_is_left_alone(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        upstream.refuses = 403, ""
        assert await person.ask() == 403
        assert await person.logins.challenged("x", "bob", None, 401, ["Basic realm=x"]) is None


async def test_an_upstream_that_moves_to_another_authorization_server_gets_new_credentials(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    other = AuthorizationServer()
    async with served(authorization, other, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        upstream.server = other
        authorization.refreshes.clear()
        with pytest.raises(LoginRequired):
            await person.ask()
        key = await person.log_in()
        assert list(vault.kept) == [key]
        assert key.issuer == other.issuer
        assert len(other.of("/register")) == 1
        assert await person.ask() == 200
        known = {form["client_id"] for form in authorization.of("/token")}
        assert [form["client_id"] for form in other.of("/token")] != known


async def test_configured_credentials_are_not_replaced_by_a_login(
    vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        with_user = upstream.url.replace("://", "://user:password@")
        for settings in (
            UpstreamSettings(url=upstream.url, headers={"X-Api-Key": "old"}),
            UpstreamSettings(url=with_user),
        ):
            engine = UpstreamLogins(vault, {"x": settings}.get)
            assert await Person(engine, upstream).ask() == 401
            with pytest.raises(LoginFailed, match="configured credentials"):
                await engine.begin("x", "alice", REDIRECT)


async def test_offline_access_is_asked_for_where_it_exists(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    upstream.says = {"scopes_supported": ["read"]}
    authorization.says = {"scopes_supported": ["read", "offline_access"]}
    async with served(authorization, upstream):
        await Person(logins(), upstream).log_in()
        [asked] = authorization.of("/authorize")
        assert (asked["scope"], asked["prompt"]) == ("read offline_access", "consent")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_registered_client_proves_itself_as_the_server_wants(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, method: str
) -> None:
    authorization.says = {"token_endpoint_auth_methods_supported": [method]}
    async with served(authorization, upstream):
        await Person(logins(), upstream).log_in()
        [form] = authorization.of("/token")
        assert ("client_secret" in form) == (method == "client_secret_post")


async def test_a_fixed_client_is_not_registered(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.says = {"registration_endpoint": None}
    authorization.accepted = {"fixed": "s3cret/+ of it"}
    async with served(authorization, upstream):
        person = Person(logins(client_id="fixed", client_secret="s3cret/+ of it"), upstream)
        await person.log_in()
        assert await person.ask() == 200


async def test_the_gateways_own_document_identifies_it_where_the_server_fetches_such(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.says = {"client_id_metadata_document_supported": True}
    async with served(authorization, upstream):
        engine = logins("https://gateway.example.com/mcp-gateway/")
        pending = await engine.begin("x", "alice", "https://gateway.example.com/mcp-gateway/oauth/callback")
        assert "client_id=https%3A%2F%2Fgateway.example.com%2Fmcp-gateway%2Foauth%2Fclient.json" in pending.url
        assert authorization.of("/register") == []
        # A browser that comes back to this machine is not in the document.
        await engine.begin("x", "alice", REDIRECT)
        assert len(authorization.of("/register")) == 1
        await Person(logins(client_metadata_url="https://elsewhere.example.com/client.json"), upstream).log_in()


@pytest.mark.parametrize(
    "issues",
    [
        {"access_token": None},
        {"access_token": "with a space"},
        {"access_token": "with\r\nanother: header"},
        {"token_type": "mac"},
    ],
)
async def test_a_token_that_cannot_be_sent_is_refused(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, issues: Any
) -> None:
    authorization.issues = issues
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match="without a token that can be used"):
            await Person(logins(), upstream).log_in()


async def test_a_locked_vault_is_a_failure_with_its_remedy(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        vault.fails = VaultLocked("the keyring is locked", remedy="unlock it")
        with pytest.raises(LoginFailed, match=r"keyring is locked \(unlock it\)"):
            await Person(logins(), upstream).ask()


async def test_a_login_that_cannot_be_kept_any_longer_works_on(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.issues = {"expires_in": 0}
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        authorization.issues = {}
        vault.fails = VaultLocked("the keyring is locked")
        assert await person.ask() == 200
        assert await person.ask() == 200
        assert len(authorization.of("/token")) == 2


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_server_that_repeats_the_request_shows_no_secret(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer, method: str
) -> None:
    authorization.accepted = {"fixed": "s3cret/+ of it"}
    authorization.repeats = True
    auth = {"client_id": "fixed", "client_secret": "s3cret/+ of it", "client_authentication": method}
    async with served(authorization, upstream):
        person = Person(logins(**auth), upstream)
        authorization.token_status = 400
        with pytest.raises(LoginFailed) as of_code:
            await person.log_in()
        authorization.token_status, authorization.issues = 200, {"expires_in": 0}
        await person.log_in()
        authorization.token_status = 503
        with pytest.raises(LoginFailed) as of_refresh:
            await person.ask()
        said = f"{of_code.value} {of_refresh.value}"
        assert said.count("***") >= 3
        sent = [value for form in authorization.of("/token") for value in form.items()]
        secrets = {value for key, value in sent if key in ("code", "code_verifier", "refresh_token")}
        basic = base64.b64encode(f"fixed:{quote('s3cret/+ of it', safe='')}".encode()).decode()
        for secret in (*secrets, "s3cret", basic):
            assert secret not in said
            assert secret[:12] not in said


async def test_no_token_is_shown_anywhere(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        pending = await person.logins.begin("x", "alice", REDIRECT)
        assert pending.state not in repr(pending)
        await person.logins.complete(pending.state, await person.browse(pending.url))
        [tokens] = vault.kept.values()
        for secret in (tokens.access_token, tokens.refresh_token):
            assert str(secret) not in f"{tokens!r} {tokens} {vault.kept!r}"
