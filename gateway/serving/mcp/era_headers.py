"""Refuse HTTP requests whose headers mix the two eras, before anything else handles them.

The SDK chooses the era of a Streamable HTTP request by the header `MCP-Protocol-Version` alone. It would answer a
request of 2026-07-28 that names an older version with an error about a missing session.
"""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.revisions import HANDSHAKE_REVISIONS
from gateway.core.model.wire import HEADER_MISMATCH


class EraHeaderMiddleware:
    """ASGI wrapper: a POST with a header of 2026-07-28 (`Mcp-Method`) must name a version that has it.

    `initialize`, which opens the handshake era, is exempt.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        version = headers.get("mcp-protocol-version")
        if (
            scope["method"] == "POST"
            and version in HANDSHAKE_REVISIONS
            and headers.get("mcp-method", "initialize") != "initialize"
            and "mcp-session-id" not in headers
        ):
            message = f"MCP-Protocol-Version is {version}, which has no Mcp-Method; the request is of a newer one"
            error = {"code": HEADER_MISMATCH, "message": message}
            refusal = JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)
            return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)
