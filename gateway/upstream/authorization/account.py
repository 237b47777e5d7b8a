"""The tokens of one principal for one upstream: those of the vault, refreshed by one at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from gateway.config.logins import sends_credentials
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import LoginUnreadable, VaultLocked
from gateway.upstream.authorization.ports import Credentials, LoginKey, Tokens, TokenVault, bare_url
from gateway.upstream.authorization.refusals import Refused

if TYPE_CHECKING:
    from gateway.upstream.authorization.challenge import Challenge
    from gateway.upstream.authorization.proof_key import ProofKey

_SOON = 10.0
"""Seconds before it expires that a token is refreshed: half its lifetime, if that is shorter."""

_STEP_UPS = 3
"""Logins for more scopes that an upstream may ask for within `_STEP_UP_SECONDS`."""
_STEP_UP_SECONDS = 3_600.0

_COOLING = 20.0
"""Seconds after a refused token in which no other is asked for, so that nobody is asked again for each call."""

_FRESH = 10.0
"""Seconds in which a new token has to be accepted: one that is refused so soon never works."""


class Account:
    """The tokens of `principal` for an upstream. Whoever changes them holds `lock`."""

    def __init__(self, upstream: str, principal: str, settings: UpstreamSettings, vault: TokenVault | None) -> None:
        """Without a `vault`, tokens are only remembered: the gateway can get others by itself."""
        self.upstream = upstream
        self.principal = principal
        self.settings = settings
        self.url = bare_url(settings.endpoint or "")
        self.lock = anyio.Lock()
        self.tokens: Tokens | None = None
        self.key: LoginKey | None = None
        self.challenge: Challenge | None = None
        """The last challenge of the upstream."""
        self.wanted_scopes: tuple[str, ...] = ()
        """The scopes that a step-up asks for: those granted before, and those that were missing."""
        self.waits_for_challenge = False
        """Whether the upstream has to say first where tokens for it are issued."""
        self._vault = vault
        self._proof_key: ProofKey | None = None
        self._is_unkept = False
        self._obtained = float("-inf")
        self._step_ups: list[float] = []
        self._refusal: tuple[float, Refused] | None = None

    def sendable(self, tokens: Tokens) -> Credentials:
        """Return the access token as it is sent: with its key, which remembers the nonces of servers."""
        if not tokens.is_bound or tokens.proof_key is None:
            return Credentials(tokens.access_token)
        if self._proof_key is None or self._proof_key.kept != tokens.proof_key:
            from gateway.upstream.authorization.proof_key import ProofKey  # heavy

            self._proof_key = ProofKey(tokens.proof_key)
        return Credentials(tokens.access_token, self._proof_key)

    @property
    def is_automatic(self) -> bool:
        """Whether the gateway gets the tokens by itself, without anybody's login."""
        return self._vault is None

    @property
    def has_credentials(self) -> bool:
        """Whether the upstream is sent configured credentials, so that a login would not be meant."""
        has_user = "@" in urlsplit(self.settings.endpoint or "").netloc
        return self.settings.auth is None and (has_user or sends_credentials(self.settings.headers))

    @property
    def is_expiring(self) -> bool:
        """Whether the access token has expired, or will soon."""
        lifetime = None if self.tokens is None else self.tokens.lifetime
        return self._expires_within(_SOON if lifetime is None else min(_SOON, lifetime / 2))

    @property
    def has_expired(self) -> bool:
        """Whether the access token has expired."""
        return self._expires_within(0)

    @property
    def is_fresh(self) -> bool:
        """Whether the access token is so new that it should have been accepted."""
        return time.monotonic() - self._obtained < _FRESH

    def _expires_within(self, seconds: float) -> bool:
        expires = None if self.tokens is None else self.tokens.expires
        return expires is not None and expires <= time.time() + seconds

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which no other process changes the tokens. What was loaded before may be out of date."""
        return nullcontext() if self._vault is None else self._vault.alone(self.principal, self.upstream)

    async def load(self) -> Tokens | None:
        """Return the tokens that the vault has now: another process may have got others, or given them up.

        Those that the vault has refused (`keep`) stay what counts. Raises VaultLocked if no tokens are known at all.
        """
        if self._vault is None or self._is_unkept:
            return self.tokens
        try:
            self.key, self.tokens = await self._found(self._vault) or (None, None)
        except VaultLocked:
            if self.tokens is None:
                raise
        return self.tokens

    async def load_readable(self) -> Tokens | None:
        """Return the tokens as `load` does, and None if they are sealed with a key that is gone.

        For logging in and out, which are how to get rid of them.
        """
        try:
            return await self.load()
        except LoginUnreadable:
            return None

    async def is_current(self, tokens: Tokens) -> bool:
        """Whether `load` would return these tokens. Needs no lock, so that requests do not wait for each other."""
        if self._vault is None or self._is_unkept:
            return self.tokens == tokens
        try:
            found = await self._found(self._vault)
        except VaultLocked:
            return True
        return found is not None and found[1] == tokens

    async def _found(self, vault: TokenVault) -> tuple[LoginKey, Tokens] | None:
        """Return what the vault has for this URL: a name in the configuration may later stand for another server."""
        found: tuple[LoginKey, Tokens] | None = None
        for key in await self._keys(vault):
            tokens = await vault.get(key)
            if tokens is not None and tokens.url == self.url:
                found = key, tokens
        return found

    async def _keys(self, vault: TokenVault) -> Sequence[LoginKey]:
        keys = await vault.keys(self.principal)
        return [key for key in keys if (key.upstream, key.principal) == (self.upstream, self.principal)]

    async def keep(self, issuer: str, tokens: Tokens) -> LoginKey:
        """Keep new tokens in place of all earlier ones, also those of another server that was asked before.

        They are used even if the vault refuses them (VaultLocked).
        """
        key = LoginKey(self.principal, self.upstream, issuer)
        self.key, self.tokens = key, tokens
        self._obtained = time.monotonic()
        self._refusal = None
        if self._vault is not None:
            self._is_unkept = True
            await self._vault.put(key, tokens)
            self._is_unkept = False
            for other in await self._keys(self._vault):
                if other != key:
                    await self._vault.delete(other)
        return key

    async def forget(self) -> None:
        """Forget the tokens."""
        self.key = self.tokens = None
        self._is_unkept = False
        if self._vault is not None:
            for key in await self._keys(self._vault):
                await self._vault.delete(key)

    # Bounds.

    def step_up(self) -> None:
        """Record a login for more scopes."""
        self._step_ups = [*self._recent_step_ups(), time.monotonic()]

    @property
    def may_step_up(self) -> bool:
        """Whether the upstream may ask for more scopes again."""
        return len(self._recent_step_ups()) < _STEP_UPS

    def _recent_step_ups(self) -> Sequence[float]:
        return [one for one in self._step_ups if one > time.monotonic() - _STEP_UP_SECONDS]

    def refused(self, refusal: Refused) -> Refused:
        """Record that no token was given, and return the refusal."""
        self._refusal = (time.monotonic(), refusal)
        return refusal

    def refusal_since(self, moment: float) -> Refused | None:
        """Return the last refusal if it came after a moment (`time.monotonic`)."""
        return None if self._refusal is None or self._refusal[0] < moment else self._refusal[1]

    def check_refusal(self) -> None:
        """Raise the last refusal again if it was a moment ago."""
        if self._refusal is not None and time.monotonic() - self._refusal[0] < _COOLING:
            raise self._refusal[1]
