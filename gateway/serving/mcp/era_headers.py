"""Refuse HTTP requests whose headers do not go with their bodies: those that mix the two eras, and those about tasks.

The SDK chooses the era of a Streamable HTTP request by the header `MCP-Protocol-Version` alone. It would answer a
request of 2026-07-28 that names an older version with an error about a missing session.
"""

from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.revisions import HANDSHAKE_REVISIONS
from gateway.core.model.wire import HEADER_MISMATCH, TASK_ID
from gateway.serving.mcp.handshake import Refusal
from gateway.serving.mcp.service import OF_TASKS


def names_task(params: Mapping[str, Any], headers: Headers) -> bool:
    """Whether the header `Mcp-Name` of a request about a task, if there is one, names that task (SEP-2663).

    The SDK checks this header of the protocol's own methods only.
    """
    name = headers.get(MCP_NAME_HEADER)
    return name is None or decode_header_value(name) == params.get(TASK_ID)


def check_task_header(method: str, params: Mapping[str, Any], request: object) -> None:
    """Raise `Refusal` if a header of the HTTP request, if it is one, names another task than it does (`names_task`)."""
    if method in OF_TASKS and isinstance(request, Request) and not names_task(params, request.headers):
        raise Refusal(HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} does not name the task of the request")


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
