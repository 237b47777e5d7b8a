"""Tokens of an identity provider: which are accepted, whom they identify, and how often it is asked."""

import hmac
import time
from typing import Any

import anyio
import anyio.lowlevel
import jwt
import pytest
from anyio.abc import SocketAttribute, SocketStream
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.issuer_settings import IssuerSettings
from gateway.core.model.grant import Grant
from gateway.errors import FetchFailed
from gateway.serving.access import Access, Identified
from gateway.serving.access.introspection import Introspection
from gateway.serving.access.issuers import _Inquiry
from tests.servers.identity_provider import AUDIENCE, IdentityProvider, unsigned

pytestmark = pytest.mark.anyio


def access(provider: IdentityProvider, scopes: Any = None, public_url: str | None = None, **settings: Any) -> Access:
    if public_url is None:
        settings = {"audience": (AUDIENCE,), **settings}
    issuer = IssuerSettings(issuer=provider.issuer, **settings)
    configured = AccessSettings(issuers={"house": issuer}, scopes=scopes or {})
    return Access(HttpSettings(), configured, public_url=public_url)


async def identify(known: Access, token: str) -> Any:
    return await known.identify(f"Bearer {token}")


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256", "RS256"])
async def test_a_token_identifies_whom_it_belongs_to(provider: IdentityProvider, algorithm: str):
    provider.add_key("other", algorithm)
    found = await identify(access(provider), provider.token("other", scope="mail calendar"))
    assert found == Identified("house:alice", expires=found.expires, scopes=frozenset({"mail", "calendar"}))
    assert found.expires > time.time() + 300  # the clocks may differ


def accepted(now: float) -> tuple[dict[str, Any], ...]:
    """Claims as servers write them."""
    return (
        {"aud": [AUDIENCE, "account"]},
        {"iat": None},
        {"exp": now - 20},
        {"nbf": now + 20},
        {"header": {"typ": "at+jwt"}},
        {"header": {"typ": "application/at+jwt"}},
        {"header": {"typ": "JWT"}},
        {"typ": "Bearer"},
    )


async def test_tokens_as_servers_write_them_are_accepted(provider: IdentityProvider):
    known = access(provider)
    for claims in accepted(time.time()):
        assert (await identify(known, provider.token(**claims))).principal == "house:alice", claims


def refused(now: float) -> tuple[tuple[dict[str, Any], str], ...]:
    """Claims that do not hold, and why a token with them is refused."""
    return (
        ({"exp": 1}, "expired"),
        ({"exp": now - 31}, "expired"),
        ({"exp": None}, "wrong"),
        ({"exp": True}, "wrong"),
        ({"exp": "tomorrow"}, "wrong"),
        ({"exp": 10**400}, "wrong"),
        ({"exp": float("inf")}, "wrong"),
        ({"nbf": -(10**400)}, "wrong"),
        ({"nbf": now + 60}, "wrong"),
        ({"iat": now + 60}, "wrong"),
        ({"aud": "https://other.example.com/mcp"}, "wrong"),
        ({"aud": f"{AUDIENCE}/"}, "wrong"),
        ({"aud": None}, "wrong"),
        ({"aud": []}, "wrong"),
        ({"aud": {AUDIENCE: True}}, "wrong"),
        ({"iss": "https://other.example.com"}, "wrong"),
        ({"iss": None}, "wrong"),
        ({"sub": None}, "wrong"),
        ({"sub": ""}, "wrong"),
        ({"sub": "a\nb"}, "wrong"),
        ({"sub": "a" * 201}, "wrong"),
        ({"typ": "ID"}, "wrong"),
        ({"typ": "Refresh"}, "wrong"),
        ({"cnf": {"jkt": "x"}}, "wrong"),
        ({"header": {"typ": "dpop+jwt"}}, "wrong"),
        ({"header": {"crit": ["b64"], "b64": True}}, "wrong"),
        ({"header": {"kid": "unknown"}}, "wrong"),
        ({"header": {"kid": "k" * 501}}, "wrong"),
        ({"sub": "x" * 20_000}, "wrong"),
    )


async def test_tokens_that_do_not_hold_are_refused(provider: IdentityProvider):
    known = access(provider)
    for claims, fault in refused(time.time()):
        assert await identify(known, provider.token(**claims)) == fault, claims


