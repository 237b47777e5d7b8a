"""Refuse calls whose token lacks a scope, in the way that lets a host ask its user for it (403, step-up).

The answer to a call has often begun before the tool is looked up, so this comes first. What is not found here (a name
that only this host knows a tool by, or another transport) is refused by the router, with a result for the model.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, as_text
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.errors import AuditUnavailable, ScopeMissing
from gateway.serving.mcp.bodies import read_body, replayed
from gateway.serving.mcp.request_caller import grant_of, modern_caller

Check = Callable[[Mapping[str, Any], Caller], Awaitable[None]]
"""Checks a call to a tool, by its params. Raises ScopeMissing, or AuditUnavailable."""


class ScopeMiddleware:
    """ASGI wrapper: asks `check` about each call of a host whose token lacks scopes that some tools need.

    `refused` gives the answer to a request that lacks the scopes.
    """

    def __init__(
        self, app: ASGIApp, check: Check, refused: Callable[[Scope, ScopeMissing], Response], max_body_bytes: int
    ) -> None:
        self._app = app
        self._check = check
        self._refused = refused
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if scope["method"] != "POST" or not grant_of(request).scoped:
            return await self._app(scope, receive, send)
        body, arrived = await read_body(receive, self._max_body_bytes)
        try:
            if body is not None:
                await self._check_call(body, request)
        except ScopeMissing as missing:
            return await self._refused(scope, missing)(scope, receive, send)
        except AuditUnavailable:
            pass  # the router refuses the call for the same reason, with a result for the model
        return await self._app(scope, partial(replayed, arrived, receive), send)

    async def _check_call(self, body: bytes, request: Request) -> None:
        message = _message_in(body)
        params = as_object(message.get("params"))
        if message.get("method") == "tools/call" and as_text(params.get("name")) is not None:
            await self._check(params, modern_caller(_revision(request.headers), params, request))


def _message_in(body: bytes) -> Mapping[str, Any]:
    try:
        return as_object(from_json(body))
    except ValueError:
        return {}


def _revision(headers: Headers) -> str:
    return headers.get("mcp-protocol-version", NEWEST_HANDSHAKE)
