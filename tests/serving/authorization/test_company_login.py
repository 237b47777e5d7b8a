"""Logging in with the company's account, and providers, browsers and tokens that are not what they should be."""

import json
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.serving.authorization.company_login import kept_claims
from tests.serving.authorization.conftest import BASE, Browser, Gateway, parameters_in, passphrase_hash, settings_of
from tests.serving.authorization.sites import Reply, site

KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
CALLBACK = f"{BASE}/authorize/callback"


class Company:
    """The company's provider: what it says of itself, and of whoever logs in, can be changed."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.claims: dict[str, Any] = {"email": "Alice@Example.com", "email_verified": True}
        self.header: dict[str, Any] = {}
        self.key: Any = KEY
        self.algorithm = "ES256"
        self.exchanged: list[dict[str, str]] = []
        self.token_status = 200

    def begin(self, address: str) -> None:
        self.issuer = f"http://{address}"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "client_id": "the gateway",
            "client_secret": "a secret:of the gateway",
            "name": "Example Corp",
            "people": ["*@example.com"],
            "tools": ["docs__*"],
        }

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        match path:
            case "/.well-known/openid-configuration":
                return self._json(
                    {
                        "issuer": self.issuer,
                        "authorization_endpoint": f"{self.issuer}/login",
                        "token_endpoint": f"{self.issuer}/token",
                        "jwks_uri": f"{self.issuer}/keys",
                        **self.metadata,
                    }
                )
            case "/keys":
                key = jwt.get_algorithm_by_name("ES256").to_jwk(KEY.public_key(), as_dict=True)
                return self._json({"keys": [{**key, "kid": "first", "use": "sig"}]})
            case "/token":
                self.exchanged.append({**dict(parse_qsl(body.decode())), "auth": headers.get("Authorization", "")})
                return self._json({"id_token": self.token(), "access_token": "x"}, self.token_status)
            case _:
                return Reply(404)

    def token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "1", "aud": "the gateway", "iat": now, "exp": now + 60, **self.claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, self.key, self.algorithm, {"kid": "first", **self.header})

    def _json(self, document: Mapping[str, Any], status: int = 200) -> Reply:
        return Reply(status, {"Content-Type": "application/json"}, json.dumps(document).encode())

    def log_in(self, gateway: Gateway, client_id: str, browser: Browser | None = None, **answer: str | None) -> Browser:
        """Let somebody log in here; `answer` changes what the browser is sent back with."""
        browser = browser or gateway.browser()
        browser.open(client_id)
        began = browser.http.get(f"/authorize/company?{urlsplit(str(browser.page.url)).query}")
        assert began.status_code == 303, began.text
        asked = dict(parse_qsl(urlsplit(began.headers["location"]).query))
        assert asked["redirect_uri"] == CALLBACK
        self.claims.setdefault("nonce", asked["nonce"])
        given = {"code": "a code", "state": asked["state"], "iss": self.issuer, **answer}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        browser.page = browser.http.get(f"/authorize/callback?{query}")
        if browser.page.status_code == 303:
            browser.page = browser.http.get(browser.page.headers["location"])
        return browser


@pytest.fixture
def company() -> Generator[Company]:
    made = Company()
    with site(made.answer) as address:
        made.begin(address)
        yield made


@pytest.fixture
def gateway(opened: Callable[..., Any], company: Company) -> Generator[Gateway]:
    with opened({"oidc": company.settings}, {}) as gateway:
        yield gateway


def test_an_account_of_the_company_is_enough(gateway: Gateway, company: Company) -> None:
    client_id = gateway.register()["client_id"]
    browser = company.log_in(gateway, client_id)
    assert "alice@example.com" in browser.text
    assert "docs: the tools *" in browser.text
    code = parameters_in(browser.send("approve"))["code"]
    token = gateway.exchange(client_id, code).json()["access_token"]
    assert gateway.status_of(token) == 200
    [exchanged] = company.exchanged
    assert exchanged["auth"].startswith("Basic ")
    assert len(exchanged["code_verifier"]) >= 43
    assert "client_secret" not in exchanged


def test_the_page_offers_the_companys_account_and_no_passphrase(gateway: Gateway) -> None:
    browser = gateway.browser()
    browser.open(gateway.register()["client_id"])
    assert "Continue with Example Corp" in browser.text
    assert 'name="passphrase"' not in browser.page.text
    assert browser.send("login", name="", passphrase="").status_code == 403


def test_a_person_of_the_configuration_may_log_in_with_the_companys_account(
    opened: Callable[..., Any], company: Company
) -> None:
    people = {"alice@example.com": {"upstreams": ["github"]}, "bob": {"hash": passphrase_hash()}}
    with opened({"oidc": company.settings}, people) as gateway:
        browser = company.log_in(gateway, gateway.register()["client_id"])
        assert "github: all tools" in browser.text
        assert "docs" not in browser.text


def test_whoever_is_removed_from_a_configuration_that_cannot_be_applied_does_not_reach_more(
    opened: Callable[..., Any], company: Company
) -> None:
    people = {"alice@example.com": {"upstreams": ["github"]}, "bob": {"hash": passphrase_hash()}}
    with opened({"oidc": company.settings}, people) as gateway:
        client_id = gateway.register()["client_id"]
        browser = company.log_in(gateway, client_id)
        code = parameters_in(browser.send("approve"))["code"]
        token = gateway.exchange(client_id, code).json()["access_token"]
        gateway.server.narrow({"bob": people["bob"]})
        assert gateway.status_of(token) == 401
        company.claims.pop("nonce")
        assert company.log_in(gateway, client_id).page.status_code == 403
        gateway.server.narrow(people)
        assert gateway.status_of(token) == 401
        gateway.server.reconfigure(settings_of({"oidc": company.settings}, people, {}))
        assert gateway.status_of(token) == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "that of another login"},
        {"iss": "https://other.example"},
        {"aud": "another program"},
        {"aud": ["the gateway", "another program"], "azp": "another program"},
        {"exp": 1_500_000_000},
        {"iat": 2**33},
        {"exp": None},
        {"sub": None},
        {"email": None},
        {"email": 7},
        {"email_verified": False},
        {"email_verified": None},
        {"email": "alice@elsewhere.example"},
        {"email": "local"},
        {"email": "a b@example.com"},
    ],
)
def test_an_id_token_that_is_not_for_this_login_is_refused(gateway: Gateway, company: Company, claims: Any) -> None:
    company.claims.update(claims)
    assert company.log_in(gateway, gateway.register()["client_id"]).page.status_code == 403


def test_a_token_that_the_provider_has_not_signed_is_refused(gateway: Gateway, company: Company) -> None:
    client_id = gateway.register()["client_id"]
    public = KEY.public_key().public_numbers()
    for key, algorithm, header in (
        (OTHER_KEY, "ES256", {}),
        (KEY, "ES256", {"kid": "unknown"}),
        (None, "none", {}),
        (f"{public.x}" * 2, "HS256", {}),
    ):
        company.key, company.algorithm, company.header = key, algorithm, header
        company.claims.pop("nonce", None)
        assert company.log_in(gateway, client_id).page.status_code == 403


@pytest.mark.parametrize(
    "answer",
    [
        {"iss": "https://other.example"},
        {"state": "x" * 43},
        {"state": None},
        {"code": None},
        {"error": "access_denied"},
    ],
)
def test_an_answer_to_another_login_is_refused(gateway: Gateway, company: Company, answer: Any) -> None:
    assert company.log_in(gateway, gateway.register()["client_id"], **answer).page.status_code == 403
    assert company.exchanged == []


def test_a_provider_that_says_that_it_names_itself_has_to(gateway: Gateway, company: Company) -> None:
    company.metadata["authorization_response_iss_parameter_supported"] = True
    client_id = gateway.register()["client_id"]
    assert company.log_in(gateway, client_id, iss=None).page.status_code == 403


def test_a_login_counts_in_its_own_browser_and_once(gateway: Gateway, company: Company) -> None:
    client_id = gateway.register()["client_id"]
    mine, thief = gateway.browser(), gateway.browser()
    mine.open(client_id)
    thief.open(client_id)
    began = mine.http.get(f"/authorize/company?{urlsplit(str(mine.page.url)).query}")
    asked = dict(parse_qsl(urlsplit(began.headers["location"]).query))
    query = urlencode({"code": "a code", "state": asked["state"], "iss": company.issuer})
    company.claims["nonce"] = asked["nonce"]
    assert thief.http.get(f"/authorize/callback?{query}").status_code == 403
    assert mine.http.get(f"/authorize/callback?{query}").status_code == 403


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example"},
        {"authorization_endpoint": "http://other.example/login"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": None},
    ],
)
def test_a_provider_that_is_not_the_configured_one_is_refused(
    gateway: Gateway, company: Company, metadata: Any
) -> None:
    company.metadata = metadata
    browser = gateway.browser()
    browser.open(gateway.register()["client_id"])
    answer = browser.http.get(f"/authorize/company?{urlsplit(str(browser.page.url)).query}")
    assert answer.status_code == 403


def test_a_provider_that_is_gone_is_told(opened: Callable[..., Any], company: Company) -> None:
    with site(company.answer) as gone:
        pass
    with opened({"oidc": {**company.settings, "issuer": f"http://{gone}"}}, {}) as gateway:
        browser = gateway.browser()
        browser.open(gateway.register()["client_id"])
        answer = browser.http.get(f"/authorize/company?{urlsplit(str(browser.page.url)).query}")
        assert answer.status_code == 403
        assert "cannot be asked" in answer.text


def test_a_provider_that_refuses_the_code_is_told(gateway: Gateway, company: Company) -> None:
    company.token_status = 400
    browser = company.log_in(gateway, gateway.register()["client_id"])
    assert browser.page.status_code == 403
    assert "answered 400" in browser.text
    assert "a secret" not in browser.text


def test_without_a_provider_nobody_is_sent_to_one(opened: Callable[..., Any]) -> None:
    with opened() as gateway:
        browser = gateway.browser()
        browser.open(gateway.register()["client_id"])
        query = urlsplit(str(browser.page.url)).query
        assert browser.http.get(f"/authorize/company?{query}").status_code == 400
        assert browser.http.get("/authorize/callback?code=x&state=y").status_code == 400


def test_the_claims_that_upstreams_are_told_are_kept_and_no_others(
    opened: Callable[..., Any], company: Company
) -> None:
    told = {"X-Dept": "dept", "X-Groups": "realm.groups", "X-Who": "principal", "X-Absent": "absent"}
    upstreams = {"docs": {"url": "https://docs.example/mcp", "headers_from_claims": told}}
    company.claims |= {"dept": "sales", "realm": {"groups": ["a", "b"], "secret": "no"}, "phone": "1"}
    with opened({"oidc": company.settings}, {}, tables={"upstreams": upstreams}) as gateway:
        client_id = gateway.register()["client_id"]
        code = parameters_in(company.log_in(gateway, client_id).send("approve"))["code"]
        tokens = gateway.exchange(client_id, code).json()
        assert gateway.access.came_with("alice@example.com") is None
        assert gateway.status_of(tokens["access_token"]) == 200
        found = gateway.access.came_with("alice@example.com")
        assert found is not None
        assert (found.issuer, found.token) == ("authorization_server", None)  # which goes to no upstream
        assert found.claims == {"dept": "sales", "realm.groups": ["a", "b"]}


def test_claims_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    claims = {"large": "x" * 10_000, "small": "y", "many": list(range(5_000)), "deep": {"a": {"b": 1}}}
    assert json.loads(kept_claims(claims, set(claims) | {"deep.a.b", "none"})) == {
        "small": "y",
        "deep": {"a": {"b": 1}},
        "deep.a.b": 1,
    }
    assert "the claim large of an account is left out" in caplog.text
