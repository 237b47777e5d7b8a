"""Requests over Streamable HTTP: each is sent, and its answer read, by the task that asks.

It has the protocol of the SDK's dispatcher, and what the upstream sends by itself is handled by that
(`BoundedDispatcher`), with its limits. The SDK's transport is the reference; tests compare the two.
"""

import logging
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpx2
from anyio.abc import TaskStatus
from mcp.shared._otel import otel_span
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import MessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCNotification,
    RequestId,
)
from opentelemetry import trace

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_safe import is_finite
from gateway.core.model.json_values import is_list
from gateway.errors import UpstreamError
from gateway.system.turns import Turns, few_lines_each
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.transports.bounded import BoundedDispatcher
from gateway.upstream.transports.causes import MessageTooLarge, NotMcp, TooManyValues
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.clients import NOTICE_TIMEOUT, is_event_stream, is_json
from gateway.upstream.transports.messages import failure_in, may_be_delivered, messages_in, read_json
from gateway.upstream.transports.streamable.answers import NO_MESSAGE, Outcome, is_answer, outcome_of, result_in
from gateway.upstream.transports.streamable.calls import Call, StreamPosition, open_response, write_request
from gateway.upstream.transports.streamable.client import HttpClient
from gateway.upstream.transports.streamable.events import EventParser
from gateway.upstream.transports.streamable.notices import Notices
from gateway.upstream.transports.streamable.response import Response
from gateway.upstream.transports.streamable.wire import NoStream, Wire

logger = logging.getLogger(__name__)

_CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
_MOST_ATTEMPTS = 2
"""Attempts in a row to open a stream again."""
_STANDING = 5.0
"""Seconds to request the standing stream: it has a connection of its own."""
_FAREWELL = 2 * NOTICE_TIMEOUT
"""Seconds for the notification that a request is cancelled, which may have to wait for another message."""

_REPEATABLE = frozenset({
    "initialize", "server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list",
    "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe",
    "resources/unsubscribe", "subscriptions/listen",
})  # fmt: skip
"""Requests that may be processed twice without harm; a tool's call may not (`Request.is_repeatable`)."""


@asynccontextmanager
async def open_streamable(
    settings: UpstreamSettings, tokens: TokenSource | None = None
) -> AsyncGenerator["HttpDispatcher"]:
    """Connect to the upstream's URL over Streamable HTTP; leaving the context ends the session."""
    client = HttpClient(settings, tokens)
    wire = Wire(client, settings)
    never, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    try:
        with never, read:
            channel = Channel(read, Notices(wire), Ending(), failure_in, is_http=True)
            yield HttpDispatcher(channel, settings.max_message_bytes, wire)
        await wire.end()
    finally:
        client.close()
        await anyio.lowlevel.cancel_shielded_checkpoint()  # the sockets are closed in the loop's next turn


