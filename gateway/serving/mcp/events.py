"""What hosts of the handshake era were sent over Streamable HTTP, kept for a while: a broken stream can be resumed.

A host that lost a stream asks for the rest of it with `Last-Event-ID` (2025-11-25, basic/transports, "Resumability and
Redelivery"). The SDK takes one event store for all its sessions and names a stream by the id of its request, which
every host counts from 1: so each session has a store of its own here, and all of them share one bound.
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
"""What hosts are told to wait before they come back for a stream that has ended without an answer."""

EVENT_BYTES = 500
"""What an event takes beside its message, about."""


@dataclass(frozen=True)
class Bounds:
    """How much is kept: bytes and events of one session, and of all together; seconds, once a request is answered."""

    session_bytes: int = 16 * 1024 * 1024
    session_events: int = 1_000
    all_bytes: int = 64 * 1024 * 1024
    all_events: int = 20_000
    seconds: float = 300.0


@dataclass(eq=False)
class Stream:
    """What is sent for one request of a host, by its id, or for none; it has ended when the request is answered."""

    name: str
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Event:
    """A message on a stream; None where there is only an id, to resume from.

    `number` counts the events of the session, `size` is in bytes, `at` in seconds of the clock.
    """

    id: str
    number: int
    session: "SessionEvents"
    stream: Stream
    message: JSONRPCMessage | None
    size: int
    at: float


class Events:
    """The events of all sessions. Over a bound the oldest are given up."""

    def __init__(self, bounds: Bounds | None = None, clock: Callable[[], float] = anyio.current_time) -> None:
        self.bounds = bounds or Bounds()
        self.size = 0
        self._clock = clock
        self._kept: dict[str, Event] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def session(self) -> "SessionEvents":
        """A store for a new session."""
        return SessionEvents(self)

    def now(self) -> float:
        """The time, in seconds of the clock."""
        return self._clock()

    def keep(self, event: Event) -> None:
        """Keep one more."""
        bounds, session = self.bounds, event.session
        self._kept[event.id] = session.kept[event.id] = event
        self.size += event.size
        session.size += event.size
        while session.size > bounds.session_bytes or len(session.kept) > bounds.session_events:
            self.drop(next(iter(session.kept.values())))
        while self.size > bounds.all_bytes or len(self._kept) > bounds.all_events:
            self.drop(next(iter(self._kept.values())))

    def drop(self, event: Event) -> None:
        """Give an event up."""
        del self._kept[event.id], event.session.kept[event.id]
        self.size -= event.size
        event.session.size -= event.size

    def expire(self) -> None:
        """Give up what was sent for requests that are answered, and that no host has come back for in time."""
        before = self.now() - self.bounds.seconds
        for event in [event for event in self._kept.values() if event.stream.ended and event.at < before]:
            self.drop(event)

    @asynccontextmanager
    async def expiring(self) -> AsyncGenerator[None]:
        """While this is open, events expire."""

        async def look() -> None:
            while True:
                await anyio.sleep(self.bounds.seconds / 5)
                self.expire()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            yield
            tasks.cancel_scope.cancel()


class SessionEvents(EventStore):
    """The events of one session. Those of another are unknown here, whatever their ids."""

    def __init__(self, events: Events) -> None:
        self.kept: dict[str, Event] = {}
        self.size = 0
        self._events = events
        self._key = secrets.token_hex(8)  # a host may come back with an id of its last session
        self._numbers = itertools.count()
        self._open: dict[str, Stream] = {}
        self._is_over = False

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message (None: only a place) and give its id. Of one larger than is kept, only the place is."""
        number = next(self._numbers)
        event_id = f"{self._key}-{number}"
        if self._is_over:
            return event_id
        stream = self._open.setdefault(stream_id, Stream(stream_id))
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            stream.ended = True
            del self._open[stream_id]  # a host may use the id of a request again
        whole, size = message, EVENT_BYTES + size_of_message(message, self._events.bounds.session_bytes)
        if size > self._events.bounds.session_bytes:
            whole, size = _in_place_of(message), EVENT_BYTES
        self._events.keep(Event(event_id, number, self, stream, whole, size, self._events.now()))
        return event_id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came on the same stream after this event; the stream, if more is to come on it.

        None when it has ended: so the connection ends with it. None also when the event is not known here (any more):
        what would be missing could not be told.
        """
        last = self.kept.get(last_event_id)
        if last is None:
            return None
        stream, sent = last.stream, last.number
        # More may come while this is sent.
        while due := [event for event in self.kept.values() if event.stream is stream and event.number > sent]:
            for event in due:
                sent = event.number
                if event.message is not None:
                    await send_callback(EventMessage(event.message, event.id))
        return None if stream.ended else stream.name

    def forget(self) -> None:
        """The session is over: nothing of it is kept, now or later."""
        self._is_over = True
        for event in tuple(self.kept.values()):
            self._events.drop(event)


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's manager of sessions, with a store of events for each."""

    def __init__(self, server: Server[Any], events: Events, **options: Any) -> None:
        super().__init__(server, retry_interval=RETRY_MILLISECONDS, **options)
        self._events = events
        self._stores: dict[str, SessionEvents] = {}

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self._make_room()
        store = self.event_store = self._events.session()  # what the transport that is made now is given
        transport = super()._admit_session(requestor)
        if transport is not None and transport.mcp_session_id is not None:
            self._stores[transport.mcp_session_id] = store
            transport.__class__ = UniqueRequests  # the SDK has no way to say which class is made
        return transport

    def _make_room(self) -> None:
        """Hosts leave without a word: at the limit the session makes way that has had nothing open for longest."""
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
            scope.cancel()  # ends the session as if it had been idle for too long

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        if (store := self._stores.pop(session_id, None)) is not None:
            store.forget()
        await super()._discard_session(session_id, transport)


class UniqueRequests(StreamableHTTPServerTransport):
    """The SDK's transport of one session; refuses a request whose id is that of one that is still being answered.

    The SDK would give the stream of the first to the second, and never answer the first.
    """

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        if self._request_streams:
            request_id = _request_id(await request.body())  # kept by the request, so it can be read again
            if request_id is not None and str(request_id) in self._request_streams:
                error = {"code": INVALID_REQUEST, "message": "a request with this id is still being answered"}
                answer = JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, 400)
                return await answer(scope, receive, send)
        return await super()._handle_post_request(scope, request, receive, send)


def _request_id(body: bytes) -> str | int | None:
    """The id of the request that a body is; None for anything else."""
    try:
        value: Any = from_json(body)
    except ValueError:
        return None
    fields = value if is_dict(value) else {}
    request_id = fields.get("id") if "method" in fields else None
    return request_id if isinstance(request_id, str | int) else None


def size_of_message(message: JSONRPCMessage | None, most: int | None = None) -> int:
    """The bytes of memory that the JSON of a message takes, about; counting ends soon after `most`."""
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
    """What a host gets of a message that was not kept: an answer at least, where it waits for one."""
    if not isinstance(message, JSONRPCResponse | JSONRPCError):
        return None
    words = "the answer was sent on a stream that broke, and was too large to be kept: repeat the request"
    return JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=INTERNAL_ERROR, message=words))
