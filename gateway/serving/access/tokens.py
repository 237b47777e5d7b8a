"""Bearer tokens: whose each is, and what it may reach.

Tokens are compared by their SHA-256, looked up in a table: how long that takes says nothing about a token.
"""

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.moments import seconds_of_moment
from gateway.config.token_hashes import hash_of, hash_of_bytes
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWith
from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_object
from gateway.serving.access.identified import Fault, Identified, TokenVerifier
from gateway.serving.access.request_rates import RequestRates

if TYPE_CHECKING:
    from gateway.serving.access.issuers import Issuers

_PREFIX = "mcpg_"
"""Lets programs that look for leaked secrets recognise a token."""

ACCESS_PREFIX, REFRESH_PREFIX = "mcpa_", "mcpr_"
"""The same for tokens of the built-in authorization server."""

_LOOK_SECONDS = 3_600.0
"""The longest time until the clock is read again for a token that expires: it may have been set meanwhile."""

_VERIFY_SECONDS = 30.0
"""Seconds after which a verifier is asked again about a token whose streams are open: it may have been revoked."""

_REMEMBERED = 10_000
"""Principals whose latest token is kept, to be exchanged for tokens of upstreams."""

NOBODY_ASKED = Identified(Caller().principal, is_admin=True)
"""Any host, where no token is configured."""