async def test_the_latest_token_of_an_issuer_may_be_exchanged_while_it_is_valid(provider: IdentityProvider):
    now = time.time()
    issuers = {"house": IssuerSettings(issuer=provider.issuer, audience=(AUDIENCE,))}
    settings = AccessSettings(issuers=issuers, tokens={"bob": TokenSettings(token="a-token-of-bob-that-is-long")})
    moment = [now]
    known = Access(HttpSettings(), settings, clock=lambda: moment[0])
    first, second = provider.token(jti="1"), provider.token(jti="2")
    for token in (first, second, "a-token-of-bob-that-is-long", "nobody's"):
        await identify(known, token)
    came = known.came_with("house:alice")
    assert came is not None
    assert (came.token, came.issuer, came.claims["jti"]) == (second, "house", "2")
    assert known.came_with("bob") is None  # of this gateway alone
    moment[0] = now + 3_600 * 24
    assert known.came_with("house:alice") is None
    moment[0] = now
    known.reconfigure(AccessSettings())
    assert known.came_with("house:alice") is None


def _with_shared_secret(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """A token signed with the public key as if it were a shared secret, which PyJWT itself refuses to make."""
    signed = unsigned(header, claims).removesuffix(".")
    signature = hmac.digest(secret, signed.encode(), "sha256")
    return unsigned(header, claims, signature)


async def test_nobody_signs_in_place_of_the_issuer(provider: IdentityProvider):
    known, claims = access(provider), provider.claims()
    private = ec.generate_private_key(ec.SECP256R1())
    public = provider.keys["first"][1].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header, _, signature = provider.token().split(".")
    forged = [
        unsigned({"alg": "none"}, claims),
        unsigned({"alg": "None", "kid": "first"}, claims),
        unsigned({"alg": "ES256", "kid": "first"}, claims),
        unsigned({"alg": "ES256", "kid": "first"}, claims, b"\0" * 64),
        _with_shared_secret({"alg": "HS256", "kid": "first"}, claims, pem),
        jwt.encode(claims, private, "ES256", {"kid": "first"}),
        jwt.encode(claims, private, "ES256", {"kid": "first", "jwk": {"kty": "EC"}, "jku": "https://evil.example/"}),
        ".".join((header, provider.token(sub="root").split(".")[1], signature)),
    ]
    assert [await identify(known, token) for token in forged] == ["wrong"] * len(forged)


async def test_what_is_no_token_of_the_issuer_is_not_its_business(provider: IdentityProvider):
    known = access(provider)
    for odd in ("x", "a.b.c", "....", "eyJhbGciOiJub25lIn0.W10.", "é", "[" * 5_000 + ".e30.x"):
        assert await identify(known, odd) == "wrong"
    assert provider.asked == []


async def test_only_the_chosen_signatures_count(provider: IdentityProvider):
    provider.add_key("rsa", "RS256")
    known = access(provider, algorithms=("ES256",))
    assert isinstance(await identify(known, provider.token()), Identified)
    assert await identify(known, provider.token("rsa")) == "wrong"


async def test_keys_are_fetched_once_and_again_for_a_new_one_but_not_by_unknown_ones(provider: IdentityProvider):
    known = access(provider)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(identify, known, provider.token())
    assert provider.asked == ["oauth", "openid", "keys"]
    for number in range(20):
        assert await identify(known, provider.token(header={"kid": f"unknown{number}"})) == "wrong"
    assert provider.asked.count("keys") == 1


async def test_a_server_that_cannot_be_asked_makes_no_token_wrong(provider: IdentityProvider):
    provider.is_down = True
    known = access(provider)
    assert await identify(known, provider.token()) == "unavailable"
    asked = list(provider.asked)
    assert await identify(known, provider.token()) == "unavailable"
    assert provider.asked == asked  # not for every request


async def test_metadata_of_another_issuer_is_not_believed(provider: IdentityProvider):
    provider.metadata = {"issuer": "https://evil.example.com"}
    assert await identify(access(provider), provider.token()) == "unavailable"
    assert "keys" not in provider.asked


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/keys", "https://127.0.0.1:1/keys", "https://localhost/keys", "file:///etc/passwd"]
)
async def test_metadata_leads_to_no_private_address(provider: IdentityProvider, url: str):
    provider.metadata = {"jwks_uri": url}
    assert await identify(access(provider), provider.token()) == "unavailable"


