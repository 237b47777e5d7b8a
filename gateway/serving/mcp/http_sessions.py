"""Sessions of the handshake era over Streamable HTTP: the SDK's, resumable, and with a shorter way for requests."""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext, authorization_context
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import (
    REQUEST_STREAM_BUFFER_SIZE,
    EventMessage,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST, JSONRPCError, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from gateway.core.model.json_values import as_dict
from gateway.serving.mcp.event_stream import Companion, EventStream
from gateway.serving.mcp.events import Events, SessionEvents
from gateway.serving.mcp.written_json import event_pieces, message_pieces

RETRY_MILLISECONDS = 1_000
"""How long hosts are asked to wait before they resume a stream that has ended without an answer."""

_MOST_QUEUED = REQUEST_STREAM_BUFFER_SIZE
_REVISION = "mcp-protocol-version"
_SESSION = b"mcp-session-id"

_logger = logging.getLogger(__name__)


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's session manager, with an event store for each session.

    `new_id` names new sessions; `on_end` is called with the id of one that has ended.
    """

    def __init__(
        self,
        server: Server[Any],
        events: Events,
        *,
        new_id: Callable[[], str] | None = None,
        on_end: Callable[[str], object] = lambda _: None,
        **options: Any,
    ) -> None:
        super().__init__(server, retry_interval=RETRY_MILLISECONDS, **options)
        self._events = events
        self._new_id = new_id
        self._adopted: str | None = None
        self._on_end = on_end
        self._stores: dict[str, SessionEvents] = {}

    def has(self, session: str) -> bool:
        """Whether a session is open."""
        return session in self._server_instances

    def open_sessions(self) -> Sequence[str]:
        """Return the ids of the open sessions."""
        return tuple(self._server_instances)

    def is_answering(self, session: str) -> bool:
        """Whether a request of a session has no answer yet (`cluster_port.SessionsPort`)."""
        store = self._stores.get(session)
        return store is not None and store.is_answering

    def undelivered(self, session: str) -> Sequence[Mapping[str, Any]]:
        """Return the answers that the host has not got (`cluster_port.SessionsPort`)."""
        store = self._stores.get(session)
        return [] if store is None else store.undelivered()

    async def end(self, session: str) -> None:
        """End a session, with the streams that its host listens to."""
        transport = self._server_instances.get(session)
        if transport is not None:
            await self._discard_session(session, transport)

    async def adopt(
        self, session: str, scope: Scope, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Open a session under a given id, by the requests that configure it (`cluster_port.SessionsPort`)."""
        user = scope.get("user")
        requestor = authorization_context(user) if isinstance(user, AuthenticatedUser) else None
        async with self._session_creation_lock:
            self._adopted = session
            try:
                transport = self._admit_session(requestor)
            finally:
                self._adopted = None
        if transport is None:
            return False
        self._stores[session].restore(answers)
        opening, *others = requests
        await self._serve_opening_request(transport, *replayed_request(scope, opening))
        for message in others:
            if self.has(session):
                await transport.handle_request(*replayed_request(scope, message, session))
        return self.has(session)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self._make_room()
        store = self.event_store = self._events.session()  # passed to the transport that is made next
        transport = super()._admit_session(requestor)
        if transport is not None and transport.mcp_session_id is not None:
            self._rename(transport, transport.mcp_session_id)
            self._stores[transport.mcp_session_id] = store
            transport.__class__ = SessionTransport  # the SDK has no way to set the class
        return transport

    def _rename(self, transport: StreamableHTTPServerTransport, name: str) -> None:
        """Give a new session another id than the SDK's, if it is to have one."""
        new = self._adopted or (self._new_id() if self._new_id is not None else None)
        if new is None:
            return
        transport.mcp_session_id = new
        self._server_instances[new] = self._server_instances.pop(name)
        if name in self._session_owners:
            self._session_owners[new] = self._session_owners.pop(name)

    def _make_room(self) -> None:
        """At the limit, end the session that has been unused for longest: hosts often leave without ending theirs."""
        if self.max_sessions is None or len(self._server_instances) < self.max_sessions:
            return
        idle = [
            (transport.idle_scope.deadline, session_id)
            for session_id, transport in self._server_instances.items()
            if transport.idle_scope is not None and transport.idle_scope.deadline < math.inf
        ]
        if idle:
            session_id = min(idle)[1]
            scope = self._server_instances.pop(session_id).idle_scope
            assert scope is not None
            self._ended(session_id)  # at once, or else it could be taken for one that may be opened again
            scope.cancel()  # ends the session as an idle time-out would

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        self._ended(session_id)
        await super()._discard_session(session_id, transport)

    def _ended(self, session_id: str) -> None:
        if (store := self._stores.pop(session_id, None)) is not None:
            store.forget()
            self._on_end(session_id)


class SessionTransport(StreamableHTTPServerTransport):
    """The SDK's transport of one session, with a way of its own to answer requests.

    The SDK answers each request by a task group of six tasks around two streams in memory, and it copies messages
    several times as it writes them. Here the task of the request writes its events, as they come, from one stream. What
    is not a good request goes the SDK's way.

    A request with the id of one that is still being answered is refused. The SDK would pass the stream of the first
    request to the second, and never answer the first. One with an id that no request may have is refused too, as over
    stdio: the SDK takes it for a notification, so that its host would wait for an answer for ever.
    """

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        try:
            fields = _fields_in(await request.body())  # cached by the request, so it can be read again
        except ClientDisconnect:
            return None  # nobody waits for an answer
        request_id = fields.get("id") if "method" in fields else None
        if isinstance(request_id, str | int) and str(request_id) in self._request_streams:
            answer = _invalid(request_id, "a request with this id is still being answered")
            return await answer(scope, receive, send)
        acceptable = all(check_accept_headers(request)) and self._check_content_type(request)
        if acceptable and not _has_usable_id(fields):
            answer = _invalid(None, "a request needs an id that is a string or an integer")
            return await answer(scope, receive, send)
        message = _request_of(fields) if acceptable else None
        if message is None:
            return await super()._handle_post_request(scope, request, receive, send)
        if await self._validate_request_headers(request, send):
            await self._answer(message, request, receive, send)
        return None

    async def _answer(self, message: JSONRPCRequest, request: Request, receive: Receive, send: Send) -> None:
        assert self.mcp_session_id is not None  # there are no sessions without one here
        assert self._read_stream_writer is not None  # nor requests before they are connected
        name, revision = str(message.id), request.headers.get(_REVISION, DEFAULT_NEGOTIATED_VERSION)
        assert isinstance(self._event_store, SessionEvents)
        kept = self._event_store.begin(name, message.id)
        # Kept before anything that the request causes, so that it is what the rest is resumed from.
        priming = await self._mint_priming_event(name, revision)
        stream = EventStream(send, [(b"mcp-session-id", self.mcp_session_id.encode())])
        arriving, arrived = self._request_streams[name] = anyio.create_memory_object_stream[EventMessage](_MOST_QUEUED)
        self._sse_stream_writers[name] = cast("Any", arriving)  # only to be closed, by `close_sse_stream`

        def settle() -> None:
            """Take no more events; from now on, the host may resume the stream, or use the id again."""
            if self._request_streams.get(name, ())[:1] == (arriving,):
                del self._request_streams[name]
                self._sse_stream_writers.pop(name, None)
            arriving.close()
            arrived.close()

        try:
            await stream.write(b"" if priming is None else _priming_event(priming))
            await self._read_stream_writer.send(self._create_session_message(message, request, name, revision))
            # If the host disconnects, which is noticed at once, it may resume at once; the call itself goes on.
            with anyio.CancelScope() as writing, Companion(receive, stream, writing):
                last = await _all_but_last(arrived, stream)
                settle()
                await stream.end(last)
                kept.delivered = bool(last)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _logger.debug("the session ended before request %s was answered", name)
            await stream.end([])
        finally:
            settle()


async def _all_but_last(arrived: MemoryObjectReceiveStream[EventMessage], stream: EventStream) -> list[bytes]:
    """Send the events of a request up to its answer, and return that in pieces; nothing if the stream was closed."""
    with suppress(anyio.ClosedResourceError):
        async for event in arrived:
            pieces = event_pieces(message_pieces(event.message), event.event_id)
            if isinstance(event.message, JSONRPCResponse | JSONRPCError):
                return pieces
            await stream.write(b"".join(pieces))
    return []


def replayed_request(
    scope: Scope, message: Mapping[str, Any], session: str | None = None
) -> tuple[Scope, Receive, Send]:
    """Return the POST of a message as its host would send it, with nobody to read the answer."""
    body = json.dumps(message).encode()
    left_out = (b"content-length", b"transfer-encoding", b"content-type", b"accept", b"last-event-id", _SESSION)
    headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
    headers += [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
    if session is not None:
        headers.append((_SESSION, session.encode()))
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not pending:
            await anyio.sleep_forever()
        return pending.pop()

    async def send(_: Message) -> None:
        """Drop the answer."""

    return {**scope, "method": "POST", "headers": headers}, receive, send


def _priming_event(event: Any) -> bytes:
    """Return an event that only gives an id to resume from, with the time to wait before that."""
    retry = f"retry: {event['retry']}\r\n" if "retry" in event else ""
    return f"id: {event['id']}\r\ndata: \r\n{retry}\r\n".encode()


def _fields_in(body: bytes) -> dict[str, Any]:
    """Return the members of the message in a body; none if it is not a JSON object."""
    try:
        return as_dict(from_json(body)) or {}
    except ValueError:
        return {}


def _invalid(request_id: str | int | None, message: str) -> JSONResponse:
    error = {"code": INVALID_REQUEST, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, 400)


def _has_usable_id(fields: Mapping[str, Any]) -> bool:
    """Whether an id, if there is one beside a method, is a string or an integer.

    Source: https://modelcontextprotocol.io/specification/2025-11-25/basic#requests
    """
    if "method" not in fields or "id" not in fields:
        return True
    return isinstance(fields["id"], str | int) and not isinstance(fields["id"], bool)


def _request_of(fields: dict[str, Any]) -> JSONRPCRequest | None:
    """Return a request, unless it is one that the SDK has to see: it may be malformed, or open the session."""
    if fields.get("method") in (None, "initialize") or "result" in fields or "error" in fields:
        return None
    try:
        return JSONRPCRequest.model_validate(fields, by_name=False)
    except ValidationError:
        return None
