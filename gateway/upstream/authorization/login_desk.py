"""Logins in a browser: the links that are given out for them, and the browsers that come back.

A link leads to a page of the gateway, which names the upstream and the principal, and from there to the authorization
server. The browser that opened the page has to be the one that comes back, so that nobody can have another person log
in for them, or be logged in with another person's account: a secret in its cookie tells.
"""

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio

from gateway.errors import ConfigError, GatewayError, InvalidRequest, LoginFailed
from gateway.upstream.authorization.ports import CALLBACK_PATH, Logins

LOGIN_PATH = "/oauth/login"
"""The path, below the gateway's public URL, of the pages with which logins begin; the ticket follows."""

LIFETIME = 900.0
"""Seconds for which a link can be used."""

_MOST = 1_000
_MOST_OF_ONE = 32
_MOST_BEGUN = 8
"""How often a link may be opened, by somebody who did not finish: the oldest attempts are forgotten."""

Place = Callable[[str], Awaitable[str | None]]
"""Returns the base URL to which browsers can come back from a login to this upstream; None if there is none."""


@dataclass(eq=False)
class Offer:
    """A login that was offered to a principal. Every link for it is the same until somebody has logged in."""

    upstream: str
    principal: str
    base: str
    ticket: str = field(repr=False)
    until: float
    is_done: bool = False
    _done: anyio.Event = field(default_factory=anyio.Event, repr=False)

    @property
    def url(self) -> str:
        """The link, for the browser of the principal."""
        return f"{self.base}{LOGIN_PATH}/{self.ticket}"

    @property
    def redirect_uri(self) -> str:
        """The address to which the browser comes back."""
        return f"{self.base}{CALLBACK_PATH}"

    async def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the login, and return whether it was given."""
        with anyio.move_on_after(seconds):
            await self._done.wait()
        return self.is_done

    def finish(self) -> None:
        """Release everybody who waits for the login."""
        self.is_done = True
        self._done.set()


@dataclass(frozen=True)
class _Attempt:
    offer: Offer
    secret: str = field(repr=False)


class LoginDesk:
    """Offers logins, and completes them.

    `on_end` is called with upstream, principal and issuer of each when its browser has come back, without an issuer if
    the login failed; it must not block.
    """

    def __init__(
        self,
        logins: Logins,
        on_end: Callable[[str, str, str | None], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logins = logins
        self._on_end = on_end
        self._clock = clock
        self.on_completed: Callable[[str, str], object] = lambda upstream, principal: None
        """Called with upstream and principal of each login that was completed, for other processes that can use it."""
        self._place: Place | None = None
        self._offers: dict[str, Offer] = {}
        self._attempts: dict[str, _Attempt] = {}

    def serve_at(self, place: Place) -> None:
        """Offer logins from now on; something serves their pages at `place`."""
        self._place = place

    async def offer(self, upstream: str, principal: str) -> Offer | None:
        """Return a link for a login; None if no browser could come back from it.

        Raises LoginFailed if the port that browsers have to come back to cannot be opened.
        """
        try:
            base = await self._place(upstream) if self._place is not None else None
        except ConfigError as error:
            raise LoginFailed(upstream, error.message, remedy=error.remedy) from error
        if base is None:
            return None
        self._expire()
        mine = [each for each in self._offers.values() if each.principal == principal]
        known = next((each for each in mine if each.upstream == upstream and each.base == base), None)
        if known is not None:
            return known
        if len(mine) >= _MOST_OF_ONE:
            self._drop(mine[0])
        elif len(self._offers) >= _MOST:
            self._drop(next(iter(self._offers.values())))
        ticket = self._logins.named(secrets.token_urlsafe(24))
        made = Offer(upstream, principal, base, ticket, self._clock() + LIFETIME)
        self._offers[made.ticket] = made
        return made

    def find(self, ticket: str) -> Offer:
        """Return the login that a link is for. Raises InvalidRequest if it was given already, or has expired."""
        self._expire()
        offer = self._offers.get(ticket)
        if offer is None:
            raise InvalidRequest("this link was used already, or has expired", remedy="ask for another")
        return offer

    async def begin(self, ticket: str, secret: str) -> str:
        """Begin the login that a link is for, and return the URL to go to; `secret` is that of the browser.

        Raises InvalidRequest as `find` does, and LoginFailed.
        """
        offer = self.find(ticket)
        pending = await self._logins.begin(offer.upstream, offer.principal, offer.redirect_uri)
        begun = [state for state, attempt in self._attempts.items() if attempt.offer is offer]
        for state in begun[: max(0, len(begun) - _MOST_BEGUN + 1)]:
            del self._attempts[state]
        self._attempts[pending.state] = _Attempt(offer, secret)
        return pending.url

    def begun(self, state: str) -> Offer | None:
        """Return the login that was begun with this state, if it is still waited for."""
        self._expire()
        attempt = self._attempts.get(state)
        return None if attempt is None else attempt.offer

    async def complete(self, query: Mapping[str, str], secret: str) -> Offer:
        """Complete a login with the parameters and the secret with which a browser came back. Each login works once.

        Raises:
            InvalidRequest: the login is unknown.
            LoginFailed: it was begun in another browser, or was refused.
        """
        state = query.get("state", "")
        self._expire()
        attempt = self._attempts.pop(state, None)
        if attempt is None:
            raise InvalidRequest("this login was completed already, or has expired", remedy="begin it again")
        offer = attempt.offer
        try:
            if not hmac.compare_digest(secret.encode(), attempt.secret.encode()):
                words = "this login was begun in another browser"
                raise LoginFailed(offer.upstream, words, remedy="open the link in the browser that you log in with")
            key = await self._logins.complete(state, query, principal=offer.principal)
        except GatewayError:
            self._on_end(offer.upstream, offer.principal, None)
            raise
        self._drop(offer)
        self._on_end(key.upstream, key.principal, key.issuer)
        self.on_completed(key.upstream, key.principal)
        offer.finish()
        return offer

    def logged_in(self, upstream: str, principal: str) -> None:
        """Finish the offers for a login that was given in another way."""
        for offer in tuple(self._offers.values()):
            if (offer.upstream, offer.principal) == (upstream, principal):
                self._drop(offer)
                offer.finish()

    def _expire(self) -> None:
        now = self._clock()
        for offer in [each for each in self._offers.values() if each.until <= now]:
            self._drop(offer)

    def _drop(self, offer: Offer) -> None:
        self._offers.pop(offer.ticket, None)
        for state in [state for state, attempt in self._attempts.items() if attempt.offer is offer]:
            del self._attempts[state]
