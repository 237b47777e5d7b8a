"""The short way of requests of 2026-07-28 over HTTP: from the POST to the service, and its answer back as JSON.

The SDK's own way (`mcp.server._streamable_http_modern`) starts a task group, two tasks and a connection for each
request, and writes results with Python's json. Here only those requests are answered that are the gateway's and pass
every check of the SDK, by its own functions where these are public. Everything else goes the SDK's way unchanged, with
its body, so that a refusal is always the SDK's: wrong headers, batches, notifications, JSON that only Python reads,
methods of the protocol itself such as `subscriptions/listen`.
"""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PARAM_HEADER_PREFIX,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.content.links.base_url import BASE_SCOPE
from gateway.core.model.json_safe import to_json_safe
from gateway.core.model.json_shape import may_be_deep
from gateway.core.model.json_size import MANY_VALUES
from gateway.core.model.json_values import as_object, is_dict
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.model.wire import OVERLOADED
from gateway.serving.mcp.bodies import read_body, replayed
from gateway.serving.mcp.cluster_port import ClusterPort
from gateway.serving.mcp.downstream import Downstream, HostRequest, safe_params
from gateway.serving.mcp.era_headers import names_task
from gateway.serving.mcp.event_stream import PING_SECONDS, AnswerStream, Companion
from gateway.serving.mcp.failures import RETRY_AFTER
from gateway.serving.mcp.hosts import HostChannel
from gateway.serving.mcp.request_caller import ADMITTED_SCOPE, modern_caller
from gateway.serving.mcp.service import OF_TASKS, SERVED
from gateway.serving.mcp.written_json import error_pieces, response_pieces

_ALONE_SECONDS = 0.05
"""How long a call runs before anything watches whether its host is still there. Most calls are over by then."""

_METHODS: Final = SERVED | OF_TASKS
_PARAM_HEADERS: Final = MCP_PARAM_HEADER_PREFIX.lower()
_SMALL: Final = 2 * MANY_VALUES
"""Bytes of JSON, of which each value takes two: fewer have too few values to leave the event loop for them."""

_asked: ContextVar[tuple[Request, bytes] | None] = ContextVar("asked", default=None)
"""The request that the SDK answers, with its body."""