async def test_the_place_of_the_keys_may_be_given(provider: IdentityProvider):
    known = access(provider, jwks_url=f"{provider.issuer}/keys")
    assert isinstance(await identify(known, provider.token()), Identified)
    assert provider.asked == ["keys"]


AUDIENCES = {
    "https://tools.example.com/gateway": True,
    "https://tools.example.com/gateway/": True,
    "https://tools.example.com/gateway/mcp": True,
    "https://tools.example.com/gateway/mcp/claude-code": True,
    "https://tools.example.com/gateway/sse": True,
    "https://tools.example.com/gateway/mcp/a/b": True,
    "https://tools.example.com/gateway/mcp/a/b/c": False,
    "https://tools.example.com/gateway/other": False,
    "https://tools.example.com/gatewayother": False,
    "https://tools.example.com/gatewaymcp": False,
    "https://tools.example.com": False,
    "https://tools.example.com/mcp": False,
    "https://tools.example.com.evil.example/gateway": False,
    "": False,
}
"""Whether each is that of a gateway at https://tools.example.com/gateway."""


async def test_the_audience_is_the_gateways_own_address(provider: IdentityProvider):
    known = access(provider, public_url="https://tools.example.com/gateway")
    for audience, is_ours in AUDIENCES.items():
        assert isinstance(await identify(known, provider.token(aud=audience)), Identified) is is_ours, audience


async def test_without_an_address_and_an_audience_no_token_is_meant_for_the_gateway(provider: IdentityProvider):
    known = access(provider, audience=())
    assert await identify(known, provider.token()) == "wrong"


async def test_claims_say_what_a_token_reaches(provider: IdentityProvider):
    names = {
        "principal": "preferred_username",
        "upstreams": "https://gateway.example.com/upstreams",
        "tools": "gateway.tools",
        "profile": "profile",
        "calls_per_minute": "quota",
        "admin": "gateway.admin",
    }
    known = access(provider, claims=names)
    claims: dict[str, Any] = {
        "preferred_username": "Alice.A",
        "https://gateway.example.com/upstreams": ["docs", "git*"],
        "gateway": {"tools": "docs__* github__get_*", "admin": True},
        "profile": "codex",
        "quota": 7,
    }
    found = await identify(known, provider.token(**claims))
    assert found.principal == "house:Alice.A"
    assert found.grant == Grant(("docs", "git*"), ("docs__*", "github__get_*"), 7)
    assert (found.profile, found.is_admin) == ("codex", True)
    bare = await identify(known, provider.token(preferred_username="bob"))
    assert (bare.grant, bare.profile, bare.is_admin) == (Grant((), ()), None, False)
    for odd in (0, -1, "many", True, 1.5):
        assert await identify(known, provider.token(**{**claims, "quota": odd})) == "forbidden"
    assert not (await identify(known, provider.token(**{**claims, "gateway": {"admin": "true"}}))).is_admin


async def test_groups_say_what_a_token_reaches(provider: IdentityProvider):
    groups = {
        "writers": {"upstreams": ["docs"]},
        "readers": {"upstreams": ["github"], "tools": ["github__get_*"]},
        "operators": {"upstreams": [], "admin": True},
    }
    known = access(provider, claims={"groups": "realm_access.roles"}, groups=groups)

    async def member_of(*names: Any) -> Any:
        return await identify(known, provider.token(realm_access={"roles": list(names)}))

    both = await member_of("readers", "writers", "others")
    assert [both.grant.reaches(name) for name in ("docs", "github", "mail")] == [True, True, False]
    tools = ("docs", "write"), ("github", "get_issue"), ("github", "delete")
    assert [both.grant.reaches_tool(*tool) for tool in tools] == [True, True, False]
    assert (await member_of("operators")).is_admin
    assert not both.is_admin
    assert await member_of("others", 1, None) == await member_of() == "forbidden"
    assert await identify(known, provider.token()) == "forbidden"


