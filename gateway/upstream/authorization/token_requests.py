"""Requests to the token endpoint of an authorization server, and to the one that revokes."""

import base64
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, quote_plus, unquote, urlencode

import jwt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gateway.config.upstream_auth_settings import TokenExchangeSettings, UpstreamAuthSettings
from gateway.upstream.authorization.challenge import NONCE_WANTED, scopes_in
from gateway.upstream.authorization.ports import ClientIdentification
from gateway.upstream.authorization.proof_key import ProofKey
from gateway.upstream.authorization.refusals import Refused
from gateway.upstream.authorization.server_client import Answer, ServerClient

_FORM = {"content-type": "application/x-www-form-urlencoded"}
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 60
_MOST_NONCES = 2
"""How often a request is repeated because the server wants another nonce in its proof (RFC 9449, section 8)."""
_PUBLIC = frozenset(
    {
        *("grant_type", "client_id", "redirect_uri", "resource", "scope", "audience"),
        *("client_assertion_type", "subject_token_type", "requested_token_type"),
    }
)
"""The parameters of a request that may be shown; every other is a secret."""
_ModelT = TypeVar("_ModelT", bound=BaseModel)

_TOKEN_TYPES: Mapping[str, str] = {
    name: f"urn:ietf:params:oauth:token-type:{name.replace('id_jag', 'id-jag')}"
    for name in ("access_token", "id_token", "jwt", "id_jag")
}

SENDABLE = r"^[\x21-\x7e]{1,16384}$"
"""A token that can be sent in a header, and cannot add another one."""


