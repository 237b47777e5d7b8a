"""What a connection sends: the tokens of one principal, or none while it serves every principal; who calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.errors import LoginRequired
from gateway.upstream.authorization.ports import Credentials, Logins, TokenSource


@dataclass(frozen=True)
class PrincipalTokens:
    """The tokens of one principal for one upstream; only connections of this principal may have them.

    `url` is that of the connections, which have none once the configuration has another: that is another server.
    """

    logins: Logins
    upstream: str
    principal: str
    url: str

    async def token(self) -> Credentials | None:
        """Return the token to send with the next request (`ports.Logins.token`)."""
        return await self.logins.token(self.upstream, self.principal, self.url)

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        """Return another token to try (`ports.Logins.challenged`)."""
        return await self.logins.challenged(self.upstream, self.principal, sent, status, www_authenticate, self.url)


@dataclass(frozen=True)
class NoTokens:
    """For a connection that all principals share: it sends no token, whoever has one.

    `on_wanted` is called when the upstream wants a login. From then on, each principal needs a connection of its own.
    """

    tokens: PrincipalTokens
    on_wanted: Callable[[], None]

    async def token(self) -> Credentials | None:
        """Return None."""
        return None

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        """Raise LoginRequired if the upstream wants a login; return None for any other refusal."""
        try:
            found = await self.tokens.challenged(sent, status, www_authenticate)
        except LoginRequired:
            self.on_wanted()
            raise
        if found is not None:  # the login of one principal, and the request may be another's
            self.on_wanted()
            raise LoginRequired(self.tokens.upstream)
        return None


@dataclass(frozen=True)
class ToldWhoCalls:
    """For a connection of one principal to an upstream that is sent headers which say so, besides `tokens`.

    `headers` returns them for the next request, or raises LoginFailed.
    """

    tokens: TokenSource | None
    headers: Callable[[], Mapping[str, str]]

    async def token(self) -> Credentials | None:
        """Return the headers, with the token if there is one."""
        caller = self.headers()
        found = None if self.tokens is None else await self.tokens.token()
        return replace(found or Credentials(None), caller=caller)

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        """Return another token to try, with the headers."""
        if self.tokens is None:
            return None
        with_token = None if sent is None or sent.token is None else sent
        found = await self.tokens.challenged(with_token, status, www_authenticate)
        return None if found is None else replace(found, caller=self.headers())