async def test_principals_of_others_are_not_taken(provider: IdentityProvider):
    bare = access(provider, principal_prefix="")
    assert (await identify(bare, provider.token())).principal == "alice"
    for taken in ("local", "token"):
        assert await identify(bare, provider.token(sub=taken)) == "forbidden"
    assert await identify(bare, provider.token(sub="mcp-gateway itself")) == "wrong"
    by_mail = access(provider, claims={"principal": "email"})
    assert (await identify(by_mail, provider.token(email="a@example.com"))).principal == "house:a@example.com"
    assert isinstance(await identify(by_mail, provider.token(email="a@example.com", email_verified="true")), Identified)
    for odd in (False, "false", "no", 0, []):
        assert await identify(by_mail, provider.token(email="a@example.com", email_verified=odd)) == "forbidden"


@pytest.mark.parametrize("path", ["user.email", "https://example.com/email"])
async def test_an_email_address_that_is_further_in_has_to_be_verified_as_well(provider: IdentityProvider, path: str):
    by_mail = access(provider, claims={"principal": path})

    async def found(**more: Any) -> Any:
        inner = {"email": "a@example.com", **more}
        return await identify(
            by_mail, provider.token(user=inner, **{f"https://example.com/{k}": v for k, v in inner.items()})
        )

    assert (await found()).principal == (await found(email_verified=True)).principal == "house:a@example.com"
    assert await found(email_verified="false") == "forbidden"
    claims = {"user": {"email": "a@example.com"}, "https://example.com/email": "a@example.com"}
    assert await identify(by_mail, provider.token(**claims, email_verified=False)) == "forbidden"


async def test_scopes_that_are_missing(provider: IdentityProvider):
    scopes = {"github__delete_*": ("admin",), "*__write": ("write",)}
    known = access(provider, scopes, required_scopes=("mcp",))
    assert known.required_scopes == ("mcp",)
    assert known.all_scopes == ("admin", "mcp", "write")
    assert await identify(known, provider.token(scope="write")) == "insufficient"
    grant = (await identify(known, provider.token(scope="mcp"))).grant
    assert grant.missing_scopes("github", "delete_repo") == ("admin",)
    assert grant.missing_scopes("github", "write") == ("write",)
    assert grant.missing_scopes("github", "read") == ()
    more = (await identify(known, provider.token(scp=["mcp", "admin write"]))).grant
    assert more.missing_scopes("github", "delete_repo") == more.missing_scopes("docs", "write") == ()


async def test_tokens_of_the_configuration_need_no_scopes(provider: IdentityProvider):
    token = "alice-alice-alice-alice"
    settings = AccessSettings(tokens={"alice": TokenSettings(token=token)}, scopes={"*": ("admin",)})
    found = await identify(Access(HttpSettings(), settings), token)
    assert found.grant.missing_scopes("docs", "read") == ()


INTROSPECTION = {"client_id": "gate way", "client_secret": "s:cret%"}


async def test_a_token_that_says_nothing_is_asked_about(provider: IdentityProvider):
    known = access(provider, introspection_url=f"{provider.issuer}/introspect", **INTROSPECTION)
    provider.opaque = {"opaque-one": provider.claims(iss=None, scope="mail"), "other": provider.claims(aud="other")}
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(identify, known, "opaque-one")
    found = await identify(known, "opaque-one")
    assert (found.principal, found.scopes) == ("house:alice", frozenset({"mail"}))
    assert provider.asked.count("introspection") <= 8
    assert set(provider.credentials) == {"gate%20way:s%3Acret%25"}
    assert await identify(known, "other") == await identify(known, "unknown") == "wrong"


async def test_tokens_of_others_are_not_shown_to_the_server_that_is_asked(provider: IdentityProvider):
    known = access(provider, introspection_url=f"{provider.issuer}/introspect", **INTROSPECTION)
    for own in ("mcpg", "mcpa", "mcpr"):
        assert await identify(known, f"{own}_a-token-of-the-gateway-that-was-removed") == "wrong"
    assert await identify(known, provider.token(iss="https://other.example.com")) == "wrong"
    assert provider.asked == []


async def test_a_server_that_does_not_say_is_unavailable(provider: IdentityProvider):
    known = access(provider, introspection_url=f"{provider.issuer}/introspect", **INTROSPECTION)
    provider.is_down = True
    assert await identify(known, "opaque-one") == "unavailable"