class IssuedTokens(BaseModel):
    """The answer of a token endpoint (RFC 6749, section 5.1)."""

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(pattern=SENDABLE, repr=False)
    token_type: Annotated[str, Field(pattern=r"^(?i:bearer|dpop)$")] | None = None
    expires_in: float | None = None
    scope: str | None = None
    refresh_token: str | None = Field(default=None, min_length=1, max_length=16_384, repr=False)

    @field_validator("expires_in", mode="before")
    @classmethod
    def _is_a_time(cls, given: Any) -> Any:
        # Servers that send text, or nothing that is a number, mean no harm; a token that never expires is refreshed
        # when it is refused.
        try:
            seconds = float(given)
        except (TypeError, ValueError, OverflowError):
            return None
        return seconds if 0 <= seconds < 1e10 else None

    @property
    def is_bound(self) -> bool:
        """Whether the access token is bound to the key of the request (RFC 9449, section 5)."""
        return (self.token_type or "").lower() == "dpop"

    @property
    def expires(self) -> float | None:
        """When the access token becomes invalid, in seconds since the epoch."""
        return None if self.expires_in is None else time.time() + self.expires_in

    def granted(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Return the scopes of the token: if the server names none, those that were asked for."""
        return tuple(asked) if self.scope is None else scopes_in(self.scope)


class ExchangedToken(BaseModel):
    """The answer to an exchange (RFC 8693, section 2.2.1); what it is for is another's to judge."""

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(pattern=SENDABLE, repr=False)
    issued_token_type: str


class TokenEndpoint:
    """The token endpoint of one authorization server, asked by one client."""

    def __init__(
        self,
        http: ServerClient,
        url: str,
        issuer: str,
        client: ClientIdentification,
        settings: UpstreamAuthSettings,
        key: ProofKey | None = None,
    ) -> None:
        """With a `key`, tokens are requested that are bound to it."""
        self._key = key
        self._http = http
        self._url = url
        self._issuer = issuer
        self._client = client
        self._settings = settings

    async def with_code(self, code: str, redirect_uri: str, verifier: str, resource: str | None) -> IssuedTokens:
        """Exchange an authorization code."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        return await self._tokens({**form, "code_verifier": verifier}, resource)

    async def with_refresh_token(self, refresh_token: str, resource: str | None) -> IssuedTokens:
        """Refresh an access token."""
        return await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token}, resource)

    async def with_client_credentials(self, scopes: Sequence[str], resource: str | None) -> IssuedTokens:
        """Get a token for the gateway itself."""
        return await self._tokens({"grant_type": "client_credentials"}, resource, scopes)

    async def with_assertion(self, assertion: str, scopes: Sequence[str], resource: str | None) -> IssuedTokens:
        """Get a token for whoever an assertion is about (RFC 7523, section 2.1)."""
        form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        return await self._tokens(form, resource, scopes)

    async def exchanged(
        self, token: str, exchange: TokenExchangeSettings, audience: str, scopes: Sequence[str], resource: str | None
    ) -> IssuedTokens | str:
        """Exchange the token of a caller (RFC 8693): for tokens, or for a grant that another server takes."""
        wanted = _TOKEN_TYPES[exchange.request]
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": token,
            "subject_token_type": _TOKEN_TYPES[exchange.subject],
            "requested_token_type": wanted,
            "audience": exchange.audience or audience,
        }
        answer = await self._granted(form, resource, scopes)
        if exchange.request == "access_token":
            return self._issued(answer)
        issued = _read(ExchangedToken, answer)
        if issued.issued_token_type != wanted:
            raise Refused("its identity provider issued another kind of token than was asked for")
        return issued.access_token

    async def revoke(self, url: str, token: str) -> None:
        """Revoke a token at `url` (RFC 7009). Raises Refused if that fails."""
        answer = await self._post(url, {"token": token})
        if answer.status >= 300:
            raise Refused(f"its authorization server did not revoke the token ({answer.cause})", error=answer.error)

    async def _tokens(self, form: Mapping[str, str], resource: str | None, scopes: Sequence[str] = ()) -> IssuedTokens:
        return self._issued(await self._granted(form, resource, scopes))

    def _issued(self, answer: Answer) -> IssuedTokens:
        issued = _read(IssuedTokens, answer)
        if issued.is_bound and self._key is None:
            raise Refused("its authorization server bound a token to a key (DPoP), though it was sent none")
        return issued

    async def _granted(self, form: Mapping[str, str], resource: str | None, scopes: Sequence[str]) -> Answer:
        asked = dict(form)
        if resource is not None:
            asked["resource"] = resource
        if scopes:
            asked["scope"] = " ".join(scopes)
        answer = await self._post(self._url, asked, self._key)
        for _ in range(_MOST_NONCES):
            if self._key is None or answer.status < 400 or answer.error != NONCE_WANTED:
                break
            answer = await self._post(self._url, asked, self._key)
        if answer.status not in (200, 201):
            raise Refused(
                f"its authorization server refused a token ({answer.cause})",
                error=answer.error,
                is_passing=answer.status >= 500 or answer.status == 429,
            )
        return answer

    async def _post(self, url: str, form: Mapping[str, str], key: ProofKey | None = None) -> Answer:
        sent, headers = dict(form), dict(_FORM)
        if key is not None:
            headers["dpop"] = key.proof("POST", url)
        client = self._client
        match client.authentication:
            case "client_secret_basic" if client.client_secret is not None:
                # Each is form-encoded before they are joined (RFC 6749, 2.3.1).
                pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
                headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
            case "client_secret_post" if client.client_secret is not None:
                sent |= {"client_id": client.client_id, "client_secret": client.client_secret}
            case "private_key_jwt":
                sent |= {"client_id": client.client_id, "client_assertion_type": _ASSERTION}
                sent["client_assertion"] = self._signed_assertion()
            case _ if client.client_id:
                sent["client_id"] = client.client_id
            case _:
                pass
        answer = await self._http.post(url, headers, urlencode(sent).encode("ascii"))
        if key is not None:
            key.heed(url, answer.nonces)
        return answer.hiding(_secrets_in(sent, headers))

    def _signed_assertion(self) -> str:
        """Return a JWT that proves who the client is (RFC 7523, 2.2), for this server and no other."""
        settings, now = self._settings, int(time.time())
        claims = {
            "iss": self._client.client_id,
            "sub": self._client.client_id,
            "aud": self._issuer,
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
            "jti": uuid.uuid4().hex,
        }
        headers = {} if settings.key_id is None else {"kid": settings.key_id}
        try:
            return jwt.encode(claims, settings.private_key or "", settings.signing_algorithm, headers)
        except (jwt.PyJWTError, ValueError, TypeError):
            # Its message might quote the key.
            raise Refused(
                f"auth.private_key cannot sign with {settings.signing_algorithm}",
                remedy="check auth.private_key and auth.signing_algorithm",
            ) from None


def _secrets_in(form: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    """Yield what nobody may see of a request, in all forms in which a server may repeat it."""
    basic = headers.get("authorization", "").removeprefix("Basic ")
    if basic:
        yield basic
        pair = base64.b64decode(basic).decode("ascii")
        yield pair
        yield unquote(pair.partition(":")[2])
        yield pair.partition(":")[2]
    for name, value in form.items():
        if name not in _PUBLIC:
            yield from (value, quote(value, safe=""), quote_plus(value))


def _read(model: type[_ModelT], answer: Answer) -> _ModelT:
    try:
        return model.model_validate({key: value for key, value in (answer.json or {}).items() if value is not None})
    except ValidationError:
        raise Refused("its authorization server answered without a token that can be used") from None
