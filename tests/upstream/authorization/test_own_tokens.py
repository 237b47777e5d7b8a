"""Tokens that need nobody's login: for the gateway itself, and for the workload that it runs as."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.config.login_settings import LoginSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.claims import CameWith
from gateway.errors import LoginFailed
from gateway.runtime import open_logins
from gateway.upstream.authorization.logins import UpstreamLogins
from tests.upstream.authorization.conftest import REDIRECT, Logins, MemoryVault, Person
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio


def key_pair() -> tuple[str, str]:
    """A private and a public key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_the_gateway_gets_a_token_for_itself_that_all_use(
    logins: Logins, vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer, method: str
) -> None:
    authorization.accepted = {"us": "secret"}
    upstream.needs = {"tools/list": ("read",)}
    async with served(authorization, upstream):
        engine = logins(
            grant="client_credentials",
            client_id="us",
            client_secret="secret",
            client_authentication=method,
            scopes=("read",),
        )
        alice, bob = Person(engine, upstream, "alice"), Person(engine, upstream, "bob")
        assert [await alice.ask(), await bob.ask(), await alice.ask()] == [200, 200, 200]
        [form] = authorization.of("/token")
        assert form["grant_type"] == "client_credentials"
        assert form["resource"] == upstream.url
        assert None not in upstream.authorizations  # it knew where to ask without being told
        assert vault.kept == {}
        with pytest.raises(LoginFailed, match="nobody's login"):
            await engine.begin("x", "alice", REDIRECT)


async def test_a_challenge_may_have_to_say_where_and_for_what(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.accepted = {"us": "secret"}
    upstream.at = "/elsewhere.json"
    authorization.at = "/.well-known/openid-configuration"
    upstream.needs = {"tools/list": ("read",)}
    async with served(authorization, upstream):
        person = Person(logins(grant="client_credentials", client_id="us", client_secret="secret"), upstream)
        assert await person.ask() == 200
        assert [form.get("scope") for form in authorization.of("/token")] == ["read"]


async def test_a_private_key_proves_who_the_gateway_is(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    private, public = key_pair()
    authorization.keys = {"us": public}
    async with served(authorization, upstream):
        engine = logins(grant="client_credentials", client_id="us", private_key=private)
        assert await Person(engine, upstream).ask() == 200


async def test_a_key_that_is_none_is_not_quoted(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    async with served(authorization, upstream):
        engine = logins(grant="client_credentials", client_id="us", private_key="canary-of-a-key")
        with pytest.raises(LoginFailed, match=r"auth\.private_key") as failed:
            await Person(engine, upstream).ask()
        assert "canary" not in str(failed.value)


async def test_more_scopes_are_got_without_anybody(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.accepted = {"us": "secret"}
    upstream.needs = {"tools/list": ("read",), "tools/call": ("write",)}
    async with served(authorization, upstream):
        person = Person(logins(grant="client_credentials", client_id="us", client_secret="secret"), upstream)
        assert await person.ask() == 200
        assert await person.ask("tools/call") == 200
        assert authorization.of("/token")[-1]["scope"] == "read write"


async def test_an_upstream_that_refuses_every_token_does_not_make_the_gateway_ask_for_ever(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.accepted = {"us": "secret"}
    upstream.refuses = 401, ""
    async with served(authorization, upstream):
        person = Person(logins(grant="client_credentials", client_id="us", client_secret="secret"), upstream)
        for _ in range(5):
            with pytest.raises(LoginFailed, match="just issued"):
                await person.ask()
        assert len(authorization.of("/token")) == 1


async def test_a_refused_workload_is_not_tried_again_at_once(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("a.workload.token\n")
    authorization.token_status = 400
    async with served(authorization, upstream):
        person = Person(logins(grant="jwt_bearer", assertion_file=file), upstream)
        for _ in range(3):
            with pytest.raises(LoginFailed):
                await person.ask()
        [form] = authorization.of("/token")
        assert (form["assertion"], form["grant_type"]) == (
            "a.workload.token",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        )


async def test_a_workload_without_its_token_says_so(
    logins: Logins, authorization: AuthorizationServer, upstream: ProtectedServer, tmp_path: Path
) -> None:
    async with served(authorization, upstream):
        engine = logins(grant="jwt_bearer", assertion_file=tmp_path / "missing")
        with pytest.raises(LoginFailed, match=r"auth\.assertion_file cannot be read: No such file"):
            await Person(engine, upstream).ask()


async def test_callers_tokens_are_exchanged_each_for_its_own(
    vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.accepted = {"gateway": "secret"}
    came_with = {"alice": "token-of-alice", "bob": "token-of-bob"}
    async with served(authorization, upstream):
        exchange = {
            "token_endpoint": f"{authorization.origin}/token",
            "client_id": "gateway",
            "client_secret": "secret",
        }
        auth: Any = {"grant": "token_exchange", "exchange": exchange}
        settings = UpstreamSettings(url=upstream.url, auth=auth)
        engine = UpstreamLogins(vault, {"x": settings}.get, subject_of=came_with.get)
        alice, bob, carol = (Person(engine, upstream, name) for name in ("alice", "bob", "carol"))
        assert [await alice.ask(), await bob.ask(), await alice.ask()] == [200, 200, 200]
        assert await engine.token("x", "alice") != await engine.token("x", "bob")
        asked = [(form["subject_token"], form["audience"], form["resource"]) for form in authorization.of("/token")]
        assert asked == [(token, authorization.issuer, upstream.url) for token in came_with.values()]
        with pytest.raises(LoginFailed, match="token of whoever calls"):
            await carol.ask()
        # The callers' own tokens are for the identity provider alone.
        assert not any(token in str(upstream.authorizations) for token in came_with.values())


async def test_a_gateway_exchanges_the_token_that_its_caller_came_with(
    authorization: AuthorizationServer, upstream: ProtectedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path))
    authorization.accepted = {"gateway": ""}
    async with served(authorization, upstream):
        exchange = {"token_endpoint": f"{authorization.origin}/token", "client_id": "gateway"}
        auth: Any = {"grant": "token_exchange", "exchange": exchange}
        settings = Settings(
            upstreams={"x": UpstreamSettings(url=upstream.url, auth=auth)},
            logins=LoginSettings(key="a key for the tests of logins"),
        )
        came_with = {"alice": CameWith("token-of-alice", "house", {})}
        opened: Any = open_logins(settings, settings.upstreams.get, came_with=came_with.get)
        engine = opened[0]
        assert await Person(engine, upstream, "alice").ask() == 200
        assert [form["subject_token"] for form in authorization.of("/token")] == ["token-of-alice"]


async def test_an_identity_provider_that_issues_something_else_is_refused(
    vault: MemoryVault, authorization: AuthorizationServer, upstream: ProtectedServer
) -> None:
    authorization.accepted = {"gateway": ""}
    authorization.issues = {"issued_token_type": "urn:ietf:params:oauth:token-type:jwt"}
    async with served(authorization, upstream):
        exchange = {"token_endpoint": f"{authorization.origin}/token", "client_id": "gateway", "request": "id_jag"}
        auth: Any = {"grant": "token_exchange", "exchange": exchange}
        engine = UpstreamLogins(
            vault, lambda _: UpstreamSettings(url=upstream.url, auth=auth), subject_of=lambda _: "token"
        )
        with pytest.raises(LoginFailed, match="another kind of token"):
            await Person(engine, upstream).ask()
        assert len(authorization.of("/token")) == 1
