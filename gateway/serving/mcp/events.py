"""Events sent to hosts of the handshake era over Streamable HTTP, kept for a while to resume broken streams.

A host that lost a stream requests the rest of it with `Last-Event-ID` (2025-11-25, basic/transports, "Resumability and
Redelivery"). The SDK uses one event store for all sessions and names a stream by the id of its request, which every
host counts from 1. So each session has a store of its own here, and all of them share one bound.
"""

import itertools
import math
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from gateway.core.model.json_size import memory_of
from gateway.core.model.json_values import is_dict

RETRY_MILLISECONDS = 1_000
"""How long hosts are asked to wait before they resume a stream that has ended without an answer."""

EVENT_BYTES = 500
"""Approximate memory of an event without its message."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of what is kept: bytes and events per session and in total, and seconds after a request is answered."""

    session_bytes: int = 16 * 1024 * 1024
    session_events: int = 1_000
    all_bytes: int = 64 * 1024 * 1024
    all_events: int = 20_000
    seconds: float = 300.0


@dataclass(eq=False)
class Stream:
    """A stream of messages for one request of a host, or for none; it has ended when the request is answered."""

    name: str
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Event:
    """A message on a stream, or None for an event that only provides an id to resume from.

    `number` counts the events of the session; `size` is in bytes, `at` in seconds of the clock.
    """

    id: str
    number: int
    session: "SessionEvents"
    stream: Stream
    message: JSONRPCMessage | None
    size: int
    at: float


class Events:
    """The events of all sessions. Above a bound, the oldest are dropped."""

    def __init__(self, bounds: Bounds | None = None, clock: Callable[[], float] = anyio.current_time) -> None:
        self.bounds = bounds or Bounds()
        self.size = 0
        self._clock = clock
        self._kept: dict[str, Event] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def session(self) -> "SessionEvents":
        """Return a store for a new session."""
        return SessionEvents(self)

    def now(self) -> float:
        """The time, in seconds of the clock."""
        return self._clock()

    def keep(self, event: Event) -> None:
        """Add an event."""
        bounds, session = self.bounds, event.session
        self._kept[event.id] = session.kept[event.id] = event
        self.size += event.size
        session.size += event.size
        while session.size > bounds.session_bytes or len(session.kept) > bounds.session_events:
            self.drop(next(iter(session.kept.values())))
        while self.size > bounds.all_bytes or len(self._kept) > bounds.all_events:
            self.drop(next(iter(self._kept.values())))

    def drop(self, event: Event) -> None:
        """Remove an event."""
        del self._kept[event.id], event.session.kept[event.id]
        self.size -= event.size
        event.session.size -= event.size

    def expire(self) -> None:
        """Remove the events of answered requests that no host has asked for again in time."""
        before = self.now() - self.bounds.seconds
        for event in [event for event in self._kept.values() if event.stream.ended and event.at < before]:
            self.drop(event)

    @asynccontextmanager
    async def expiring(self) -> AsyncGenerator[None]:
        """Context manager: events expire while it is open."""

        async def look() -> None:
            while True:
                await anyio.sleep(self.bounds.seconds / 5)
                self.expire()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            yield
            tasks.cancel_scope.cancel()


class SessionEvents(EventStore):
    """The events of one session. Events of other sessions are unknown here, whatever their ids."""

    def __init__(self, events: Events) -> None:
        self.kept: dict[str, Event] = {}
        self.size = 0
        self._events = events
        self._key = secrets.token_hex(8)  # a host may send an id of its previous session
        self._numbers = itertools.count()
        self._open: dict[str, Stream] = {}
        self._is_over = False

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message and return its id. Of None, or a message that is too large, only the place is kept."""
        number = next(self._numbers)
        event_id = f"{self._key}-{number}"
        if self._is_over:
            return event_id
        stream = self._open.setdefault(stream_id, Stream(stream_id))
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            stream.ended = True
            del self._open[stream_id]  # a host may reuse the id of a request
        whole, size = message, EVENT_BYTES + size_of_message(message, self._events.bounds.session_bytes)
        if size > self._events.bounds.session_bytes:
            whole, size = _in_place_of(message), EVENT_BYTES
        self._events.keep(Event(event_id, number, self, stream, whole, size, self._events.now()))
        return event_id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the later events of the same stream, and return the stream if more may follow.

        Return None if the stream has ended, which closes the connection too, or if the event is unknown or no longer
        kept: then it is not known what is missing.
        """
        last = self.kept.get(last_event_id)
        if last is None:
            return None
        stream, sent = last.stream, last.number
        # More events may arrive while these are sent.
        while due := [event for event in self.kept.values() if event.stream is stream and event.number > sent]:
            for event in due:
                sent = event.number
                if event.message is not None:
                    await send_callback(EventMessage(event.message, event.id))
        return None if stream.ended else stream.name

    def forget(self) -> None:
        """Remove all events of the session, which has ended, and keep no more."""
        self._is_over = True
        for event in tuple(self.kept.values()):
            self._events.drop(event)


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's session manager, with an event store for each session."""

    def __init__(self, server: Server[Any], events: Events, **options: Any) -> None:
        super().__init__(server, retry_interval=RETRY_MILLISECONDS, **options)
        self._events = events
        self._stores: dict[str, SessionEvents] = {}

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self._make_room()
        store = self.event_store = self._events.session()  # passed to the transport that is made next
        transport = super()._admit_session(requestor)
        if transport is not None and transport.mcp_session_id is not None:
            self._stores[transport.mcp_session_id] = store
            transport.__class__ = UniqueRequests  # the SDK has no way to set the class
        return transport

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
            scope.cancel()  # ends the session as an idle time-out would

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        if (store := self._stores.pop(session_id, None)) is not None:
            store.forget()
        await super()._discard_session(session_id, transport)


class UniqueRequests(StreamableHTTPServerTransport):
    """The SDK's transport of one session, which refuses a request with the id of one that is still being answered.

    The SDK would pass the stream of the first request to the second, and never answer the first.
    """

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        if self._request_streams:
            request_id = _request_id(await request.body())  # cached by the request, so it can be read again
            if request_id is not None and str(request_id) in self._request_streams:
                error = {"code": INVALID_REQUEST, "message": "a request with this id is still being answered"}
                answer = JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, 400)
                return await answer(scope, receive, send)
        return await super()._handle_post_request(scope, request, receive, send)


def _request_id(body: bytes) -> str | int | None:
    """Return the id if the body is a request, or else None."""
    try:
        value: Any = from_json(body)
    except ValueError:
        return None
    fields = value if is_dict(value) else {}
    request_id = fields.get("id") if "method" in fields else None
    return request_id if isinstance(request_id, str | int) else None


def size_of_message(message: JSONRPCMessage | None, most: int | None = None) -> int:
    """Estimate the bytes of memory that a message's JSON takes; counting ends soon after `most`."""
    match message:
        case None:
            return 0
        case JSONRPCResponse():
            value: Any = message.result
        case JSONRPCError():
            value = (message.error.message, message.error.data)
        case _:
            value = message.params
    return memory_of(value, most)


def _in_place_of(message: JSONRPCMessage | None) -> JSONRPCMessage | None:
    """Return a replacement for a message that was not kept: an error, if the host waits for an answer."""
    if not isinstance(message, JSONRPCResponse | JSONRPCError):
        return None
    words = "the answer was sent on a stream that broke, and was too large to be kept: repeat the request"
    return JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=INTERNAL_ERROR, message=words))
