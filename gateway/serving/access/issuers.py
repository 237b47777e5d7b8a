"""The authorization servers of others whose tokens are accepted, as the configuration names them."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import jwt

from gateway.config.issuer_settings import IssuerSettings
from gateway.core.model.json_values import as_object, as_text
from gateway.errors import FetchFailed, FetchRefused
from gateway.serving.access.claims import Audience, TokenRefused, check_claims, identify
from gateway.serving.access.identified import Fault, Identified
from gateway.serving.access.introspection import Introspection
from gateway.serving.access.read_json import read_json
from gateway.serving.access.signing_keys import SigningKeys
from gateway.serving.http import RepeatedLines

logger = logging.getLogger(__name__)

_LONGEST_TOKEN = 16_384
_LONGEST_KEY_ID = 500
_PATIENCE = 1.0
"""Seconds after which the next issuer is asked about a token, besides one that has not answered yet."""
_TYPES = frozenset({"at+jwt", "jwt"})
"""Types of tokens in their header (RFC 9068); many servers name none."""

_jws = jwt.PyJWS()


class Issuers:
    """The configured issuers. Their keys stay known while their settings stay the same."""

    def __init__(self, public_url: str | None) -> None:
        self._public_url = public_url
        self._by_name: dict[str, Issuer] = {}

    async def verify(self, token: str) -> Identified | Fault | None:
        """Return whom a token identifies, or what is wrong with it; None if it is of none of the issuers.

        They come in the order of the configuration. Those that are asked about each token come last, the one that knew
        it before the others. One that does not answer soon does not keep the next one from being asked.
        """
        found: Identified | Fault | None = None
        for one in [one for one in self._by_name.values() if not one.is_asked]:
            found = await one.verify(token) or found
            if _is_over(found):
                return found
        asked = [one for one in self._by_name.values() if one.is_asked]
        inquiry = _Inquiry(token, sorted(asked, key=lambda one: not one.knows(token)))
        await inquiry.ask()
        return inquiry.outcome or found

    @property
    def urls(self) -> tuple[str, ...]:
        """Their URLs."""
        return tuple(one.settings.issuer for one in self._by_name.values())

    @property
    def required_scopes(self) -> tuple[str, ...]:
        """The scopes that tokens of the first issuer, where hosts go first, need."""
        return next((one.settings.required_scopes for one in self._by_name.values()), ())

    def reconfigure(self, settings: Mapping[str, IssuerSettings]) -> None:
        """Apply changed settings."""
        self._by_name = {name: self._issuer(name, one) for name, one in settings.items()}

    def _issuer(self, name: str, settings: IssuerSettings) -> "Issuer":
        before = self._by_name.get(name)
        if before is not None and before.settings == settings:
            return before
        return Issuer(name, settings, self._public_url)

    def narrow(self, written: Mapping[str, Any]) -> None:
        """Drop the issuers whose tables are gone, or name another server."""
        self._by_name = {
            name: one
            for name, one in self._by_name.items()
            if as_object(written.get(name)).get("issuer") == one.settings.issuer
        }


class Issuer:
    """One issuer: verifies its access tokens, by their signatures or by asking about them."""

    def __init__(
        self, name: str, settings: IssuerSettings, public_url: str | None, clock: Callable[[], float] = time.time
    ) -> None:
        self.settings = settings
        self._name = name
        self._audience = Audience(settings.audience, public_url)
        self._clock = clock
        self._keys = SigningKeys(self._read_keys)
        self._asked = _introspection(settings)
        self._lines = RepeatedLines(logger)

    @property
    def is_asked(self) -> bool:
        """Whether it is asked about each token."""
        return self._asked is not None

    def knows(self, token: str) -> bool:
        """Whether it has said of a token that it is valid."""
        return self._asked is not None and self._asked.knows(token)

    async def verify(self, token: str) -> Identified | Fault | None:
        """Return whom a token of this issuer identifies, or what is wrong with it; None if it is not of this issuer."""
        if len(token) > _LONGEST_TOKEN:
            return None
        try:
            if (claims := await self._claims(token)) is None:
                return None
            expires = check_claims(claims, self.settings, self._audience, self._clock())
            return identify(self._name, self.settings, claims, expires)
        except TokenRefused as refused:
            if refused.fault != "expired":  # which every token does
                self._lines.warn(str(refused), f"a token of issuer {self._name} is refused: {refused}")
            return refused.fault
        except (FetchFailed, FetchRefused) as failed:
            self._lines.warn("failed", f"tokens of issuer {self._name} cannot be checked: {failed}")
            return "unavailable"

    async def _claims(self, token: str) -> Mapping[str, Any] | None:
        return await (self._signed_claims(token) if self._asked is None else self._asked_claims(token, self._asked))

    async def _signed_claims(self, token: str) -> Mapping[str, Any] | None:
        parts = _parts(token)
        if parts is None or parts[1].get("iss") != self.settings.issuer:
            return None
        header, claims = parts
        algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        if algorithm not in self.settings.algorithms:
            raise TokenRefused("wrong", "its signature is of a kind that is not accepted (alg)")
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
            raise TokenRefused("wrong", "it is not an access token (typ)")
        if "crit" in header:
            raise TokenRefused("wrong", "it demands extensions (crit)")
        if not isinstance(key_id, str | None) or len(key_id or "") > _LONGEST_KEY_ID:
            raise TokenRefused("wrong", "its key has no usable name (kid)")
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            raise TokenRefused("wrong", "its key is not one of the issuer's (kid)")
        try:
            _jws.decode_complete(token, key, algorithms=[algorithm])
        except jwt.PyJWTError:
            raise TokenRefused("wrong", "its signature does not match") from None
        return claims

    async def _asked_claims(self, token: str, asked: Introspection) -> Mapping[str, Any] | None:
        parts = _parts(token)
        if parts is not None and parts[1].get("iss", self.settings.issuer) != self.settings.issuer:
            return None  # the token of one issuer is not shown to another
        claims = await asked.claims(token)
        # The server is known: it need not name itself.
        return None if claims is None else {"iss": self.settings.issuer, **claims}

    async def _read_keys(self) -> Mapping[str, Any]:
        issuer, url = self.settings.issuer, self.settings.jwks_url
        if url is not None:
            return await read_json(url, trusted=url)
        return await read_json(await self._discovered(), trusted=issuer)

    async def _discovered(self) -> str:
        """Return where the issuer's metadata says that its keys are."""
        issuer = self.settings.issuer
        for url in _metadata_urls(issuer):
            with suppress(FetchFailed):
                metadata = await read_json(url, trusted=issuer)
                if metadata.get("issuer") == issuer and (found := as_text(metadata.get("jwks_uri"))) is not None:
                    return found
        raise FetchFailed(f"{issuer} has no metadata that names it and its keys", remedy="see access.issuers, jwks_url")


