"""How the connections of one principal get access to an upstream: which tokens they send, and who they say calls."""

import logging
from collections.abc import Callable, Mapping
from functools import partial

from gateway.config.logins import has_tokens_of_principals, is_told_who_calls, may_take_logins
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.claims import CameWith, CameWithOf
from gateway.errors import GatewayError
from gateway.upstream.authorization.caller_headers import caller_headers
from gateway.upstream.authorization.connection_tokens import NoTokens, PrincipalTokens, ToldWhoCalls
from gateway.upstream.authorization.ports import Logins, TokenSource, bare_url

logger = logging.getLogger(__name__)


def nobody_came(principal: str) -> CameWith | None:
    """Return None: there are no issuers."""
    return None


class PrincipalAccess:
    """The access of a principal. `came_with` has the claims that principals came with."""

    def __init__(self, upstream: str, principal: str, logins: Logins | None, came_with: CameWithOf) -> None:
        self.logins = logins
        self.came_with = came_with
        self._upstream = upstream
        self._principal = principal

    def is_always_personal(self, settings: UpstreamSettings) -> bool:
        """Whether the settings alone say that each principal needs connections of its own."""
        return is_told_who_calls(settings) or (self.logins is not None and has_tokens_of_principals(settings))

    def tokens(
        self, settings: UpstreamSettings, *, is_personal: bool, on_wanted: Callable[[], None]
    ) -> TokenSource | None:
        """Return the tokens for connections; while they are shared, `on_wanted` is called when a login is wanted."""
        tokens = self._tokens_of_logins(settings, is_personal=is_personal, on_wanted=on_wanted)
        return ToldWhoCalls(tokens, partial(self._says_who_calls, settings)) if is_told_who_calls(settings) else tokens

    async def has_logins(self, settings: UpstreamSettings) -> bool:
        """Whether logins were given before, even if the upstream would do without."""
        if self.logins is None or not may_take_logins(settings):
            return False
        try:
            return bool(await self.logins.principals(self._upstream))
        except GatewayError as error:
            logger.warning("upstream %s: %s", self._upstream, error)
            return False

    def _says_who_calls(self, settings: UpstreamSettings) -> Mapping[str, str]:
        return caller_headers(self._upstream, settings, self._principal, self.came_with(self._principal))

    def _tokens_of_logins(
        self, settings: UpstreamSettings, *, is_personal: bool, on_wanted: Callable[[], None]
    ) -> TokenSource | None:
        if self.logins is None or settings.endpoint is None:
            return None
        if settings.auth is None and not may_take_logins(settings):  # it has other credentials
            return None
        mine = PrincipalTokens(self.logins, self._upstream, self._principal, bare_url(settings.endpoint))
        return mine if is_personal or not may_take_logins(settings) else NoTokens(mine, on_wanted)
