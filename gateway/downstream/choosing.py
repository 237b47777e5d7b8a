"""The explicit choice of a profile over HTTP: the last segment of the path, else the header `X-MCP-Profile`."""

from collections.abc import Callable, Collection
from difflib import get_close_matches

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.downstream.calling import PROFILE_SCOPE
from gateway.downstream.security import refusal

HEADER = "x-mcp-profile"

ProfileNames = Collection[str] | Callable[[], Collection[str]]
"""The names that may be chosen, or how to ask for them."""


class ChoosingProfile:
    """ASGI wrapper: puts the profile that was chosen into the scope, and refuses one that does not exist."""

    def __init__(self, app: ASGIApp, names: ProfileNames, *, by_header: bool = True) -> None:
        self._app = app
        self._names = names
        self._by_header = by_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        in_path: str | None = scope.get("path_params", {}).get("profile")
        chosen = in_path or (Headers(scope=scope).get(HEADER) if self._by_header else None) or None
        names = self._names() if callable(self._names) else self._names
        if chosen is not None and chosen not in names:
            near = get_close_matches(chosen, names, n=1) or sorted(names)
            message = f"there is no profile {chosen[:80]!r}; did you mean {', '.join(near)}?"
            return await refusal(404 if in_path else 400, message)(scope, receive, send)
        scope[PROFILE_SCOPE] = chosen
        return await self._app(scope, receive, send)
