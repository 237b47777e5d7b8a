"""Admit requests over HTTP before their answers begin, so that a refusal has a status and `Retry-After`.

What arrives on another way (stdio, HTTP+SSE, an attached host) is admitted by `Downstream`, as a JSON-RPC error.
Notifications, and answers to what an upstream asks, are let through: calls that run already wait for them.
"""

import re
from functools import partial
from typing import Any

import anyio
from pydantic_core import from_json, to_json
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admission.admission import Admission, Admitted
from gateway.content.links.base_url import PRINCIPAL_SCOPE
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.model.wire import OVERLOADED
from gateway.errors import Overloaded
from gateway.serving.http.body_length import declared_length
from gateway.serving.mcp.bodies import read_body, replayed
from gateway.serving.mcp.failures import RETRY_AFTER
from gateway.serving.mcp.request_caller import ADMITTED_SCOPE
from gateway.serving.mcp.service import SERVED

_METHOD = re.compile(rb'"method"\s*:\s*"(?:' + b"|".join(re.escape(name.encode()) for name in sorted(SERVED)) + rb')"')
_LOCAL = Caller().principal


def refusal_response(refused: Overloaded, request_id: Any = None) -> Response:
    """Return the response to a refused request: 429 if the caller asks too much, else 503, with a JSON-RPC error."""
    error = {"code": OVERLOADED, "message": str(refused), "data": {RETRY_AFTER: refused.retry_after}}
    body = to_json({"jsonrpc": "2.0", "id": request_id, "error": error})
    headers = {"Retry-After": str(refused.retry_after)}
    return Response(body, 429 if refused.by_caller else 503, headers, media_type="application/json")


class LargeBodyMiddleware:
    """ASGI wrapper that refuses large bodies while memory is short, before any of them is read."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            try:
                self._admission.check_size(declared_length(Headers(scope=scope)))
            except Overloaded as refused:
                response = refusal_response(refused)
                response.headers["Connection"] = "close"  # the body is not read
                return await response(scope, receive, send)
        return await self._app(scope, receive, send)


class AdmissionMiddleware:
    """ASGI wrapper that lets a request in when it has been admitted, and gives its place to `Downstream`."""

    def __init__(self, app: ASGIApp, admission: Admission, max_body_bytes: int) -> None:
        self._app = app
        self._admission = admission
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            return await self._app(scope, receive, send)
        body, arrived = await read_body(receive, self._max_body_bytes)
        whole = partial(replayed, arrived, receive)
        if body is None or not _needs_place(body, Headers(scope=scope)):
            return await self._app(scope, whole, send)
        try:
            place = await self._place(scope.get(PRINCIPAL_SCOPE) or _LOCAL, receive)
        except Overloaded as refused:
            return await refusal_response(refused, _id_in(body))(scope, receive, send)
        if place is None:
            return None  # nobody waits for an answer
        del body  # it may be large, and the answer may take long
        with place:
            scope[ADMITTED_SCOPE] = place
            return await self._app(scope, whole, send)

    async def _place(self, principal: str, receive: Receive) -> Admitted | None:
        """Return a place; None if whoever asks leaves while it waits for one. Raises as `Admission.admit`."""
        if (at_once := self._admission.admit_now(principal)) is not None:
            return at_once
        place: Admitted | None = None
        refused: Overloaded | None = None
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            try:
                place = await self._admission.admit(principal)
            except Overloaded as error:
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused
        return place


def _needs_place(body: bytes, headers: Headers) -> bool:
    """Whether the body is a request that needs a place. Of one of 2026-07-28, a header names the method.

    Of others, it is not parsed for that: whatever writes a method so that it is not found is admitted by `Downstream`.
    """
    if headers.get("mcp-protocol-version") in MODERN_REVISIONS:
        return headers.get("mcp-method") in SERVED
    return _METHOD.search(body) is not None


def _id_in(body: bytes) -> str | int | None:
    try:
        request_id = as_object(from_json(body)).get("id")
    except ValueError:
        return None
    return request_id if isinstance(request_id, str | int) else None