class HttpDispatcher(BoundedDispatcher):
    """Sends requests over HTTP, and handles everything that arrives in their responses and in the standing stream."""

    def __init__(self, channel: Channel, most_bytes: int, wire: Wire) -> None:
        super().__init__(channel, most_bytes)
        self._wire = wire
        self._calls: dict[RequestId, Call] = {}
        self._handlers: tuple[OnRequest, OnNotify]

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Handle what the upstream sends until the connection is closed."""
        self._handlers = (on_request, on_notify)
        await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request, and return its result.

        Raises MCPError for an error of the upstream and when the connection is closed, and the failures of a transport.
        """
        if self._closed:
            raise MCPError.from_error_data(_CLOSED)
        if not self._running:
            raise RuntimeError("a request was sent before the dispatcher runs")
        opts = opts or {}
        request_id = self._new_id(opts.get("request_id"))
        headers = opts.get("headers") or {}
        self._wire.begin(method, headers)
        cancels = opts.get("cancel_on_abandon", True) and not self._wire.is_modern
        call = Call(coerce_request_id(request_id), opts.get("on_progress"), stays=cancels)
        if (seconds := opts.get("timeout")) is not None:
            call.scope.deadline = anyio.current_time() + seconds
        self._calls[call.key] = call
        try:
            with _span(method, params, request_id) as span:
                await anyio.lowlevel.checkpoint_if_cancelled()
                with call.scope:
                    try:
                        body = write_request(request_id, method, params, call)
                        call.outcome = await self._exchange(call, method, body, headers)
                    except anyio.get_cancelled_exc_class():
                        call.is_abandoned = True
                        raise
                outcome = call.outcome
                if isinstance(outcome, ErrorData) and outcome is not _CLOSED:
                    code = str(outcome.code)
                    span.set_attributes({"error.type": code, "rpc.response.status_code": code})
                    span.set_status(trace.StatusCode.ERROR, outcome.message)
            if outcome is None:
                raise MCPError(REQUEST_TIMEOUT, f"Request {method!r} timed out")
        finally:
            del self._calls[call.key]
            is_told = call.is_to_be_cancelled and self._cancel(call, request_id)
            if call.left is not None and not is_told:
                call.left()
        if isinstance(outcome, ErrorData):
            raise MCPError.from_error_data(outcome)
        return outcome

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> None:
        """Send a notification. With `notifications/initialized`, the standing stream is opened.

        That was requested when this returns: what the upstream sends there because of the next request is not missed.
        """
        if method != "notifications/initialized" or self._wire.session_id is None or self._tg is None:
            await super().notify(method, params, opts, _related_request_id=_related_request_id)
            return
        self._wire.begin(method, (opts or {}).get("headers") or {})
        requested = anyio.Event()
        self._tg.start_soon(self._listen, requested)
        await super().notify(method, params, opts, _related_request_id=_related_request_id)
        with anyio.move_on_after(_STANDING):
            await requested.wait()

    # Answers.

    async def _exchange(self, call: Call, method: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        response = await self._wire.ask(
            body,
            headers,
            opens_session=method == "initialize",
            is_repeatable=method in _REPEATABLE,
            let_go=call.leave_connection,
            on_sent=call.sent,
        )
        if is_event_stream(response.header(b"content-type")):
            return await self._streamed(call, response)
        with open_response(response, call):
            content = await response.read(self._most_bytes)
        response.release()
        if content and not is_json(response.header(b"content-type")):
            raise NotMcp("answered with something that is neither JSON nor an event stream")
        outcome = await self._take(content, call)
        if outcome is None:
            raise NotMcp("answered with something that is not the response to the request")
        return outcome

    async def _streamed(self, call: Call, response: Response) -> Outcome:
        """Return the answer in an event stream, which is opened again where it broke off, if it has ids."""
        position = StreamPosition()
        attempts = 0
        while True:
            try:
                with open_response(response, call):
                    outcome = await self._read_stream_of(response, position, call)
                response.release()
                if outcome is not None:
                    return outcome
            except httpx2.TransportError as failure:
                logger.debug("a response stream broke: %s", type(failure).__name__)
            while True:
                if not position.last_id or attempts >= _MOST_ATTEMPTS:
                    raise httpx2.ReadError("the answer broke off")
                await anyio.sleep(position.delay)
                try:
                    response = await self._wire.listen(position.last_id)
                    attempts = 0
                    break
                except (httpx2.TransportError, NoStream) as failure:
                    logger.debug("a response stream was not resumed: %s", type(failure).__name__)
                    attempts += 1
                except UpstreamError as failure:
                    # The request was accepted: it is not to be sent again after a login, say, so that must not be why.
                    logger.debug("a response stream may not be resumed: %s", type(failure).__name__)
                    attempts = _MOST_ATTEMPTS

    async def _listen(self, requested: anyio.Event) -> None:
        """Read the standing stream, in which the upstream sends what belongs to no request."""
        position = StreamPosition()
        attempts = 0
        while attempts < _MOST_ATTEMPTS:
            try:
                response = await self._wire.listen(position.last_id, requested.set)
                try:
                    await self._read_stream_of(response, position, None)
                finally:
                    response.close()
                attempts = 0
            except NoStream as answer:
                if answer.is_final:
                    return
                attempts += 1
            except (httpx2.TransportError, MessageTooLarge, UpstreamError) as failure:
                logger.debug("the standing stream broke: %s", type(failure).__name__)
                attempts += 1
            requested.set()
            if attempts < _MOST_ATTEMPTS:
                await anyio.sleep(position.delay)

    async def _read_stream_of(self, response: Response, position: StreamPosition, call: Call | None) -> Outcome | None:
        """Handle the messages in a stream, until the answer to `call` or the end."""
        parser, turns = EventParser(self._most_bytes), Turns()
        while chunk := await response.receive():
            for piece in few_lines_each(chunk):
                for event in parser.feed(piece):
                    position.note(event)
                    if event.kind == b"message" and event.data:
                        outcome = await self._take(event.data, call, is_stream=True)
                        if outcome is not None:
                            return outcome
                    await turns.give_way()
                await turns.give_way()
        return None

    async def _take(self, data: bytes, call: Call | None, *, is_stream: bool = False) -> Outcome | None:
        """Handle the messages in a body or an event, and return the answer to `call` if it is among them.

        A response in the stream of a request is its answer, whatever id it has.
        """
        try:
            value = read_json(data)
            if call is not None and (result := result_in(value, None if is_stream else call.key)) is not None:
                return result
            if not may_be_delivered(value):
                return None
            messages = messages_in(value)
        except TooManyValues:
            if call is None:
                logger.debug("an upstream sent an event of too many values")
                return None
            raise
        except NotMcp as failure:
            if call is None:
                logger.debug("an upstream sent an event that is not MCP")
                return None
            raise NotMcp(NO_MESSAGE) from failure
        outcome: Outcome | None = None
        for message in messages:
            if call is not None and is_answer(message, call.key, any_id=is_stream and not is_list(value)):
                outcome = outcome or outcome_of(message)
                continue
            if self._tg is None or self.channel.ending.has_come:
                return _CLOSED
            await self._dispatch(SessionMessage(message), *self._handlers, None)
            await anyio.lowlevel.checkpoint()  # an upstream that sends without end does not keep all others waiting
        return outcome

    # What the SDK's dispatcher asks of the one over streams.

    def _dispatch_notification(
        self, msg: JSONRPCNotification, metadata: MessageMetadata, on_notify: OnNotify, sender_ctx: Any
    ) -> None:
        if msg.method == "notifications/progress":
            self._report(msg.params or {})
        super()._dispatch_notification(msg, metadata, on_notify, sender_ctx)

    def _report(self, params: Mapping[str, Any]) -> None:
        """Pass progress to whoever waits for the request that it is about."""
        token, progress, total = as_request_id(params.get("progressToken")), params.get("progress"), params.get("total")
        call = None if token is None else self._calls.get(coerce_request_id(token))
        if call is None or call.on_progress is None or not is_finite(progress):
            return
        message = params.get("message")
        self._spawn(
            _contained(call.on_progress),
            float(cast("float", progress)),
            float(total) if isinstance(total, int | float) else None,
            message if isinstance(message, str) else None,
            sender_ctx=None,
        )

    def _resolve_pending(self, request_id: RequestId | None, outcome: Outcome) -> None:
        call = None if request_id is None else self._calls.get(coerce_request_id(request_id))
        if call is not None:
            call.settle(outcome)

    def _end(self, failure: Exception) -> None:
        super()._end(failure)
        self._fan_out_closed()  # nothing more is read from their responses

    def _fan_out_closed(self) -> None:
        for call in self._calls.values():
            call.settle(_CLOSED)

    # Requests.

    def _new_id(self, supplied: RequestId | None) -> RequestId:
        if supplied is not None:
            if coerce_request_id(supplied) in self._calls:
                raise ValueError(f"request id {supplied!r} is already in flight")
            return supplied
        request_id = self._allocate_id()
        while request_id in self._calls:
            request_id = self._allocate_id()
        return request_id

    def _cancel(self, call: Call, request_id: RequestId) -> bool:
        """Begin to tell the upstream that a request is cancelled, which the end of its response does not say."""
        if self._tg is None or self._closed:
            return False
        self._tg.start_soon(self._tell_cancelled, call, request_id)
        return True

    async def _tell_cancelled(self, call: Call, request_id: RequestId) -> None:
        try:
            with anyio.move_on_after(_FAREWELL):
                await self.notify("notifications/cancelled", {"requestId": request_id, "reason": "caller cancelled"})
        finally:
            if call.left is not None:
                call.left()


def _contained(on_progress: ProgressFnT) -> ProgressFnT:
    async def contained(progress: float, total: float | None, message: str | None) -> None:
        try:
            await on_progress(progress, total, message)
        except Exception:
            logger.exception("progress could not be passed on")

    return contained


@contextmanager
def _span(method: str, params: Mapping[str, Any] | None, request_id: RequestId) -> Generator[trace.Span]:
    """Trace a request as the SDK does, if anything is traced."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield trace.INVALID_SPAN
        return
    target = (params or {}).get("name")
    name = f"MCP send {method}{f' {target}' if isinstance(target, str) else ''}"
    attributes = {"mcp.method.name": method, "jsonrpc.request.id": str(request_id)}
    with otel_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes) as span:
        yield span
