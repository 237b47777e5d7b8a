"""Explicit choice of a profile over HTTP, by the last segment of the path, the header `X-MCP-Profile`, or the token."""

from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.config.toolset_settings import AUTO
from gateway.core.near_names import did_you_mean
from gateway.core.profiles.match_profile import known_name
from gateway.serving.access import Identified
from gateway.serving.mcp.request_caller import IDENTIFIED_SCOPE, PROFILE_SCOPE
from gateway.serving.mcp.security import refused_response

HEADER = "x-mcp-profile"

ProfileNames = Collection[str] | Callable[[], Collection[str]]
"""The names that may be chosen, or a function that returns them."""


class ProfileMiddleware:
    """ASGI wrapper that puts the chosen profile into the scope, and refuses one that does not exist."""

    def __init__(self, app: ASGIApp, names: ProfileNames, *, by_header: bool = True) -> None:
        self._app = app
        self._names = names
        self._by_header = by_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        in_path = self._in_path(scope)
        chosen = in_path or (Headers(scope=scope).get(HEADER) if self._by_header else None) or _of_token(scope)
        names = self._known()
        known = known_name(names, chosen) if chosen is not None else None
        if chosen is not None and known is None:
            remedy = did_you_mean(chosen, names) or "`mcp-gateway profiles` lists them"
            message = f"there is no profile {chosen[:80]!r}; {remedy}"
            return await refused_response(404 if in_path else 400, message)(scope, receive, send)
        # In the profile's own spelling: what is remembered of a caller by its profile must not depend on case.
        scope[PROFILE_SCOPE] = known
        return await self._app(scope, receive, send)

    def _in_path(self, scope: Scope) -> str | None:
        named: str | None = scope.get("path_params", {}).get("profile")
        return None if named == AUTO and known_name(self._known(), AUTO) is None else named

    def _known(self) -> Collection[str]:
        return self._names() if callable(self._names) else self._names


def _of_token(scope: Scope) -> str | None:
    identified = scope.get(IDENTIFIED_SCOPE)
    return identified.profile if isinstance(identified, Identified) else None
