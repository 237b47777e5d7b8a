"""Tokens that are bound to a key (DPoP): proofs, nonces, and when they are used."""

import json
from pathlib import Path
from typing import Any

import jwt
import pytest

from gateway.config.login_settings import LoginSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import GatewayError, LoginFailed, LoginRequired
from gateway.upstream.authorization.challenge import challenge_in
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import Credentials
from gateway.upstream.authorization.proof_key import ProofKey
from gateway.upstream.authorization.vault import open_vault
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.connection import TransportName, connect
from gateway.upstream.connection.deadlines import Deadline
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.redaction import Secrets
from tests.upstream.authorization.binding_servers import BindingServer, BoundServer, Proofs
from tests.upstream.authorization.conftest import Logins, MemoryVault, Person
from tests.upstream.authorization.oauth_servers import RESOURCE, served
from tests.upstream.authorization.test_transports import LIMITS, AlicesTokens, ignored, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def authorization() -> BindingServer:
    return BindingServer()


@pytest.fixture
def upstream(authorization: BindingServer) -> BoundServer:
    return BoundServer(authorization)


async def used(engine: UpstreamLogins, upstream: BoundServer, transport: TransportName = "http", **given: Any) -> None:
    """Open a session for alice, list the tools and call one."""
    url = f"{upstream.origin}/sse" if transport == "sse" else upstream.url
    settings = UpstreamSettings(url=url, **given)
    subject = Subject("x", settings, Secrets(settings), AlicesTokens(engine))
    failed: GatewayError | None = None
    async with connect(transport, subject, ClientIdentity(), HostRequests(1), ignored, lambda _: None) as session:
        try:
            await opened(session)
            await session.request("tools/call", {"name": "look", "arguments": {}}, Deadline(LIMITS))
        except GatewayError as error:
            failed = error
    if failed is not None:
        raise failed


@pytest.mark.parametrize("nonces", [None, "nonce"])
@pytest.mark.parametrize("client", ["gateway", "sdk", "sse"])
async def test_every_request_has_a_proof_of_its_own(
    logins: Logins, authorization: BindingServer, upstream: BoundServer, client: str, nonces: str | None
) -> None:
    authorization.proofs, upstream.proofs = Proofs(nonces), Proofs(nonces and "other")
    if client == "sse":
        upstream.at = f"{RESOURCE}/sse"
    async with served(authorization, upstream):
        if client == "sse":
            engine = logins(grant="client_credentials", client_id="us", client_secret="secret")
            authorization.accepted = {"us": "secret"}
            await used(engine, upstream, "sse")
        else:
            engine = logins()
            await Person(engine, upstream).log_in()
            await used(engine, upstream, http_client=client)
    assert len(upstream.proofs.seen) >= 3
    assert {each.partition(" ")[0] for each in upstream.authorizations if each} == {"DPoP"}
    # Each server's nonces are its own.
    given = [{str(each.get("nonce")) for each in proofs.seen} for proofs in (authorization.proofs, upstream.proofs)]
    assert not given[0] & given[1] - {"None"}


