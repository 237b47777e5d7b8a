"""Headers of one era on a request of the other: refused before anything else looks at it.

The SDK chooses the era of a Streamable HTTP request by the header `MCP-Protocol-Version` alone, and would answer a
request of 2026-07-28 under an older version with a complaint about a session that it cannot have.
"""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.revisions import HANDSHAKE_REVISIONS
from gateway.core.model.wire import HEADER_MISMATCH


class EraHeaderMiddleware:
    """ASGI wrapper: a POST with the headers of 2026-07-28 (`Mcp-Method`) has to name a version that knows them.

    `initialize`, which opens the handshake era, may carry whatever it likes.
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
