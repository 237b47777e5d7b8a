"""Logging in with the company's account: the gateway as a client of an OpenID Connect provider.

The provider is named by the configuration, so its URLs are trusted, but not its answers: issuer (also `iss` in the
redirect, RFC 9207), audience, nonce, times and signature of the ID token are checked, and the answer counts only in the
browser that began the login.
"""

import hashlib
import json
import logging
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt

from gateway.config.authorization_settings import OidcSettings
from gateway.core.fact_words import plain
from gateway.core.model.claims import claim_in
from gateway.core.model.json_values import as_list, as_text
from gateway.errors import FetchError
from gateway.serving.access.read_json import post_form, read_json
from gateway.serving.access.signing_keys import SigningKeys
from gateway.serving.authorization.approvals import digest
from gateway.serving.authorization.pending_requests import PendingLogin, PendingRequests
from gateway.serving.authorization.program_endpoints import Form
from gateway.system.loopback import is_loopback

_ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Signatures with the provider's public keys: neither `none` nor one with a shared key."""
_REMEMBERED_SECONDS = 3_600.0
_LEEWAY_SECONDS = 60
_MOST_CLAIMS = 8_000
"""Characters of the claims that are kept of a login, as JSON."""

logger = logging.getLogger(__name__)


class LoginFailed(Exception):
    """Somebody could not log in; the message is for the person, and names no secret."""


@dataclass(frozen=True)
class _Provider:
    """The provider's metadata."""

    authorize: str
    token: str
    keys: str
    sends_issuer: bool
    takes_basic: bool


class CompanyLogin:
    """Logins at one provider. `redirect_uri` is the gateway's own, as registered there."""

    def __init__(
        self,
        settings: OidcSettings,
        redirect_uri: str,
        logins: PendingRequests[PendingLogin],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._redirect_uri = redirect_uri
        self._clock = clock
        self._logins = logins
        self._provider: tuple[float, _Provider] | None = None
        self._keys = SigningKeys(self._key_set, clock)

    async def begin(self, cookie: str, query: str) -> str:
        """Begin the login of a browser, and return the provider's page. Raises LoginFailed."""
        provider = await self._metadata()
        login = PendingLogin(digest(cookie), query, token_urlsafe(32), token_urlsafe(48))
        challenge = urlsafe_b64encode(hashlib.sha256(login.verifier.encode("ascii")).digest()).rstrip(b"=")
        parameters = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self.settings.scopes),
            "state": await self._logins.put(login),
            "nonce": login.nonce,
            "code_challenge": challenge.decode("ascii"),
            "code_challenge_method": "S256",
        }
        return f"{provider.authorize}{'&' if '?' in provider.authorize else '?'}{urlencode(parameters)}"

    async def complete(self, cookie: str | None, answer: Form) -> tuple[str, str, Mapping[str, Any]]:
        """Return the principal, the query of the request to `/authorize` for which the login was begun, and the claims.

        Raises:
            LoginFailed: the answer is not one to a login of this browser, or the provider refused.
        """
        login = await self._logins.take(answer.get("state") or "", cookie)
        if login is None:
            raise LoginFailed("This login was not begun in this browser, or took too long. Begin again in the host.")
        provider = await self._metadata()
        issuer = answer.get("iss")
        if issuer != self.settings.issuer and (issuer is not None or provider.sends_issuer):
            raise LoginFailed("The answer comes from another provider than the one that was asked.")
        code = answer.get("code")
        if code is None or answer.get("error") is not None:
            raise LoginFailed("The provider did not log you in.")
        claims = await self._claims(await self._exchanged(provider, code, login.verifier))
        if claims.get("nonce") != login.nonce:
            raise LoginFailed("The provider's answer belongs to another login.")
        return self._principal(claims), login.query, claims

    def _principal(self, claims: Mapping[str, Any]) -> str:
        name = self.settings.principal_claim
        value = as_text(claims.get(name))
        if not value:
            raise LoginFailed(f"Your account has no {name}, which says here who you are.")
        if name != "email":
            return value
        if claims.get("email_verified") is not True:
            raise LoginFailed("The address of your account is not verified.")
        return value.lower()

    async def _metadata(self) -> _Provider:
        if self._provider is not None and self._provider[0] > self._clock():
            return self._provider[1]
        issuer = self.settings.issuer
        try:
            found = await read_json(f"{issuer.rstrip('/')}/.well-known/openid-configuration", trusted=issuer)
        except FetchError as error:
            raise LoginFailed(f"The provider cannot be asked: {error.message}.") from error
        if found.get("issuer") != issuer:
            raise LoginFailed("The provider names itself otherwise than the configuration does.")
        methods = as_list(found.get("token_endpoint_auth_methods_supported"))
        provider = _Provider(
            authorize=_address(found, "authorization_endpoint"),
            token=_address(found, "token_endpoint"),
            keys=_address(found, "jwks_uri"),
            sends_issuer=found.get("authorization_response_iss_parameter_supported") is True,
            takes_basic=not methods or "client_secret_basic" in methods,
        )
        self._provider = (self._clock() + _REMEMBERED_SECONDS, provider)
        return provider

    async def _exchanged(self, provider: _Provider, code: str, verifier: str) -> str:
        """Exchange the code, and return the ID token."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        client_id, secret = self.settings.client_id, self.settings.client_secret
        auth: tuple[str, str] | None = None
        if secret is not None and provider.takes_basic:
            auth = quote(client_id, safe=""), quote(secret, safe="")
        else:
            form |= {"client_id": client_id} | ({} if secret is None else {"client_secret": secret})
        try:
            token = as_text((await post_form(provider.token, form, auth)).get("id_token"))
        except FetchError as error:
            raise LoginFailed(f"The provider cannot be asked: {error.message}.") from error
        if token is None:
            raise LoginFailed("The provider gave no ID token.")
        return token

    async def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = str(header.get("alg")), as_text(header.get("kid"))
            key = await self._keys.find(key_id, algorithm) if algorithm in _ALGORITHMS else None
            if key is None:
                raise LoginFailed("The provider's ID token is not signed with a key of its own.")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise LoginFailed(f"The provider's ID token is not valid ({type(error).__name__}).") from error
        except FetchError as error:
            raise LoginFailed(f"The provider's keys cannot be read: {error.message}.") from error
        if claims.get("azp", self.settings.client_id) != self.settings.client_id:
            raise LoginFailed("The provider's ID token is for another program.")
        return claims

    async def _key_set(self) -> Mapping[str, Any]:
        return await read_json((await self._metadata()).keys, trusted=self.settings.issuer)


def _address(metadata: Mapping[str, Any], name: str) -> str:
    """Return an endpoint of the provider. Raises LoginFailed if it is missing, or not over TLS."""
    address = as_text(metadata.get(name)) or ""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return address
    raise LoginFailed(f"The provider has no usable {name}.")


def kept_claims(claims: Mapping[str, Any], names: Collection[str]) -> str:
    """Return those of the claims that have these names, or paths, as JSON. Those that are too large are left out."""
    kept: dict[str, Any] = {}
    left = _MOST_CLAIMS
    for name in sorted(names):
        if (value := claim_in(claims, name)) is not None:
            size = len(json.dumps({name: value}))
            if size > left:
                logger.warning("the claim %s of an account is left out: all together are too large", plain(name))
                continue
            kept[name], left = value, left - size
    return json.dumps(kept)