async def test_a_login_has_a_key_of_its_own_that_refreshes_it(
    logins: Logins, vault: MemoryVault, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        engine = logins()
        alice, bob = Person(engine, upstream), Person(engine, upstream, "bob")
        for each in (alice, bob):
            await each.log_in()
            assert await each.ask() == 200
        first = {key.principal: tokens for key, tokens in vault.kept.items()}
        assert first["alice"].proof_key != first["bob"].proof_key
        vault.expire_in(0)
        fresh = logins()  # as after a restart of the gateway
        assert await Person(fresh, upstream).ask() == 200
        kept = {key.principal: tokens for key, tokens in vault.kept.items()}
        assert kept["alice"].access_token != first["alice"].access_token
        assert kept["alice"].proof_key == first["alice"].proof_key
        assert kept["alice"].is_bound
        await alice.log_in()
        assert next(one for key, one in vault.kept.items() if key.principal == "alice").proof_key not in (
            first["alice"].proof_key,
            None,
        )


async def test_a_stolen_token_is_of_no_use_without_its_key(
    logins: Logins, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        alice = Person(logins(), upstream)
        await alice.log_in()
        token = await alice.logins.token("x", "alice")
        assert token is not None
        assert (await alice._sent("tools/list", token)).status_code == 200
        for stolen in (Credentials(token.token), Credentials(token.token, ProofKey.generate())):
            assert (await alice._sent("tools/list", stolen)).status_code == 401


@pytest.mark.parametrize(
    ("server", "resource", "schemes", "dpop", "is_bound"),
    [
        # Both have to be able to.
        ({}, {}, ("DPoP",), None, True),
        ({}, {}, ("Bearer", "DPoP"), None, True),
        ({}, {"dpop_signing_alg_values_supported": ["ES256"]}, ("Bearer",), None, True),
        ({}, {"dpop_bound_access_tokens_required": True}, ("Bearer",), None, True),
        ({}, {}, ("Bearer",), None, False),
        ({}, {"dpop_signing_alg_values_supported": ["EdDSA"]}, ("DPoP",), None, False),
        ({"dpop_signing_alg_values_supported": ["RS256"]}, {}, ("Bearer", "DPoP"), None, False),
        ({"dpop_signing_alg_values_supported": None}, {}, ("Bearer", "DPoP"), None, False),
        # Unless the configuration decides.
        ({}, {}, ("Bearer",), True, True),
        ({"dpop_signing_alg_values_supported": None}, {}, ("Bearer",), True, True),
        ({}, {}, ("Bearer", "DPoP"), False, False),
        ({}, {"dpop_bound_access_tokens_required": True}, ("DPoP",), False, False),
    ],
    ids=str,
)
async def test_tokens_are_bound_where_both_servers_can(
    logins: Logins,
    vault: MemoryVault,
    authorization: BindingServer,
    upstream: BoundServer,
    server: dict[str, Any],
    resource: dict[str, Any],
    schemes: tuple[str, ...],
    dpop: bool | None,
    is_bound: bool,
) -> None:
    authorization.says, upstream.says, upstream.schemes = server, resource, schemes
    upstream.takes_bearer = True
    async with served(authorization, upstream):
        person = Person(logins(dpop=dpop), upstream)
        await person.log_in()
        assert await person.ask() == 200
    (tokens,) = vault.kept.values()
    assert tokens.is_bound == is_bound
    assert bool(authorization.proofs.seen) == bool(upstream.proofs.seen) == is_bound


@pytest.mark.parametrize(
    ("server", "resource", "dpop", "words"),
    [
        ({"dpop_signing_alg_values_supported": ["RS256"]}, {}, True, "other algorithms than ES256"),
        (
            {"dpop_signing_alg_values_supported": ["RS256"]},
            {"dpop_bound_access_tokens_required": True},
            None,
            "other algorithms than ES256",
        ),
    ],
    ids=["configured", "required"],
)
async def test_what_must_be_bound_and_cannot_is_refused(
    logins: Logins,
    authorization: BindingServer,
    upstream: BoundServer,
    server: dict[str, Any],
    resource: dict[str, Any],
    dpop: bool | None,
    words: str,
) -> None:
    authorization.says, upstream.says = server, resource
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match=words):
            await Person(logins(dpop=dpop), upstream).log_in()


@pytest.mark.parametrize("dpop", [True, None])
async def test_a_server_that_issues_a_bearer_token_in_place_of_a_bound_one(
    logins: Logins, vault: MemoryVault, authorization: BindingServer, upstream: BoundServer, dpop: bool | None
) -> None:
    authorization.issues = {"token_type": "Bearer"}
    upstream.takes_bearer = True
    async with served(authorization, upstream):
        person = Person(logins(dpop=dpop), upstream)
        if dpop:
            with pytest.raises(LoginFailed, match="not bound to a key"):
                await person.log_in()
            assert not vault.kept
        else:
            await person.log_in()
            assert await person.ask() == 200


async def test_a_server_that_binds_a_token_to_no_key_is_refused(
    logins: Logins, authorization: BindingServer, upstream: BoundServer
) -> None:
    authorization.issues = {"token_type": "DPoP"}
    async with served(authorization, upstream):
        with pytest.raises(LoginFailed, match="though it was sent none"):
            await Person(logins(dpop=False), upstream).log_in()


async def test_a_refresh_that_is_no_longer_bound_ends_the_login(
    logins: Logins, vault: MemoryVault, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        vault.expire_in(0)
        authorization.issues = {"token_type": "Bearer"}
        with pytest.raises(LoginRequired):
            await person.ask()
        assert not vault.kept


async def test_a_server_that_wants_ever_other_nonces_is_bounded(
    logins: Logins, vault: MemoryVault, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        engine = logins()
        person = Person(engine, upstream)
        await person.log_in()
        upstream.proofs = Proofs("nonce", is_fickle=True)
        for client in ("gateway", "sdk"):
            upstream.proofs.seen.clear()
            with pytest.raises(GatewayError, match="ever other nonces"):
                await used(engine, upstream, http_client=client)
            assert len(upstream.proofs.seen) <= 6  # the first message may be tried as one of another revision as well
        assert vault.kept  # the login may be as good as before
        upstream.proofs = Proofs()
        await used(engine, upstream)
        authorization.proofs = Proofs("nonce", is_fickle=True)
        with pytest.raises(LoginFailed, match="use_dpop_nonce"):
            await Person(engine, upstream, "bob").log_in()
        assert len(authorization.proofs.seen) == 3


async def test_a_proof_that_is_not_accepted_does_not_cost_the_login(
    logins: Logins, vault: MemoryVault, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        person = Person(logins(), upstream)
        await person.log_in()
        upstream.finds_fault = True
        with pytest.raises(LoginFailed, match="does not accept the proof") as failed:
            await person.ask()
        assert "clock" in (failed.value.remedy or "")
        assert vault.kept
        upstream.finds_fault = False
        assert await person.ask() == 200


async def test_the_gateways_own_token_is_bound_once_the_upstream_says_so(
    logins: Logins, authorization: BindingServer, upstream: BoundServer
) -> None:
    async with served(authorization, upstream):
        authorization.accepted = {"us": "secret"}
        engine = logins(grant="client_credentials", client_id="us", client_secret="secret")
        person = Person(engine, upstream)
        assert await person.ask() == 200
        assert len(authorization.of("/token")) == 2  # the first one is a bearer token: nothing said otherwise
        # Once it was said, refusing everything does not make the gateway ask for ever.
        authorization.tokens.clear()
        authorization.issues = {"token_type": "Bearer"}
        with pytest.raises(LoginFailed, match="does not accept the token"):
            await person.ask()
        assert len(authorization.of("/token")) <= 4


async def test_the_key_is_shown_nowhere_and_sealed_with_its_tokens(
    authorization: BindingServer, upstream: BoundServer, tmp_path: Path
) -> None:
    vault = open_vault(LoginSettings(key="k" * 32), tmp_path)
    engine = UpstreamLogins(vault, lambda _: UpstreamSettings(url=upstream.url))
    async with served(authorization, upstream):
        person = Person(engine, upstream)
        key = await person.log_in()
        assert await person.ask() == 200
        token = await engine.token("x", "alice")
    tokens = await vault.get(key)
    assert tokens is not None
    assert tokens.proof_key is not None
    secret = json.loads(tokens.proof_key)["d"]
    for shown in (repr(tokens), repr(token), repr(token and token.key), (tmp_path / "logins.json").read_text("ascii")):
        assert secret not in shown
        assert tokens.access_token not in shown
    assert secret not in json.dumps(
        [jwt.get_unverified_header(token.headers("GET", upstream.url)["dpop"])] if token else ""
    )


@pytest.mark.parametrize(
    ("nonces", "used"),
    [
        (["good"], "good"),
        (["a", "b"], None),
        (['quo"te'], None),
        (["with space"], None),
        (["x" * 1025], None),
        (["x" * 1024], "x" * 1024),
        ([""], None),
        ([], None),
    ],
    ids=range(8),
)
def test_a_nonce_is_used_at_its_server_if_it_can_be_one(nonces: list[str], used: str | None) -> None:
    key = ProofKey.generate()
    key.heed("https://a.example:8443/x?y", nonces)
    said = [
        jwt.decode(key.proof("GET", url), options={"verify_signature": False}).get("nonce")
        for url in ("https://a.example:8443/other", "https://a.example/x", "http://a.example:8443/x")
    ]
    assert said == [used, None, None]


def test_a_proof_names_no_query_fragment_or_user() -> None:
    proof = ProofKey.generate().proof("POST", "https://user:secret@a.example/mcp/?token=secret#x")
    assert jwt.decode(proof, options={"verify_signature": False})["htu"] == "https://a.example/mcp/"


def test_nonces_of_many_servers_are_bounded() -> None:
    key = ProofKey.generate()
    for number in range(20):
        key.heed(f"https://{number}.example/", ["nonce"])
    proofs = [key.proof("GET", f"https://{number}.example/") for number in range(20)]
    with_nonce = [proof for proof in proofs if "nonce" in jwt.decode(proof, options={"verify_signature": False})]
    assert with_nonce == proofs[-8:]


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        (['Bearer error="use_dpop_nonce"'], ""),
        (['Bearer resource_metadata="https://x/"', 'DPoP error="use_dpop_nonce"'], "use_dpop_nonce"),
        (['DPoP error="invalid_dpop_proof", algs="ES256"'], "invalid_dpop_proof"),
        (['DPoP error="invalid_token"'], ""),
    ],
    ids=range(4),
)
def test_what_is_wrong_with_a_proof_is_said_by_its_own_scheme(headers: list[str], error: str) -> None:
    challenge = challenge_in(headers)
    assert challenge.proof_error == error
    assert challenge.takes_proofs == any(each.startswith("DPoP") for each in headers)