class Access:
    """The valid tokens: `[http] token`, which reaches everything, those of `[access.tokens]`, those of verifiers.

    `public_url` is the gateway's, which tokens of issuers are meant for.
    """

    def __init__(
        self,
        http: HttpSettings,
        access: AccessSettings | None = None,
        clock: Callable[[], float] = time.time,
        *,
        public_url: str | None = None,
    ) -> None:
        self._clock = clock
        self._public_url = public_url
        fixed = [Identified("token", hash=hash_of(http.token), is_admin=True)] if http.token else []
        self._fixed = _by_hash(fixed)
        self._by_hash: dict[str, Identified] = {}
        self._made_of_hash: frozenset[str] = frozenset()
        self._issuers: Issuers | None = None
        self._added: list[tuple[TokenVerifier, str | None]] = []
        self._came_with: OrderedDict[str, tuple[str | None, Identified]] = OrderedDict()
        self._scopes: Mapping[str, tuple[str, ...]] = {}
        self._needs_token = False
        self._changed = anyio.Event()
        self.rates = RequestRates()
        """How often each may send requests."""
        self.on_refusal: Callable[[str, Fault], object] = _nobody_listens
        """Called with the address and the reason whenever a token is refused."""
        self.reconfigure(access or AccessSettings())

    @property
    def needs_token(self) -> bool:
        """Whether hosts over HTTP have to send a token."""
        return self._needs_token

    @property
    def authorization_servers(self) -> tuple[str, ...]:
        """The URLs of the authorization servers whose tokens are accepted."""
        added = (url for _, url in self._added if url is not None)
        return (*added, *(() if self._issuers is None else self._issuers.urls))

    @property
    def required_scopes(self) -> tuple[str, ...]:
        """The scopes without which no call is possible, for hosts that have no token yet."""
        return () if self._issuers is None else self._issuers.required_scopes

    @property
    def all_scopes(self) -> tuple[str, ...]:
        """Every scope that some call needs."""
        return tuple(sorted({*self.required_scopes, *(one for scopes in self._scopes.values() for one in scopes)}))

    def add(self, verifier: TokenVerifier, authorization_server: str | None = None) -> None:
        """Ask this verifier about tokens that the configuration does not have, before its issuers are asked.

        `authorization_server` is the URL of the server whose tokens these are: hosts without a token are sent there.
        """
        self._added.append((verifier, authorization_server))
        self._needs_token = True

    def reconfigure(self, access: AccessSettings) -> None:
        """Apply changed settings: a removed token is invalid from the next request on."""
        self.rates.limit = access.limits.requests_per_minute
        named = _by_hash(identified(name, token) for name, token in access.tokens.items())
        self._made_of_hash = frozenset(name for name, token in access.tokens.items() if token.hash is not None)
        self._by_hash = {**self._fixed, **named}  # a table may restrict what [http] token does not
        if access.issuers and self._issuers is None:
            from gateway.serving.access.issuers import Issuers  # cryptography takes its time to load

            self._issuers = Issuers(self._public_url)
        if self._issuers is not None:
            self._issuers.reconfigure(access.issuers)
        self._came_with.clear()
        self._scopes = access.scopes
        # Removing the last token must not open the gateway to everybody: that takes a restart.
        self._needs_token = bool(self._by_hash or access.issuers) or self._needs_token
        self._tell()

    def narrow(self, written: Mapping[str, Any]) -> None:
        """Drop what is gone from `[access]` as it is written: tokens, and those with another hash or text; issuers.

        For a configuration that cannot be applied as a whole: whatever is wrong in it, who was removed stays out.
        """
        tables = {name: as_object(table) for name, table in as_object(written.get("tokens")).items()}
        self._by_hash = {
            key: one
            for key, one in self._by_hash.items()
            if one.token is None or (one.token in tables and self._stays(one, one.token, tables[one.token]))
        }
        if self._issuers is not None:
            self._issuers.narrow(as_object(written.get("issuers")))
        self._came_with.clear()
        self._tell()

    def _stays(self, one: Identified, name: str, table: Mapping[str, Any]) -> bool:
        """Whether the table of a token may still mean this one.

        A reference to a secret may, where there was no hash before: it is not read for a configuration that is refused.
        """
        hashed, token = table.get("hash"), table.get("token")
        if hashed is None and isinstance(token, str) and "${" not in token:
            hashed = hash_of(token)
        return hashed == one.hash or (hashed is None and name not in self._made_of_hash)

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def identify(self, authorization: str) -> Identified | Fault:
        """Return who sent this Authorization header ("" for none), or why nobody is known by it."""
        if not self._needs_token:
            return NOBODY_ASKED
        scheme, _, given = authorization.partition(" ")
        token = given.strip(" \t")
        if scheme.lower() != "bearer" or not token:
            return "missing"
        return self._configured(token.encode("latin-1", "replace")) or await self._verified(token)

    def identify_by_url(self, token: str) -> Identified | Fault:
        """Return who sent this token as a part of a path. No verifier is asked: its tokens do not belong there."""
        found = self._configured(token.encode("utf-8", "replace"))
        return "wrong" if isinstance(found, Identified) and not found.in_url else found or "wrong"

    def _configured(self, token: bytes) -> Identified | Fault | None:
        found = self._by_hash.get(hash_of_bytes(token))
        return "expired" if found is not None and self._seconds_left(found) <= 0 else found

    async def _verified(self, token: str) -> Identified | Fault:
        for verifier, _ in self._added:
            if (found := await verifier.verify(token)) is not None:
                return self._known(found, None)
        # One of ours that was removed, or is sent where it does not belong, is nobody else's business.
        if self._issuers is None or token.startswith((_PREFIX, ACCESS_PREFIX, REFRESH_PREFIX)):
            return "wrong"
        return self._known(await self._issuers.verify(token) or "wrong", token)

    def _known(self, found: Identified | Fault, token: str | None) -> Identified | Fault:
        """Return whom a verifier knows, as the settings have it. `token`: the text, if it is an issuer's."""
        if not isinstance(found, Identified):
            return found
        if found.issuer is not None:
            self._remember(token, found)
        return self._scoped(found)

    def came_with(self, principal: str) -> CameWith | None:
        """Return the latest token of an issuer that a principal has sent, if it is still valid; or its login's claims.

        The text of a token is for its issuer alone, which may exchange it for a token of an upstream (RFC 8693).
        """
        token, identified = self._came_with.get(principal, (None, NOBODY_ASKED))
        if identified.issuer is None or self._seconds_left(identified) <= 0:
            return None
        return CameWith(token, identified.issuer, identified.claims)

    def _remember(self, token: str | None, identified: Identified) -> None:
        self._came_with[identified.principal] = token, identified
        self._came_with.move_to_end(identified.principal)
        if len(self._came_with) > _REMEMBERED:
            self._came_with.popitem(last=False)

    def _scoped(self, found: Identified) -> Identified:
        """Return the same, with the tools whose scopes the token lacks."""
        lacking = tuple((tool, scopes) for tool, scopes in self._scopes.items() if not found.scopes.issuperset(scopes))
        return replace(found, grant=found.grant._replace(scoped=lacking)) if lacking else found

    async def ended(self, identified: Identified, authorization: str) -> None:
        """Wait until the token of this header has been removed, changed or revoked, or has expired.

        What it opened has to be closed then.
        """
        again = _LOOK_SECONDS if identified is NOBODY_ASKED or identified.hash else _VERIFY_SECONDS
        while (left := self._seconds_left(identified)) > 0:
            changed = self._changed
            if await self.identify(authorization) not in (identified, "unavailable"):
                return
            with anyio.move_on_after(min(left, again)):
                await changed.wait()

    def _seconds_left(self, identified: Identified) -> float:
        return math.inf if identified.expires is None else identified.expires - self._clock()


def _nobody_listens(address: str, fault: Fault) -> None:
    """Do nothing."""


def new_token() -> str:
    """Return a new random token (256 bits)."""
    return _PREFIX + secrets.token_urlsafe(32)


def identified(name: str, token: TokenSettings) -> Identified:
    """Return whom a token of `[access.tokens]` is for, and what it opens."""
    grant = Grant(token.upstreams, token.tools, token.calls_per_minute, token.limits.quota)
    hashed = token.hash or hash_of(token.token or "")
    expires = None if token.expires is None else seconds_of_moment(token.expires)
    principal = token.principal or name
    return Identified(principal, grant, token.profile, expires, hashed, name, in_url=token.url, toolset=token.toolset)


def _by_hash(tokens: Iterable[Identified]) -> dict[str, Identified]:
    return {token.hash: token for token in tokens}
