"""`/openapi.json` and `POST /tools/<name>`: the tools for programs without MCP, under the same rules as for hosts."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.content.links.base_url import BASE_SCOPE, PRINCIPAL_SCOPE
from gateway.content.links.links import Links
from gateway.content.store import ContentStore
from gateway.core.model.caller import Caller
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import as_list, is_dict
from gateway.errors import (
    AuditUnavailable,
    GatewayError,
    InvalidRequest,
    NotAllowed,
    Overloaded,
    ScopeMissing,
    TooManyCalls,
    UnknownTool,
    UpstreamBusy,
    UpstreamError,
    UpstreamTimeout,
)
from gateway.serving.mcp.cluster_port import ClusterPort
from gateway.serving.mcp.failures import sole_gateway_error
from gateway.serving.mcp.profile_choice import ProfileMiddleware, ProfileNames
from gateway.serving.mcp.request_caller import PROFILE_SCOPE, program_caller
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.mcp.security import refused_response
from gateway.serving.mcp.service import Service
from gateway.serving.mcp.toolset_choice import ToolsetMiddleware, ToolsetsOf
from gateway.serving.openapi.describe_tools import TOOLS_PATH, document_of
from gateway.serving.openapi.write_result import ResultWriter
from gateway.upstream.transports.messages import write_fields

logger = logging.getLogger(__name__)

DOCUMENT_PATH = "/openapi.json"
_OF_PROFILE = "/openapi/{profile}"

Answer = Callable[[Request, Send], Awaitable[Response | None]]
"""Returns the response, or None if it has been sent."""

_STATUS: tuple[tuple[type[GatewayError], int], ...] = (
    (UnknownTool, 404),
    (InvalidRequest, 400),
    (ScopeMissing, 403),
    (NotAllowed, 403),
    (TooManyCalls, 429),
    (AuditUnavailable, 503),
    (Overloaded, 503),
    (UpstreamBusy, 503),
    (UpstreamTimeout, 504),
    (UpstreamError, 502),
    (GatewayError, 500),
)
"""Statuses by class of error; the first class that matches counts."""


@dataclass(frozen=True)
class ToolApi:
    """What the routes need: the gateway, the store for media of results, and how the API introduces itself."""

    service: Service
    store: ContentStore
    links: Links
    name: str
    version: str
    max_request_bytes: int
    profile_names: ProfileNames
    toolsets: ToolsetsOf
    all_tools: Callable[[Caller], Iterable[Mapping[str, Any]]]
    """Returns the tools of a caller that was listed some, those among them that a model finds by searching."""
    requests: RunningRequests
    """Those of the HTTP application (`http_app`), so that calls may end before the gateway does."""
    public_url: str | None = None
    needs_token: Callable[[], bool] = bool
    cluster: ClusterPort | None = None

    def routes(self) -> list[BaseRoute]:
        """Return the routes. Each is also there with a profile in its path, `/openapi/<profile>/...`."""
        found: list[BaseRoute] = []
        for before in ("", _OF_PROFILE):
            found += [
                Route(f"{before}{DOCUMENT_PATH}", self._chosen(self._document), methods=["GET"]),
                Route(f"{before}{TOOLS_PATH}/{{name:path}}", self._chosen(self._called), methods=["POST"]),
            ]
        return [*found, Route(f"{_OF_PROFILE}.json", self._chosen(self._document), methods=["GET"])]

    def _chosen(self, answer: Answer) -> ASGIApp:
        """Return the endpoint for a function, with the profile and the toolsets of each request, as for hosts."""
        return ProfileMiddleware(ToolsetMiddleware(_Endpoint(answer), self.toolsets), self.profile_names)

    async def _document(self, request: Request, _: Send) -> Response:
        caller = program_caller(request)
        listed = await self._respond("tools/list", {}, caller)
        tools = as_list(listed.get("tools"))
        if request.scope.get(PROFILE_SCOPE) is None:  # a program has no model that would search
            tools = self.all_tools(caller)
        in_path = request.path_params.get("profile")
        base = (self.public_url or str(request.scope.get(BASE_SCOPE) or request.base_url)).rstrip("/")
        base = f"{base}/openapi/{caller.profile}" if in_path else base
        document = document_of(tools, self.name, self.version, base, needs_token=self.needs_token())
        return Response(write_fields(document), headers={"cache-control": "no-store"}, media_type="application/json")

    async def _called(self, request: Request, send: Send) -> Response | None:
        caller = program_caller(request)
        body, arguments = await self._arguments(request)
        params = {"name": str(request.path_params["name"]), "arguments": arguments}
        if self.cluster is not None and await self.cluster.answered_elsewhere(
            "tools/call", params, lambda: caller, request.scope, _again(body), send
        ):
            return None
        del body  # it may be large, and the answer may take long
        with self.requests.one():
            result = await self._respond("tools/call", params, caller)
            owner = str(request.scope.get(PRINCIPAL_SCOPE) or Caller().principal)
            return await ResultWriter(self.store, self.links).write(result, request, owner)

    async def _respond(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Return the service's answer, when it is this request's turn. Raises as `Admission.admit` and `respond`."""
        with await self.service.admission.admit(caller.principal):
            return await self.service.respond(method, params, caller)

    async def _arguments(self, request: Request) -> tuple[bytes, dict[str, Any]]:
        """Return the body, and the arguments in it.

        It must be JSON: what a page of another origin can send without asking is not.
        """
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > self.max_request_bytes:
                raise InvalidRequest(
                    f"the body is larger than {self.max_request_bytes:,} bytes", remedy="see [http] max_request_bytes"
                )
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise InvalidRequest("send the arguments as a JSON object, with Content-Type: application/json")
        try:
            value: Any = from_json(bytes(content or b"{}"))
        except ValueError:
            raise InvalidRequest("the body is not JSON") from None
        if not is_dict(value) or is_deep(value):
            raise InvalidRequest("the body is not a JSON object with the arguments, or nests too deeply")
        return bytes(content), value


class _Endpoint:
    """An ASGI application for one function; it ends the function when whoever asked has left."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ended = anyio.Event()

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                ended.set()
            return message

        response: Response | None = None
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await ended.wait()  # the body has been read, so that this reads nothing of it
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            response = await self._answered(Request(scope, received), send)
            tasks.cancel_scope.cancel()
        if response is not None:
            await response(scope, receive, send)

    async def _answered(self, request: Request, send: Send) -> Response | None:
        try:
            return await self._answer(request, send)
        except ClientDisconnect:
            return None
        except Exception as failure:
            error = sole_gateway_error(failure)
            if error is None:
                raise
            return _refused(error)


def _again(body: bytes) -> Receive:
    """Return what receives a body that has been read. Whether its sender is still there is watched by `_Endpoint`."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not pending:
            await anyio.sleep_forever()
        return pending.pop()

    return receive


def _refused(error: GatewayError) -> Response:
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    if not isinstance(error, Overloaded | UpstreamBusy):
        return refused_response(status, str(error))
    by_caller = isinstance(error, Overloaded) and error.by_caller
    return refused_response(429 if by_caller else status, str(error), {"Retry-After": str(error.retry_after)})