class _Inquiry:
    """Asks issuers about one token, one after the other, without waiting long for those before."""

    def __init__(self, token: str, issuers: Sequence[Issuer]) -> None:
        self._token = token
        self._issuers = issuers
        self._said: dict[Issuer, Identified | Fault | None] = {}

    @property
    def outcome(self) -> Identified | Fault | None:
        """Whom the token identifies, if anybody knows that; or else what the first says that is wrong with it.

        While one before has not answered, it may still be known there: that counts as unavailable.
        """
        known = (found for found in self._said.values() if isinstance(found, Identified))
        if (found := next(known, None)) is not None:
            return found
        for issuer in self._issuers:
            if issuer not in self._said:
                return "unavailable"
            if _is_over(found := self._said[issuer]):
                return found
        return "unavailable" if "unavailable" in self._said.values() else None

    async def ask(self) -> None:
        """Ask them until the outcome is certain."""
        async with anyio.create_task_group() as tasks:

            async def ask(issuer: Issuer, answered: anyio.Event) -> None:
                self._said[issuer] = await issuer.verify(self._token)
                answered.set()
                if _is_over(self.outcome):
                    tasks.cancel_scope.cancel()

            for issuer in self._issuers:
                answered = anyio.Event()
                tasks.start_soon(ask, issuer, answered)
                with anyio.move_on_after(_PATIENCE):
                    await answered.wait()
                if _is_over(self.outcome):
                    return


def _is_over(found: Identified | Fault | None) -> bool:
    """Whether it is known whose a token is; while an issuer cannot say, it may still be another's."""
    return found not in (None, "unavailable")


def _introspection(settings: IssuerSettings) -> Introspection | None:
    url, client_id, secret = settings.introspection_url, settings.client_id, settings.client_secret
    return None if url is None or client_id is None or secret is None else Introspection(url, client_id, secret)


def _parts(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the header and the claims of a JWT, which nobody has verified; None if it is not one."""
    try:
        header: Mapping[str, Any] = jwt.get_unverified_header(token)
        claims: Mapping[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None
    return header, claims


def _metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return where an issuer's metadata may be: RFC 8414, then OpenID Connect Discovery."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
