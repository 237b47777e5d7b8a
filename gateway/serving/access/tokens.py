"""Bearer tokens: whose each is, and what it may reach.

Tokens are compared by their SHA-256, looked up in a table: how long that takes says nothing about a token. A plain hash
is enough, because tokens are random, or long: there is no dictionary to try.
"""

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Literal

import anyio

from gateway.config.schema import AccessSettings, HttpSettings, TokenSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import EVERYTHING, Grant
from gateway.core.model.json_values import as_object

Fault = Literal["missing", "wrong", "expired"]
"""Why a request is not authorised."""

_PREFIX = "mcpg_"
"""Lets programs that look for leaked secrets recognise a token."""

_HASH = "sha256:"
_LOOK_SECONDS = 3_600.0
"""The longest time until the clock is read again for a token that expires: it may have been set meanwhile."""


@dataclass(frozen=True)
class Identified:
    """Whoever sent a valid token: the principal, what it may reach, and the profile that its hosts have."""

    principal: str
    grant: Grant = EVERYTHING
    profile: str | None = None
    expires: float | None = None
    """Seconds since 1970."""
    hash: str = field(default="", repr=False, compare=False)
    """The token's; "" where none is needed."""
    token: str | None = field(default=None, compare=False)
    """The name of its table."""


NOBODY_ASKED = Identified(Caller().principal)
"""Any host, where no token is configured."""


class Access:
    """The valid tokens: `[http] token`, which reaches everything, and those of `[access.tokens]`."""

    def __init__(
        self, http: HttpSettings, access: AccessSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._fixed = _by_hash([Identified("token", hash=hash_of(http.token))]) if http.token else {}
        self._by_hash: dict[str, Identified] = {}
        self._needs_token = False
        self._changed = anyio.Event()
        self.reconfigure(access or AccessSettings())

    @property
    def needs_token(self) -> bool:
        """Whether hosts over HTTP have to send a token."""
        return self._needs_token

    def reconfigure(self, access: AccessSettings) -> None:
        """Apply changed settings: a removed token is invalid from the next request on."""
        named = _by_hash(_identified(name, token) for name, token in access.tokens.items())
        self._by_hash = {**self._fixed, **named}  # a table may restrict what [http] token does not
        # Removing the last token must not open the gateway to everybody: that takes a restart.
        self._needs_token = bool(self._by_hash) or self._needs_token
        self._tell()

    def narrow(self, written: Mapping[str, Any]) -> None:
        """Drop the tokens whose tables are gone from `[access.tokens]`, or have another hash, as it is written.

        For a configuration that cannot be applied as a whole: whatever is wrong in it, who was removed stays out.
        """
        tables = {name: as_object(table) for name, table in written.items()}
        self._by_hash = {
            key: one
            for key, one in self._by_hash.items()
            if one.token is None or (one.token in tables and tables[one.token].get("hash") in (None, one.hash))
        }
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def identify(self, authorization: str) -> Identified | Fault:
        """Return who sent this Authorization header ("" for none), or why nobody is known by it."""
        if not self._needs_token:
            return NOBODY_ASKED
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not given.strip(" \t"):
            return "missing"
        found = self._by_hash.get(_hashed(given.strip(" \t").encode("latin-1", "replace")))
        if found is None:
            return "wrong"
        return "expired" if self._seconds_left(found) <= 0 else found

    async def ended(self, identified: Identified) -> None:
        """Wait until the token has been removed or changed, or has expired: what it opened has to be closed then."""
        while self._is_in_force(identified) and (left := self._seconds_left(identified)) > 0:
            with anyio.move_on_after(min(left, _LOOK_SECONDS)):
                await self._changed.wait()

    def _is_in_force(self, identified: Identified) -> bool:
        return self._by_hash.get(identified.hash) == identified if self._needs_token else identified is NOBODY_ASKED

    def _seconds_left(self, identified: Identified) -> float:
        return math.inf if identified.expires is None else identified.expires - self._clock()


def new_token() -> str:
    """Return a new random token (256 bits)."""
    return _PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return a token's hash in the form of the configuration."""
    return _hashed(token.strip().encode("utf-8", "replace"))


def expiry_of(token: TokenSettings) -> float | None:
    """Return when a token becomes invalid, in seconds since 1970; None for never."""
    match token.expires:
        case None:
            return None
        case datetime() as moment:
            return moment.timestamp()
        case date() as day:
            return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _identified(name: str, token: TokenSettings) -> Identified:
    grant = Grant(token.upstreams, token.tools, token.calls_per_minute)
    hashed = token.hash or hash_of(token.token or "")
    return Identified(token.principal or name, grant, token.profile, expiry_of(token), hashed, name)


def _by_hash(tokens: Iterable[Identified]) -> dict[str, Identified]:
    return {token.hash: token for token in tokens}


def _hashed(token: bytes) -> str:
    return _HASH + hashlib.sha256(token).hexdigest()