async def test_a_server_that_cannot_be_asked_does_not_keep_out_tokens_of_another(provider: IdentityProvider):
    async with IdentityProvider().running() as other:
        settings = {
            name: IssuerSettings.model_validate(
                {
                    "issuer": one.issuer,
                    "audience": [AUDIENCE],
                    "introspection_url": f"{one.issuer}/introspect",
                    **INTROSPECTION,
                }
            )
            for name, one in (("house", provider), ("other", other))
        }
        known = Access(HttpSettings(), AccessSettings(issuers=settings))
        provider.is_down = True
        other.opaque = {"opaque-one": other.claims(iss=None)}
        assert (await identify(known, "opaque-one")).principal == "other:alice"
        assert await identify(known, "unknown") == "unavailable"  # it may be one of the server's that is down


async def test_a_server_that_never_answers_does_not_keep_tokens_of_another_waiting(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway.serving.access.issuers._PATIENCE", 0.01)
    asked: list[str] = []

    async def never(stream: SocketStream) -> None:
        async with stream:
            asked.append("slow")
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, never)
        slow = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        urls = {"slow": slow, "house": provider.issuer}
        settings = {
            name: IssuerSettings.model_validate(
                {"issuer": url, "audience": [AUDIENCE], "introspection_url": f"{url}/introspect", **INTROSPECTION}
            )
            for name, url in urls.items()
        }
        known = Access(HttpSettings(), AccessSettings(issuers=settings))
        provider.opaque = {"opaque-one": provider.claims(iss=None)}
        with anyio.fail_after(5):  # the slow one has twice as long
            for _ in range(3):
                assert (await identify(known, "opaque-one")).principal == "house:alice"
        assert asked == ["slow"]  # whoever knows a token is asked first
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("said", ["wrong", "unavailable", None])
async def test_what_another_issuer_says_of_a_token_does_not_count_before_a_slow_one_that_knows_it(
    said: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway.serving.access.issuers._PATIENCE", 0.01)
    known, other_has_answered = Identified("house:alice"), anyio.Event()

    class Answering:
        def __init__(self, wait: Any, found: Any) -> None:
            self.wait, self.found = wait, found

        async def verify(self, token: str) -> Any:
            await self.wait()
            if self.found is not known:
                other_has_answered.set()
            return self.found

    async def at_once() -> None:
        await anyio.lowlevel.checkpoint()

    async def outcome(*issuers: Any) -> Any:
        inquiry = _Inquiry("opaque", issuers)
        with anyio.fail_after(5):
            await inquiry.ask()
        return inquiry.outcome

    other = Answering(at_once, said)
    assert await outcome(Answering(other_has_answered.wait, known), other) is known
    assert await outcome(other, Answering(at_once, None)) == said
    assert await outcome(Answering(at_once, "unavailable"), other) == (said or "unavailable")


async def test_wrong_tokens_push_out_no_right_ones(provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.serving.access.introspection._MOST_KEPT", 2)
    asked = Introspection(f"{provider.issuer}/introspect", "gateway", "secret", clock=lambda: 0.0)
    provider.opaque = {"right": provider.claims()}
    assert await asked.claims("right") is not None
    for number in range(3):
        assert await asked.claims(f"wrong{number}") is None
    assert await asked.claims("right") is not None
    assert len(provider.asked) == 4


async def test_tokens_do_not_wait_without_end_to_be_asked_about(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway.serving.access.introspection._MOST_WAITING", 2)
    asked = Introspection(f"{provider.issuer}/introspect", "gateway", "secret")
    refused: list[str] = []

    async def ask(number: int) -> None:
        try:
            await asked.claims(f"opaque{number}")
        except FetchFailed as failed:
            refused.append(str(failed))

    async with anyio.create_task_group() as tasks:
        for number in range(12):  # 8 are asked about at once
            tasks.start_soon(ask, number)
    assert len(refused) == 2
    assert all("too many tokens wait" in words for words in refused)


async def test_an_issuer_is_removed_while_the_gateway_runs(provider: IdentityProvider):
    known = access(provider)
    found = await identify(known, provider.token())
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(known.ended, found, f"Bearer {provider.token()}")
            known.narrow({"issuers": {"house": {"issuer": provider.issuer, "clock_skew": "${unset}"}}})
            assert isinstance(await identify(known, provider.token()), Identified)
            known.narrow({"issuers": {}})
    assert await identify(known, provider.token()) == "wrong"
    assert known.needs_token
    assert known.authorization_servers == ()
