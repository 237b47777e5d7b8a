"""Choice of a toolset over HTTP: after the profile in the path, or by the header `X-MCP-Toolset`; and by the token.

What the token says always holds; what the host chooses narrows it further.
"""

from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.config.toolset_settings import ToolsetSettings, which_toolset
from gateway.core.fact_words import plain
from gateway.serving.access import Identified
from gateway.serving.mcp.request_caller import IDENTIFIED_SCOPE, TOOLSETS_SCOPE
from gateway.serving.mcp.security import refused_response

HEADER = "x-mcp-toolset"

_LONGEST_NAME = 80

ToolsetsOf = Callable[[], Mapping[str, ToolsetSettings]]
"""Returns the toolsets in force."""


class ToolsetMiddleware:
    """ASGI wrapper that puts the chosen toolsets into the scope, by name, and refuses one that does not exist."""

    def __init__(self, app: ASGIApp, toolsets: ToolsetsOf, *, by_header: bool = True) -> None:
        self._app = app
        self._toolsets = toolsets
        self._by_header = by_header

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen, toolsets = chosen_in(scope, by_header=self._by_header), self._toolsets()
        named = [name for name in (_of_token(scope), chosen) if name is not None]
        if (unknown := next((name for name in named if name not in toolsets), None)) is not None:
            message = f"there is no toolset {plain(unknown, _LONGEST_NAME)!r}; {which_toolset(unknown, toolsets)}"
            status = 404 if "toolset" in scope.get("path_params", {}) else 400
            return await refused_response(status, message)(scope, receive, send)
        scope[TOOLSETS_SCOPE] = {name: toolsets[name].scope(name) for name in dict.fromkeys(named)}
        return await self._app(scope, receive, send)


def chosen_in(scope: Scope, *, by_header: bool = True) -> str | None:
    """Return the toolset that the host itself has chosen with this request, by path or header."""
    in_path: str | None = scope.get("path_params", {}).get("toolset")
    return in_path or (Headers(scope=scope).get(HEADER) if by_header else None)


def _of_token(scope: Scope) -> str | None:
    identified = scope.get(IDENTIFIED_SCOPE)
    return identified.toolset if isinstance(identified, Identified) else None
