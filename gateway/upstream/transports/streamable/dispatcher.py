"""Requests over Streamable HTTP: each is sent, and its answer read, by the task that asks.

It has the protocol of the SDK's dispatcher, and what the upstream sends by itself is handled by that
(`BoundedDispatcher`), with its limits. The SDK's transport is the reference; tests compare the two.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import anyio
import anyio.lowlevel
import httpx2
from anyio.abc import TaskStatus
from mcp.shared._otel import inject_trace_context, otel_span
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
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
    RequestId,
)
from opentelemetry import trace

from gateway.config.schema import UpstreamSettings
from gateway.core.model.json_safe import is_finite
from gateway.core.model.json_values import is_dict, is_list
from gateway.upstream.transports.bounded import BoundedDispatcher
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.clients import NOTICE_TIMEOUT
from gateway.upstream.transports.failures import MessageTooLarge, NotMcp
from gateway.upstream.transports.messages import failure_in, may_be_delivered, messages_in, read_json, write_fields
from gateway.upstream.transports.streamable.client import HttpClient
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.events import Event, EventParser
from gateway.upstream.transports.streamable.notices import Notices
from gateway.upstream.transports.streamable.response import Response
from gateway.upstream.transports.streamable.wire import NoStream, Wire, is_event_stream, is_json

logger = logging.getLogger(__name__)

Outcome = dict[str, Any] | ErrorData

_CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
_NO_MESSAGE = "answered with something that is not a JSON-RPC message"
_MOST_ATTEMPTS = 2
"""Attempts in a row to open a stream again."""
_DELAY = 1.0
"""Seconds before each of them, unless the upstream says otherwise (`retry`)."""
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
async def open_streamable(settings: UpstreamSettings) -> AsyncGenerator["HttpDispatcher"]:
    """Connect to the upstream's URL over Streamable HTTP; leaving the context ends the session."""
    client = HttpClient(settings)
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


