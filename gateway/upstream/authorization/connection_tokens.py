"""The tokens that a connection sends: those of one principal, or none while it serves every principal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.errors import LoginRequired
from gateway.upstream.authorization.ports import AccessToken, Logins


@dataclass(frozen=True)
class PrincipalTokens:
    """The tokens of one principal for one upstream; only connections of this principal may have them.

    `url` is that of the connections, which have none once the configuration has another: that is another server.
    """

    logins: Logins
    upstream: str
    principal: str
    url: str

    async def token(self) -> AccessToken | None:
        """Return the token to send with the next request (`ports.Logins.token`)."""
        return await self.logins.token(self.upstream, self.principal, self.url)

    async def challenged(
        self, sent: AccessToken | None, status: int, www_authenticate: Sequence[str]
    ) -> AccessToken | None:
        """Return another token to try (`ports.Logins.challenged`)."""
        return await self.logins.challenged(self.upstream, self.principal, sent, status, www_authenticate, self.url)


@dataclass(frozen=True)
class NoTokens:
    """For a connection that all principals share: it sends no token, whoever has one.

    `on_wanted` is called when the upstream wants a login. From then on, each principal needs a connection of its own.
    """

    tokens: PrincipalTokens
    on_wanted: Callable[[], None]

    async def token(self) -> AccessToken | None:
        """Return None."""
        return None

    async def challenged(
        self, sent: AccessToken | None, status: int, www_authenticate: Sequence[str]
    ) -> AccessToken | None:
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
