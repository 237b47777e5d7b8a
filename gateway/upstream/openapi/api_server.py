"""An MCP server within this process, in front of an HTTP API: the channel to it is like that to any other upstream.

It speaks the stateless revision only, so all hosts share one connection to it. Its document is read when the connection
is opened, and again when it has changed.
"""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpx2
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.core.fact_words import counted, plain
from gateway.core.model.json_values import as_object
from gateway.core.model.revisions import NEWEST_MODERN
from gateway.core.model.wire import ACKNOWLEDGED, INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_INFO, SUBSCRIPTION_ID
from gateway.errors import GatewayError
from gateway.upstream.openapi.api import Api, read_api
from gateway.upstream.openapi.call_operation import call_operation
from gateway.upstream.openapi.sources import DocumentSource, document_source
from gateway.upstream.transports.causes import HttpStatus
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.clients import client_options
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.messages import failed_answer, failure_in

logger = logging.getLogger(__name__)

_QUEUED = 64
_LIST_CHANGED = "notifications/tools/list_changed"
_NAMED = 3
"""Operations that the log names if some cannot be offered."""


@asynccontextmanager
async def open_api(subject: Subject) -> AsyncGenerator[Channel]:
    """Read the upstream's document, and serve its operations as tools.

    Raises DocumentUnusable, HttpStatus, LoginRequired, LoginFailed and httpx2's errors if that is not possible.
    """
    # Hosts share the connection, and what the API sets for one of them must not reach the others.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    async with httpx2.AsyncClient(**client_options(subject.settings), cookies=no_cookies) as client:
        source = document_source(subject.settings, client, subject.tokens)
        content = await source.read()
        assert content is not None  # it has not been read before
        api = await anyio.to_thread.run_sync(read_api, content, subject.settings, source.base)
        server = _ApiServer(api, source, client, subject)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.serve, tasks)
                tasks.start_soon(server.watch)
                try:
                    yield server.channel
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            server.close()


class _ApiServer:
    """Answers requests with the API as it was read last."""

    def __init__(self, api: Api, source: DocumentSource, client: httpx2.AsyncClient, subject: Subject) -> None:
        self._api = api
        self._source = source
        self._client = client
        self._subject = subject
        self._running: dict[str | int, anyio.CancelScope] = {}
        self._streams: set[str | int] = set()
        self._inbound: MemoryObjectSendStream[SessionMessage | Exception]
        self._outbound: MemoryObjectReceiveStream[SessionMessage]
        self._inbound, read = anyio.create_memory_object_stream[SessionMessage | Exception](_QUEUED)
        write, self._outbound = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
        self._opened = (self._inbound, read, write, self._outbound)
        self.channel = Channel(read, write, Ending(), failure_in)
        self._say_left_out()

    def close(self) -> None:
        for stream in self._opened:
            stream.close()

    async def serve(self, tasks: TaskGroup) -> None:
        """Answer requests, each in a task of its own, until the connection ends."""
        async for item in self._outbound:
            message = item.message
            if isinstance(message, JSONRPCRequest):
                scope = self._running[message.id] = anyio.CancelScope()
                tasks.start_soon(self._answer, message, scope)
            elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                cancelled = as_object(message.params).get("requestId")
                if isinstance(cancelled, str | int) and (scope := self._running.get(cancelled)) is not None:
                    scope.cancel()

    async def watch(self) -> None:
        """Read the document again when it has changed. One that cannot be used leaves everything as it is."""
        failed: str | None = None
        while self._source.pause:
            await anyio.sleep(self._source.pause)
            try:
                content = await self._source.read()
                if content is None:
                    continue
                api = await anyio.to_thread.run_sync(read_api, content, self._subject.settings, self._source.base)
            except (GatewayError, HttpStatus, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
                words = self._subject.secrets.cause(str(error) or type(error).__name__)
                if words != failed:
                    logger.warning(
                        "upstream %s: its document was not read again: %s; its tools stay", self._subject.name, words
                    )
                failed = words
                continue
            failed = None
            await self._adopt(api)

    async def _adopt(self, api: Api) -> None:
        if api is self._api:
            return
        self._api = api
        self._say_left_out()
        logger.info(
            "upstream %s: its document has changed, %s", self._subject.name, counted(len(api.tools), "operation")
        )
        for stream in tuple(self._streams):
            await self._tell(_LIST_CHANGED, {"_meta": {SUBSCRIPTION_ID: stream}})

    def _say_left_out(self) -> None:
        left_out = self._api.left_out
        if not left_out:
            self._subject.nested.pop("openapi", None)
            return
        more = f"; and {counted(len(left_out) - _NAMED, 'other')}" if len(left_out) > _NAMED else ""
        words = f"{counted(len(left_out), 'operation')} not offered: {'; '.join(left_out[:_NAMED])}{more}"
        self._subject.nested["openapi"] = words
        logger.warning("upstream %s: %s", self._subject.name, words)

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        message = JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        await self._inbound.send(SessionMessage(message))

    async def _answer(self, request: JSONRPCRequest, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._inbound.send(await self._answered(request))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("upstream %s: an answer came after the connection had ended", self._subject.name)
        finally:
            self._running.pop(request.id, None)

    async def _answered(self, request: JSONRPCRequest) -> SessionMessage:
        try:
            result = await self._result(request.method, as_object(request.params), request.id)
        except _Refused as refusal:
            error = ErrorData(code=refusal.code, message=str(refusal))
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))
        except Exception as failure:  # the session explains it, as it does those of a transport
            return failed_answer(request.id, failure)
        return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result))

    async def _result(self, method: str, params: Mapping[str, Any], request_id: str | int) -> dict[str, Any]:
        match method:
            case "server/discover":
                return self._discovered()
            case "tools/list":
                return {"tools": [dict(tool.wire) for tool in self._api.tools.values()]}
            case "tools/call":
                return await self._called(params)
            case "subscriptions/listen":
                return await self._listened(request_id)
            case _:
                raise _Refused(METHOD_NOT_FOUND, f"the server of an HTTP API does not have {plain(method, 100)}")

    def _discovered(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "supportedVersions": [NEWEST_MODERN],
            "capabilities": {"tools": {"listChanged": True}},
            "_meta": {SERVER_INFO: self._api.info},
        }
        return {**found, "instructions": self._api.instructions} if self._api.instructions else found

    async def _called(self, params: Mapping[str, Any]) -> dict[str, Any]:
        api = self._api
        tool = api.tools.get(str(params.get("name")))
        if tool is None:
            raise _Refused(INVALID_PARAMS, f"there is no operation {plain(str(params.get('name')), 100)!r}")
        arguments = as_object(params.get("arguments"))
        return await call_operation(api, tool, arguments, self._client, self._subject)

    async def _listened(self, request_id: str | int) -> dict[str, Any]:
        """Keep a stream open for changes of the list, until it is cancelled."""
        self._streams.add(request_id)
        try:
            meta = {SUBSCRIPTION_ID: request_id}
            await self._tell(ACKNOWLEDGED, {"notifications": {"toolsListChanged": True}, "_meta": meta})
            await anyio.sleep_forever()
        finally:
            self._streams.discard(request_id)
        return {}


class _Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