@dataclass(eq=False)
class _Call:
    """A request that waits for its answer."""

    key: RequestId
    on_progress: ProgressFnT | None
    stays: bool
    """Whether what is left of a cancelled request stays open until the upstream knows that it was cancelled."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    outcome: Outcome | None = None
    is_sent: bool = False
    is_abandoned: bool = False
    left: Callable[[], None] | None = None

    def sent(self) -> None:
        """The upstream has the request, and may be working on it."""
        self.is_sent = True

    @property
    def is_to_be_cancelled(self) -> bool:
        """Whether the upstream has to be told that nobody waits for its answer any more."""
        return self.stays and self.is_abandoned and self.outcome is None and (self.is_sent or self.left is not None)

    def settle(self, outcome: Outcome) -> None:
        """Answer it from elsewhere than its own response."""
        if self.outcome is None:
            self.outcome = outcome
            self.scope.cancel()

    def leave(self, close: Callable[[], None]) -> None:
        """Close what is left of it, now or later."""
        if self.stays:
            self.left = close
        else:
            close()

    def leave_connection(self, connection: Connection) -> None:
        """The same for a connection without a response."""
        self.leave(connection.abort)


@dataclass
class _Position:
    """How far an event stream was read, and when it may be opened again."""

    last_id: bytes = b""
    delay: float = _DELAY

    def note(self, event: Event) -> None:
        """Note an event."""
        if event.last_id.isascii() and event.last_id.decode("ascii").isprintable():  # it will be sent as a header
            self.last_id = event.last_id or self.last_id
        if event.retry is not None:
            self.delay = event.retry / 1_000


class HttpDispatcher(BoundedDispatcher):
    """Sends requests over HTTP, and handles everything that arrives in their responses and in the standing stream."""

    def __init__(self, channel: Channel, most_bytes: int, wire: Wire) -> None:
        super().__init__(channel, most_bytes)
        self._wire = wire
        self._calls: dict[RequestId, _Call] = {}
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
        call = _Call(coerce_request_id(request_id), opts.get("on_progress"), stays=cancels)
        if (seconds := opts.get("timeout")) is not None:
            call.scope.deadline = anyio.current_time() + seconds
        self._calls[call.key] = call
        try:
            with _span(method, params, request_id) as span:
                await anyio.lowlevel.checkpoint_if_cancelled()
                with call.scope:
                    try:
                        body = _message(request_id, method, params, call)
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

    async def _exchange(self, call: _Call, method: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        response = await self._wire.ask(
            body,
            headers,
            opens_session=method == "initialize",
            is_repeatable=method in _REPEATABLE,
            let_go=call.leave_connection,
            on_sent=call.sent,
        )
        if is_event_stream(response):
            return await self._streamed(call, response)
        with _open(response, call):
            content = await response.read(self._most_bytes)
        response.release()
        if content and not is_json(response):
            raise NotMcp("answered with something that is neither JSON nor an event stream")
        outcome = await self._take(content, call)
        if outcome is None:
            raise NotMcp("answered with something that is not the response to the request")
        return outcome

    async def _streamed(self, call: _Call, response: Response) -> Outcome:
        """Return the answer in an event stream, which is opened again where it broke off, if it has ids."""
        position = _Position()
        attempts = 0
        while True:
            try:
                with _open(response, call):
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

    async def _listen(self, requested: anyio.Event) -> None:
        """Read the standing stream, in which the upstream sends what belongs to no request."""
        position = _Position()
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
            except (httpx2.TransportError, MessageTooLarge) as failure:
                logger.debug("the standing stream broke: %s", type(failure).__name__)
                attempts += 1
            requested.set()
            if attempts < _MOST_ATTEMPTS:
                await anyio.sleep(position.delay)

    async def _read_stream_of(self, response: Response, position: _Position, call: _Call | None) -> Outcome | None:
        """Handle the messages in a stream, until the answer to `call` or the end."""
        parser = EventParser(self._most_bytes)
        while chunk := await response.receive():
            for event in parser.feed(chunk):
                position.note(event)
                if event.kind == b"message" and event.data:
                    outcome = await self._take(event.data, call, is_stream=True)
                    if outcome is not None:
                        return outcome
        return None

    async def _take(self, data: bytes, call: _Call | None, *, is_stream: bool = False) -> Outcome | None:
        """Handle the messages in a body or an event, and return the answer to `call` if it is among them.

        A response in the stream of a request is its answer, whatever id it has.
        """
        try:
            value = read_json(data)
            if call is not None and (result := _result_in(value, None if is_stream else call.key)) is not None:
                return result
            if not may_be_delivered(value):
                return None
            messages = messages_in(value)
        except NotMcp as failure:
            if call is None:
                logger.debug("an upstream sent an event that is not MCP")
                return None
            raise NotMcp(_NO_MESSAGE) from failure
        outcome: Outcome | None = None
        for message in messages:
            if call is not None and _answers(message, call.key, any_id=is_stream and not is_list(value)):
                outcome = outcome or _outcome_of(message)
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

    def _cancel(self, call: _Call, request_id: RequestId) -> bool:
        """Begin to tell the upstream that a request is cancelled, which the end of its response does not say."""
        if self._tg is None or self._closed:
            return False
        self._tg.start_soon(self._tell_cancelled, call, request_id)
        return True

    async def _tell_cancelled(self, call: _Call, request_id: RequestId) -> None:
        try:
            with anyio.move_on_after(_FAREWELL):
                await self.notify("notifications/cancelled", {"requestId": request_id, "reason": "caller cancelled"})
        finally:
            if call.left is not None:
                call.left()


@contextmanager
def _open(response: Response, call: _Call) -> Generator[None]:
    """Close a response unless it is read to its end."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        call.leave(response.close)
        raise
    except BaseException:
        response.close()
        raise


def _message(request_id: RequestId, method: str, params: Mapping[str, Any] | None, call: _Call) -> bytes:
    """Write a request. Its id is also the token of its progress."""
    sent = dict(params) if params is not None else {}
    meta = dict(sent.get("_meta") or {})
    if call.on_progress is not None:
        meta["progressToken"] = request_id
    inject_trace_context(meta)
    if meta:
        sent["_meta"] = meta
    else:
        sent.pop("_meta", None)
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return write_fields({**message, "params": sent} if sent else message)


def _result_in(value: Any, key: RequestId | None) -> dict[str, Any] | None:
    """Return the result if a value is a sound response, to the request with this `key` (None: to any)."""
    if not is_dict(value) or "method" in value or "error" in value or value.get("jsonrpc") != "2.0":
        return None
    request_id, result = as_request_id(value.get("id")), value.get("result")
    if request_id is None or not is_dict(result) or (key is not None and coerce_request_id(request_id) != key):
        return None
    return result


def _answers(message: JSONRPCMessage, key: RequestId, *, any_id: bool) -> TypeGuard[JSONRPCResponse | JSONRPCError]:
    """Whether a message is the response to a request, or something unusable in its place."""
    if isinstance(message, JSONRPCError):
        return any_id or message.id is None or coerce_request_id(message.id) == key or _is_unusable(message)
    return isinstance(message, JSONRPCResponse) and (any_id or coerce_request_id(message.id) == key)


def _outcome_of(message: JSONRPCResponse | JSONRPCError) -> Outcome:
    if isinstance(message, JSONRPCResponse):
        return message.result
    if _is_unusable(message):
        raise NotMcp(_NO_MESSAGE)
    return message.error


def _is_unusable(message: JSONRPCError) -> bool:
    return failure_in(message.error) is not None


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
