"""Logins to upstreams: the tokens for requests, and how they are got, renewed and given up.

The gateway is the OAuth client of each principal by itself. The SDK's client (`OAuthClientProvider`) is not used: it
keeps a request waiting for the person, who is not there in a gateway. Its functions for discovery and PKCE are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import InvalidRequest, LoginFailed, LoginRequired, VaultLocked
from gateway.system.addresses import Resolve, system_resolver
from gateway.system.finish_soon import shielded_for
from gateway.upstream.authorization.account import Account
from gateway.upstream.authorization.pending_logins import PendingLogins
from gateway.upstream.authorization.ports import (
    ClientIdentification,
    Credentials,
    LoginKey,
    PendingLogin,
    Tokens,
    TokenVault,
)
from gateway.upstream.authorization.refusals import Refused

if TYPE_CHECKING:
    from gateway.upstream.authorization.challenge import Challenge
    from gateway.upstream.authorization.discovery import AuthorizationServer
    from gateway.upstream.authorization.login_flow import LoginFlow

logger = logging.getLogger(__name__)

_LAST_SECONDS = 5.0
"""Seconds for a token that was asked for when its request was cancelled, as when the gateway ends: less than service
managers wait for that."""
_MOST_ACCOUNTS = 10_000
_MOST_CLIENTS = 1_000

_OWN = ""
"""The principal of tokens that the gateway gets for itself, and that serve everybody who may use the upstream."""


class UpstreamLogins:
    """The logins to all upstreams, for all principals (`ports.Logins`).

    `settings_of` returns the current settings of an upstream, None if there is none; `public_url` the gateway's own
    public URL, if it has one; `subject_of` the token with which a principal has come to the gateway, if that may be
    exchanged (`auth.grant = "token_exchange"`). `resolve` is for tests.
    """

    def __init__(
        self,
        vault: TokenVault,
        settings_of: Callable[[str], UpstreamSettings | None],
        *,
        public_url: Callable[[], str | None] = lambda: None,
        subject_of: Callable[[str], str | None] = lambda _: None,
        resolve: Resolve = system_resolver,
    ) -> None:
        self._vault = vault
        self._settings_of = settings_of
        self._public_url = public_url
        self._subject_of = subject_of
        self._resolve = resolve
        self._accounts: dict[tuple[str, str], Account] = {}
        self.named: Callable[[str], str] = str
        """Makes the name of a link, or of a login that has begun, of a secret (`ports.Logins.named`)."""
        self._pending = PendingLogins(lambda secret: self.named(secret))
        self._clients: dict[tuple[str, str, str], ClientIdentification] = {}
        """Registered clients by upstream, issuer and redirect URI."""

    # Tokens for requests.

    async def token(self, upstream: str, principal: str, url: str | None = None) -> Credentials | None:
        """Return the access token to send, refreshed if it is about to expire (`ports.Logins.token`)."""
        account = self._account(upstream, principal)
        if account.has_credentials or url not in (None, account.url):
            return None
        held = account.tokens
        if held is not None and not account.is_expiring and await account.is_current(held):
            return account.sendable(held)
        since = time.monotonic()
        async with account.lock:
            with _failing(upstream):
                tokens = await account.load()
                if tokens is not None and not account.is_expiring:
                    return account.sendable(tokens)
                if account.is_automatic:
                    return await self._obtained_early(account)
                return None if tokens is None else await self._renewed(account, since)

    async def challenged(
        self,
        upstream: str,
        principal: str,
        sent: Credentials | None,
        status: int,
        www_authenticate: Sequence[str],
        url: str | None = None,
    ) -> Credentials | None:
        """Return another token to try after a response of 401 or 403 (`ports.Logins.challenged`)."""
        from gateway.upstream.authorization.challenge import challenge_in

        challenge = challenge_in(www_authenticate)
        if status not in (401, 403) or (status == 403 and not challenge.wants_scopes):
            return None
        account = self._account(upstream, principal)
        if account.has_credentials or url not in (None, account.url):
            return None
        since = time.monotonic()
        async with account.lock:
            with _failing(upstream):
                if not challenge.scheme and sent is None and account.settings.auth is None:
                    return None  # it wants something else than a token
                if challenge.proof_error and sent is not None and sent.key is not None:
                    raise _unproven(challenge)
                is_known = account.challenge is not None and account.challenge.takes_proofs
                account.challenge = challenge
                tokens, refused = account.tokens, None if sent is None else sent.token
                if tokens is None or tokens.access_token == refused:
                    tokens = await account.load()
                if tokens is not None and tokens.access_token != refused:  # another request, or process, was faster
                    return await self._renewed(account, since) if account.is_expiring else account.sendable(tokens)
                if status == 403:
                    return await self._stepped_up(account, challenge)
                return await self._replaced(account, since, is_news=challenge.takes_proofs and not is_known)

    async def _replaced(self, account: Account, since: float, *, is_news: bool) -> Credentials:
        """Return a token in place of the one that the upstream does not accept, if there was one.

        `is_news`: only now it says that it takes tokens that are bound to a key, so that another may do.
        """
        upstream, tokens = account.upstream, account.tokens
        if account.is_automatic:
            if tokens is not None and account.is_fresh and not is_news:
                raise account.refused(Refused("does not accept the token that its authorization server just issued"))
            return await self._obtained(account)
        if tokens is None:
            raise LoginRequired(upstream)
        if tokens.refresh_token is None or account.is_fresh:  # another one would not be accepted either
            async with account.alone():
                found = await account.load()
                if found is not None and found.access_token != tokens.access_token:  # another process was faster
                    return account.sendable(found)
                await account.forget()
            raise LoginRequired(upstream, "no longer accepts the login, and waits for another")
        return await self._renewed(account, since, is_refused=True)

    async def _renewed(self, account: Account, since: float, *, is_refused: bool = False) -> Credentials:
        """Refresh the access token, or return the present one if that is still good and cannot be refreshed now.

        What has failed `since` the request began to wait (`time.monotonic`) is not tried again for it: a server that
        does not answer would let each request wait for the time limits of all before it.
        """
        before = account.tokens
        async with account.alone():
            return await self._renewed_alone(account, before, since, is_refused=is_refused)

    async def _renewed_alone(
        self, account: Account, before: Tokens | None, since: float, *, is_refused: bool
    ) -> Credentials:
        tokens, key = await account.load(), account.key
        if tokens is None or key is None:  # given up meanwhile, by another process
            raise LoginRequired(account.upstream)
        if tokens != before and not account.is_expiring:  # refreshed meanwhile
            return account.sendable(tokens)
        is_usable = not (account.has_expired or is_refused)
        if tokens.refresh_token is None:
            if is_usable:
                return account.sendable(tokens)
            raise await self._expired(account)
        if (failed := account.refusal_since(since)) is not None:
            if is_usable:
                return account.sendable(tokens)
            raise failed
        return await self._refreshed(account, tokens, key.issuer, is_usable=is_usable)

    async def _refreshed(self, account: Account, tokens: Tokens, issuer: str, *, is_usable: bool) -> Credentials:
        try:
            # A cancelled request must not lose the new refresh token: the old one may not work again.
            async with shielded_for(_LAST_SECONDS):
                tokens = await self._flow(account).refresh(tokens, issuer)
                await account.keep(issuer, tokens)
            return account.sendable(tokens)
        except VaultLocked as error:
            # Used until the gateway stops: the old refresh token may not work again.
            logger.warning("upstream %s: a refreshed login cannot be kept: %s", account.upstream, error)
            return account.sendable(tokens)
        except Refused as refusal:
            if not refusal.is_passing:
                again = await account.load()
                if again is not None and again.refresh_token != tokens.refresh_token:
                    return account.sendable(again)  # another process has refreshed it meanwhile, without the lock
                raise await self._expired(account) from refusal
            account.refused(refusal)
            if is_usable:
                return account.sendable(tokens)
            raise

    async def _expired(self, account: Account) -> LoginRequired:
        if account.tokens is not None:
            account.wanted_scopes = account.tokens.scopes
        await account.forget()
        return LoginRequired(account.upstream, "waits for a login: the last one has expired")

    async def _stepped_up(self, account: Account, challenge: Challenge) -> Credentials:
        """Return a token with more scopes. What was granted before is asked for again (SEP-2350)."""
        granted = account.tokens.scopes if account.tokens is not None else ()
        missing = [scope for scope in challenge.scopes or () if scope not in granted]
        if challenge.scopes and not missing:
            raise Refused(f"asks for scopes that its token has ({' '.join(challenge.scopes)})")
        if not account.may_step_up:
            raise Refused("asks for ever more scopes", remedy="set auth.scopes to all that it needs")
        account.wanted_scopes = (*granted, *missing)
        if account.is_automatic:
            account.step_up()
            return await self._obtained(account)
        wanted = f": {' '.join(missing)}" if missing else ""
        message = f"waits for a login that allows more (scopes{wanted})"
        raise LoginRequired(account.upstream, message, scopes=account.wanted_scopes)

    # Tokens that need nobody's login.

    async def _obtained_early(self, account: Account) -> Credentials | None:
        """Return a token before the upstream has asked for one; None if it has to say first where they are issued."""
        if account.challenge is not None:
            return await self._obtained(account)
        if account.waits_for_challenge:
            return None
        from gateway.upstream.authorization.challenge import Challenge

        account.waits_for_challenge = True
        try:
            server = await self._flow(account).discover(Challenge())
        except Refused:
            return None
        if not server.is_described:
            return None
        account.waits_for_challenge = False
        return await self._obtained_from(account, server, Challenge())

    async def _obtained(self, account: Account) -> Credentials:
        from gateway.upstream.authorization.challenge import Challenge

        account.check_refusal()
        challenge = account.challenge or Challenge()
        try:
            server = await self._flow(account).discover(challenge)
        except Refused as refusal:
            raise account.refused(refusal) from None
        return await self._obtained_from(account, server, challenge)

    async def _obtained_from(self, account: Account, server: AuthorizationServer, challenge: Challenge) -> Credentials:
        account.check_refusal()
        flow = self._flow(account)
        try:
            scopes = flow.scopes(server, challenge, account.wanted_scopes)
            key = flow.proof_key(server, challenge)
            tokens = await flow.obtain(server, scopes, self._subject_of(account.principal), key)
        except Refused as refusal:
            raise account.refused(refusal) from None
        await account.keep(server.issuer, tokens)
        return account.sendable(tokens)

    # Logins of people.

    async def principals(self, upstream: str) -> Collection[str]:
        """Return those who have logged in to an upstream (`ports.Logins.principals`)."""
        return frozenset(key.principal for key in await self._vault.keys() if key.upstream == upstream)

    async def begin(
        self, upstream: str, principal: str, redirect_uri: str, *, scopes: Sequence[str] = ()
    ) -> PendingLogin:
        """Begin a login; it does not end one that is there (`ports.Logins.begin`)."""
        from gateway.upstream.authorization.challenge import challenge_in

        account = self._account(upstream, principal)
        with _failing(upstream):
            if account.is_automatic:
                raise Refused("needs nobody's login: the gateway gets its tokens by itself (auth.grant)")
            if account.has_credentials:
                raise Refused("is sent configured credentials", remedy="take them out of headers, or url, to log in")
            flow = self._flow(account)
            challenge = account.challenge or challenge_in(await flow.probe())
            server = await flow.discover(challenge)
            flow.check(server)
            held = await account.load_readable()
            is_same = account.key is None or account.key.issuer == server.issuer
            before = held.scopes if held is not None and is_same else ()
            more = tuple(dict.fromkeys((*before, *account.wanted_scopes, *scopes)))
            asked = flow.scopes(server, challenge, more)
            known = [each for each in (self._clients.get((upstream, server.issuer, redirect_uri)),) if each]
            if held is not None and is_same:
                known.append(held.client)
            client = await flow.identify(server, redirect_uri, asked, self._public_url(), known)
            self._remember(upstream, server.issuer, redirect_uri, client)
            attempt = flow.begin(
                upstream,
                principal,
                server,
                client,
                redirect_uri,
                asked,
                is_step_up=bool(account.wanted_scopes),
                key=flow.proof_key(server, challenge),
            )
            state = self._pending.add(attempt)
            return PendingLogin(flow.page(attempt, state), state)

    async def complete(self, state: str, query: Mapping[str, str], *, principal: str | None = None) -> LoginKey:
        """Complete a login (`ports.Logins.complete`). Raises InvalidRequest if there is no such login."""
        attempt = self._pending.find(state)
        if attempt is None or principal not in (None, attempt.principal):
            raise InvalidRequest(
                "there is no such login: it was completed already, took too long, or was begun by somebody else",
                remedy="begin it again",
            )
        self._pending.take(state)
        account = self._account(attempt.upstream, attempt.principal)
        with _failing(attempt.upstream):
            if account.url != attempt.url:
                raise Refused("its url was changed while somebody was logging in", remedy="begin the login again")
            # A code works once.
            async with shielded_for(_LAST_SECONDS), account.lock, account.alone():
                tokens = await self._flow(account).complete(attempt, query)
                if attempt.is_step_up:
                    account.step_up()
                account.wanted_scopes = ()
                await account.keep(attempt.server.issuer, tokens)
        return LoginKey(attempt.principal, attempt.upstream, attempt.server.issuer)

    async def forget(self, upstream: str, principal: str) -> None:
        """Revoke the tokens where they were issued, if that is possible, and forget them (`ports.Logins.forget`)."""
        account = self._account(upstream, principal)
        self._pending.drop(upstream, principal)
        with _failing(upstream):
            async with account.lock, account.alone():
                tokens = await account.load_readable()
                if tokens is not None and account.key is not None:
                    try:
                        await self._flow(account).revoke(tokens, account.key.issuer)
                    except Refused as refusal:
                        logger.info("upstream %s: %s", upstream, refusal.message)
                await account.forget()
                account.wanted_scopes = ()

    # Logins that are there.

    async def reread(self, upstream: str, principal: str) -> None:
        """Look for tokens that another process has got for a principal (`ports.Logins.reread`)."""
        account = self._account(upstream, principal)
        async with account.lock:
            with _failing(upstream):
                await account.load()

    # Accounts.

    def _account(self, upstream: str, principal: str) -> Account:
        settings = self._settings_of(upstream)
        if settings is None or settings.endpoint is None:
            raise LoginFailed(upstream, "has no url, so there is nowhere to log in")
        grant = "authorization_code" if settings.auth is None else settings.auth.grant
        is_automatic = grant != "authorization_code"
        key = upstream, _OWN if grant in ("client_credentials", "jwt_bearer") else principal
        account = self._accounts.pop(key, None)
        if account is None or (account.settings.endpoint, account.settings.auth) != (settings.endpoint, settings.auth):
            account = Account(upstream, key[1], settings, None if is_automatic else self._vault)
        if len(self._accounts) >= _MOST_ACCOUNTS:
            del self._accounts[next(iter(self._accounts))]
        self._accounts[key] = account  # at the end, so that the one that was not used for the longest time is the first
        return account

    def _flow(self, account: Account) -> LoginFlow:
        from gateway.upstream.authorization.login_flow import LoginFlow

        return LoginFlow(account.settings, self._resolve)

    def _remember(self, upstream: str, issuer: str, redirect_uri: str, client: ClientIdentification) -> None:
        if client.redirect_uri is None:  # not registered just for this
            return
        self._clients.pop((upstream, issuer, redirect_uri), None)
        if len(self._clients) >= _MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]
        self._clients[upstream, issuer, redirect_uri] = client


def _unproven(challenge: Challenge) -> Refused:
    """The failure of a proof that the upstream does not accept. The token itself may be good, so it is kept."""
    from gateway.upstream.authorization.challenge import NONCE_WANTED

    if challenge.proof_error == NONCE_WANTED:
        return Refused("wants ever other nonces in proofs of its login's key (DPoP)", is_passing=True)
    return Refused(
        "does not accept the proof of its login's key (DPoP)",
        remedy="check the clock of this machine; if it is right, set auth.dpop to false, and log in again",
    )


@contextmanager
def _failing(upstream: str) -> Generator[None]:
    """Raise what goes wrong inside as a failure of the upstream."""
    try:
        yield
    except Refused as refusal:
        remedy = refusal.remedy or ("try again later" if refusal.is_passing else None)
        raise LoginFailed(upstream, refusal.message, remedy=remedy) from None
    except VaultLocked as error:
        raise LoginFailed(upstream, error.message, remedy=error.remedy) from error