class _Checked(NamedTuple):
    """A request that has passed all checks."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    revision: str
    is_simple: bool
    """Whether it is certainly not nested deeply, and soon looked over."""


class ModernEndpoint:
    """ASGI application that answers requests of 2026-07-28, and passes on to `rest` whatever it does not answer."""

    def __init__(
        self,
        downstream: Downstream,
        security: TransportSecuritySettings,
        max_body_bytes: int,
        rest: ASGIApp,
        *,
        ping_seconds: float = PING_SECONDS,
        cluster: ClusterPort | None = None,
    ) -> None:
        self._cluster = cluster
        self._downstream = downstream
        self._security = TransportSecurityMiddleware(security)
        self._max_body_bytes = max_body_bytes
        self._rest = rest
        self._ping_seconds = ping_seconds
        downstream.server.get_tool_input_schema = self._schema_for_sdk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        headers = request.headers
        if (
            request.method != "POST"
            or headers.get(MCP_PROTOCOL_VERSION_HEADER) not in MODERN_REVISIONS
            or _length(headers) > self._max_body_bytes
        ):
            return await self._rest(scope, receive, send)
        body, arrived = await read_body(receive, self._max_body_bytes)
        if arrived[-1]["type"] == "http.disconnect":
            return None  # nobody waits for an answer
        checked = None if body is None else await self._checked(request, body)
        if checked is None:
            _asked.set(None if body is None else (request, body))
            return await self._rest(scope, partial(replayed, arrived, receive), send)
        if self._cluster is not None:
            caller = partial(modern_caller, checked.revision, checked.params, request)
            again = partial(replayed, arrived.copy(), receive)
            if await self._cluster.answered_elsewhere(checked.method, checked.params, caller, scope, again, send):
                return None
            del again
        del body  # it may be large, and the answer may take long
        arrived.clear()
        return await self._answer(checked, request, receive, send)

    async def _checked(self, request: Request, body: bytes) -> _Checked | None:
        """Return the request in `body`, or None if it is not for us or does not pass all checks of the SDK."""
        headers = request.headers
        if not (all(check_accept_headers(request)) and find_duplicated_routing_header(headers.items()) is None):
            return None
        if await self._security.validate_request(request, is_post=True) is not None:
            return None
        try:
            message = from_json(body)
        except ValueError:
            return None
        if not is_dict(message) or message.get("jsonrpc") != "2.0":
            return None
        request_id: object = message.get("id")
        method, params = message.get("method"), message.get("params")
        if not isinstance(request_id, str | int) or isinstance(request_id, bool):
            return None
        if not isinstance(method, str) or method not in _METHODS or not is_dict(params):
            return None
        route = classify_inbound_request(message, headers=dict(headers))
        if not isinstance(route, InboundModernRoute):
            return None
        if method == "tools/call" and not self._headers_agree(route.protocol_version, params, request):
            return None
        if method in OF_TASKS and not names_task(params, headers):
            return None
        is_simple = len(body) <= _SMALL and not may_be_deep(body)
        return _Checked(request_id, method, params, route.protocol_version, is_simple)

    def _headers_agree(self, revision: str, params: Mapping[str, Any], request: Request) -> bool:
        """Whether the headers agree with the arguments that the called tool wants repeated in headers."""
        name, arguments = params.get("name"), as_object(params.get("arguments"))
        if not isinstance(name, str):
            return True  # the service refuses it
        if not arguments and not any(header.startswith(_PARAM_HEADERS) for header in request.headers):
            return True
        schema = self._downstream.header_schema(name, partial(modern_caller, revision, params, request))
        return schema is None or validate_mcp_param_headers(schema, arguments, request.headers) is None

    def _schema_for_sdk(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool for whoever sent the request that the SDK is checking."""
        if (asked := _asked.get()) is None:
            return None
        request, body = asked
        params = as_object(as_object(json.loads(body)).get("params"))
        revision = request.headers[MCP_PROTOCOL_VERSION_HEADER]
        return self._downstream.header_schema(name, partial(modern_caller, revision, params, request))

    async def _answer(self, checked: _Checked, request: Request, receive: Receive, send: Send) -> None:
        stream = AnswerStream(send, progress_token_from_params(checked.params))
        companion = partial(Companion, receive, stream, alone=_ALONE_SECONDS, ping_seconds=self._ping_seconds)
        with anyio.CancelScope() as call, companion(call):
            try:
                result = await self._downstream.answer(
                    await self._host_request(checked, request, stream), request.scope.get(BASE_SCOPE)
                )
                status, message, headers = 200, response_pieces(checked.id, result), ()
                del result  # it is as large as the message
            except MCPError as error:
                status, headers = _status_of(error)
                message = error_pieces(checked.id, error.error)
            await stream.finish(status, message, headers)

    async def _host_request(self, checked: _Checked, request: Request, stream: AnswerStream) -> HostRequest:
        params = to_json_safe(checked.params) if checked.is_simple else await safe_params(checked.params)
        caller = modern_caller(checked.revision, params, request)
        return HostRequest(
            checked.method,
            params,
            checked.revision,
            caller,
            HostChannel(stream, caller, None),
            stream.progress,
            place=request.scope.get(ADMITTED_SCOPE),
        )


def _status_of(error: MCPError) -> tuple[int, Sequence[tuple[bytes, bytes]]]:
    """Return the HTTP status for an error, and the headers that it needs, if nothing was sent before."""
    if error.code == OVERLOADED:
        seconds = as_object(error.error.data).get(RETRY_AFTER, 1)
        return 503, [(b"retry-after", str(seconds).encode())]
    return ERROR_CODE_HTTP_STATUS.get(error.code, 200), ()


def _length(headers: Headers) -> int:
    """Return the length that the body is to have; 0 if it is not known."""
    try:
        return int(headers.get("content-length", "0"))
    except ValueError:
        return 0
