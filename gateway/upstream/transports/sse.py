"""The legacy HTTP+SSE transport (2024-11-05): messages arrive on one event stream and are POSTed to its endpoint.

It is our own because the SDK's ends the session at the first event of more than 1 MiB, which cannot be configured.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import httpx2
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import UpstreamError
from gateway.system.turns import Turns
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.transports.causes import ConnectionEnded, HttpStatus, NotMcp, SessionExpired, TooManyValues
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.clients import (
    beginning,
    challenges,
    client_options,
    longest_call,
    open_stream,
    same_origin,
)
from gateway.upstream.transports.messages import answered_id, failed_answer, failure_in, read_messages, write_message
from gateway.upstream.transports.send_authorized import send_request

logger = logging.getLogger(__name__)

_NOTICE_TIMEOUT = 10.0
_QUEUED = 64
_SMALL = 64 * 1024
_ENDS = 4_096
"""Characters at each end of a message in which its id is looked for."""


@asynccontextmanager
async def open_sse(settings: UpstreamSettings, tokens: TokenSource | None = None) -> AsyncGenerator[Channel]:
    """Open the upstream's event stream, and send messages to the endpoint that it names.

    Raises HttpStatus, NotMcp, LoginRequired, LoginFailed and httpx2's errors if it cannot be opened.
    """
    assert settings.url is not None
    async with httpx2.AsyncClient(**client_options(settings)) as client:
        response = await open_stream(client, settings.url, tokens)
        stream = _Stream(client, response, settings, tokens)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.write, await tasks.start(stream.read))
                try:
                    yield stream.channel
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            stream.close()
            with anyio.CancelScope(shield=True):
                await response.aclose()


class _Stream:
    """An open event stream, and the endpoint for messages."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        response: httpx2.Response,
        settings: UpstreamSettings,
        tokens: TokenSource | None,
    ) -> None:
        self._client = client
        self._response = response
        self._settings = settings
        self._tokens = tokens
        self._ending = Ending()
        self._accepted = False  # whether the endpoint has taken a message
        self._inbound: MemoryObjectSendStream[SessionMessage | Exception]
        self._outbound: MemoryObjectReceiveStream[SessionMessage]
        self._inbound, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, self._outbound = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
        self._streams = (self._inbound, read, write, self._outbound)
        self.channel = Channel(read, write, self._ending, failure_in, is_http=True)

    async def read(self, *, task_status: TaskStatus[str]) -> None:
        """Deliver messages until the stream ends. Started with the endpoint's URL, once the stream has named it."""
        named, turns = False, Turns()
        try:
            async for event in httpx2.EventSource(self._response, max_event_size=self._settings.max_message_bytes):
                if event.event == "endpoint" and not named:
                    task_status.started(self._endpoint(event.data))
                    named = True
                elif event.event == "message" and event.data and named:
                    await self._take(event.data)
                await turns.give_way()
            failure: Exception = ConnectionEnded("closed its event stream")
        except (httpx2.RequestError, httpx2.StreamError, NotMcp) as error:
            failure = error
        if not named:
            raise failure
        self._ending.name(failure)
        self._inbound.close()

    async def write(self, endpoint: str) -> None:
        """Post messages to the endpoint: requests concurrently, everything else in order."""
        async with anyio.create_task_group() as tasks:
            async for item in self._outbound:
                if isinstance(item.message, JSONRPCRequest):
                    tasks.start_soon(self._request, endpoint, item, item.message.id)
                    continue
                try:
                    await self._post(endpoint, item, _NOTICE_TIMEOUT)
                except (HttpStatus, SessionExpired, UpstreamError, httpx2.RequestError) as failure:
                    logger.debug("an upstream did not take a notification: %s", type(failure).__name__)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    async def _take(self, data: str) -> None:
        try:
            messages = read_messages(data)
        except TooManyValues as failure:
            request_id = answered_id(data[:_ENDS].encode("utf-8", "replace"), data[-_ENDS:].encode("utf-8", "replace"))
            messages = [] if request_id is None else [failed_answer(request_id, failure)]
        except NotMcp:
            logger.debug("an upstream sent an event that is not MCP")
            return
        for message in messages:
            await self._inbound.send(message)

    async def _request(self, endpoint: str, item: SessionMessage, request_id: str | int) -> None:
        try:
            await self._post(endpoint, item, longest_call(self._settings))
        except (HttpStatus, SessionExpired, UpstreamError, httpx2.RequestError) as failure:
            # If the stream has ended meanwhile, the request fails anyway.
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._inbound.send(failed_answer(request_id, failure))

    async def _post(self, endpoint: str, item: SessionMessage, seconds: float) -> None:
        request = self._client.build_request(
            "POST",
            endpoint,
            content=write_message(item.message),
            headers={"content-type": "application/json"},
            timeout=httpx2.Timeout(seconds),
        )
        response = await send_request(self._tokens, partial(self._client.send, stream=True), request)
        await beginning(response, _SMALL)
        if response.status_code in (404, 410) and self._accepted:
            raise SessionExpired
        if response.status_code >= 300:
            raise HttpStatus(response.status_code, challenges(response))
        self._accepted = True

    def _endpoint(self, named: str) -> str:
        here = self._response.request.url
        try:
            endpoint = here.join(named)
        except httpx2.InvalidURL as error:
            raise NotMcp("named an endpoint that is not a url") from error
        if not same_origin(here, endpoint):
            raise NotMcp(f"named an endpoint on another origin, {endpoint.host}, which is not trusted")
        return str(endpoint)
