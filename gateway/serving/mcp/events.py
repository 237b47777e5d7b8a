"""Events sent to hosts of the handshake era over Streamable HTTP, kept for a while to resume broken streams.

A host that lost a stream requests the rest of it with `Last-Event-ID` (2025-11-25, basic/transports, "Resumability and
Redelivery"). The SDK uses one event store for all sessions and names a stream by the id of its request, which every
host counts from 1. So each session has a store of its own here, and all of them share one bound.
"""

import base64
import itertools
import json
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventMessage, EventStore
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

from gateway.core.model.json_size import memory_of
from gateway.serving.mcp.written_json import WrittenArray, message_pieces

LOST = (
    "the replica of the gateway that had this request is gone, and nobody knows whether it was carried out "
    "(repeat it if that does no harm)"
)

_LONGEST_REQUEST = 200
"""Maximum characters of the id of a request that events name."""
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
    request: str | int | None = None
    """The id of the request, if events name it."""
    delivered: bool = False
    """Whether the host has got the answer, as far as that is known."""


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

    def __init__(
        self,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = anyio.current_time,
        *,
        naming_requests: bool = False,
    ) -> None:
        self.bounds = bounds or Bounds()
        self.naming_requests = naming_requests
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

    def begin(self, stream_id: str, request: str | int) -> Stream:
        """Begin the stream of a request. Its events name the request, if that is of use to another replica."""
        stream = Stream(stream_id, request=request if self._events.naming_requests else None)
        if not self._is_over:
            self._open[stream_id] = stream
        return stream

    @property
    def is_answering(self) -> bool:
        """Whether a request whose stream has begun has no answer yet."""
        return any(stream.request is not None for stream in self._open.values())

    def undelivered(self) -> list[dict[str, Any]]:
        """Return the events of answered requests whose hosts have not got the answer, as JSON (`restore`)."""
        lacking = [one for one in self.kept.values() if one.stream.ended and not one.stream.delivered]
        return [
            {"id": one.id, "stream": one.stream.name, "message": None if one.message is None else _wire(one.message)}
            for one in lacking
        ]

    def restore(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Keep the events that another replica left behind for this session. What is not one is left out."""
        streams: dict[str, Stream] = {}
        for place, event in enumerate(events, start=-len(events)):
            name, event_id, fields = event.get("stream"), event.get("id"), event.get("message")
            if not isinstance(name, str) or not isinstance(event_id, str):
                continue
            try:
                message = None if fields is None else jsonrpc_message_adapter.validate_python(fields)
            except ValidationError:
                continue
            stream = streams.setdefault(name, Stream(name, ended=True))
            size = EVENT_BYTES + size_of_message(message, self._events.bounds.session_bytes)
            self._events.keep(Event(event_id, place, self, stream, message, size, self._events.now()))

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message and return its id. Of None, or a message that is too large, only the place is kept."""
        number = next(self._numbers)
        if self._is_over:
            return f"{self._key}-{number}"
        stream = self._open.setdefault(stream_id, Stream(stream_id))
        event_id = f"{self._key}-{number}{_named(stream.request)}"
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
            return await self._goes_on(last_event_id, send_callback)
        stream, sent = last.stream, last.number
        # More events may arrive while these are sent.
        while due := [event for event in self.kept.values() if event.stream is stream and event.number > sent]:
            for event in due:
                sent = event.number
                if event.message is not None:
                    await send_callback(EventMessage(event.message, event.id))
        return None if stream.ended else stream.name

    async def _goes_on(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Go on with the stream of an event that another replica has sent; return None if there is none.

        A request that its events name is lost with that replica, and is answered by an error.
        """
        key, _, rest = last_event_id.partition("-")
        if not self._events.naming_requests or key == self._key or not rest:
            return None
        request = _request_named(rest)
        if request is None:
            return GET_STREAM_KEY
        error = JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=INTERNAL_ERROR, message=LOST))
        await send_callback(EventMessage(error, f"{self._key}-{next(self._numbers)}"))
        return None

    def forget(self) -> None:
        """Remove all events of the session, which has ended, and keep no more."""
        self._is_over = True
        for event in tuple(self.kept.values()):
            self._events.drop(event)


def size_of_message(message: JSONRPCMessage | None, most: int | None = None) -> int:
    """Estimate the bytes of memory that a message's JSON takes; counting ends soon after `most`."""
    match message:
        case None:
            return 0
        case JSONRPCResponse():
            written = [item for item in message.result.values() if isinstance(item, WrittenArray)]
            value: Any = {key: item for key, item in message.result.items() if not isinstance(item, WrittenArray)}
            # Counted for each message that has it, though most share one: those written for other hosts are not kept.
            return sum(len(item.json) for item in written) + memory_of(value, most)
        case JSONRPCError():
            value = (message.error.message, message.error.data)
        case _:
            value = message.params
    return memory_of(value, most)


def _wire(message: JSONRPCMessage) -> dict[str, Any]:
    return from_json(b"".join(message_pieces(message)))


def _named(request: str | int | None) -> str:
    """Return the end of the id of an event that names its request; nothing if it names none."""
    text = "" if request is None else json.dumps(request)
    if not 0 < len(text) <= _LONGEST_REQUEST:
        return ""
    return "-" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _request_named(text: str) -> str | int | None:
    """Return the request that is named at the end of an id, after the event's number."""
    name = text.partition("-")[2]
    try:
        found = json.loads(base64.b64decode(name + "=" * (-len(name) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _in_place_of(message: JSONRPCMessage | None) -> JSONRPCMessage | None:
    """Return a replacement for a message that was not kept: an error, if the host waits for an answer."""
    if not isinstance(message, JSONRPCResponse | JSONRPCError):
        return None
    words = "the answer was sent on a stream that broke, and was too large to be kept: repeat the request"
    return JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=INTERNAL_ERROR, message=words))
