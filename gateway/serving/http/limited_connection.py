"""One connection under limits: a record of how long its peer keeps the server waiting.

uvicorn only limits how long a connection may be idle. So its protocol, whichever it is, is wrapped here, and its state
is observed. TLS is begun here too: the event loop, if it did it, would show a connection only after its handshake.
"""

import asyncio
import logging
import ssl
from typing import Any, Protocol, cast

from gateway.serving.http.limits import Limits
from gateway.serving.http.protocols import HttpProtocol
from gateway.serving.http.tokens import KNOWN, REFUSED, STANDING
from gateway.system.unread import has_unread

logger = logging.getLogger(__name__)

_FLUSHING_SECONDS = 5.0
"""Time for the peer to read the rest of an answer once a connection is being closed."""
_WARM_SECONDS = 0.5
"""Time after an answer in which the peer's next request may be on its way."""
CLOSE = (b"connection", b"close")
"""The header by which an answer says that it is the last one on its connection."""
LAST = "gateway.serving.http.last"
"""A key of a request's scope: its answer says `Connection: close`, whatever the application writes."""
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 28\r\n"
    b"connection: close\r\n\r\nThe request came too slowly."
)


class ConnectionsOfPort(Protocol):
    """What a connection needs of all connections of its port."""

    @property
    def limits(self) -> Limits:
        """What a peer may do."""
        ...

    @property
    def are_ending(self) -> bool:
        """Whether no connection is kept for more requests any more."""
        ...

    def clock(self) -> float:
        """Seconds, counted from any moment."""
        ...

    def admit(self, new: "LimitedConnection", /) -> bool:
        """Whether a new connection may stay."""
        ...

    def left(self, connection: "LimitedConnection", /) -> None:
        """Remove a connection that has been closed."""
        ...


class LimitedConnection(asyncio.Protocol):
    """One connection: uvicorn's protocol, with a record of how long its peer keeps the server waiting."""

    def __init__(self, connections: ConnectionsOfPort, inner: HttpProtocol) -> None:
        self.address = ""
        self.peer = ""
        """What its address is counted as (`Connections.admit`)."""
        self._connections = connections
        self._inner = inner
        self._on_answered = inner.on_response_complete
        inner.on_response_complete = self._answered
        self._answered_at: float | None = None
        """When the last answer was complete."""
        self._transport: asyncio.Transport
        self._begun: float | None = None
        """When the wait for a request, or for the rest of one, began; None while one is answered, or none has begun."""
        self._has_sent = False
        """Whether the peer has sent a byte of a request. Browsers open connections that they may never use."""
        self._body_bytes = 0
        self._unread: tuple[float, int] | None = None
        """When the peer last read part of a waiting answer, and how much was still waiting then."""
        self._closing: float | None = None
        self.is_ready = False
        """Whether requests can be received: not before a TLS handshake is complete."""
        self._handshake: asyncio.Task[None] | None = None
        self._early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer has connected."""
        if self._is_admitted(transport):
            self._begin()

    def shake_hands(self, transport: asyncio.BaseTransport, tls: ssl.SSLContext) -> None:
        """A peer has connected that is to begin TLS."""
        if self._is_admitted(transport):
            self._handshake = asyncio.get_running_loop().create_task(self._shake_hands(tls))

    def _is_admitted(self, transport: asyncio.BaseTransport) -> bool:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class is not one
        peer = cast("tuple[Any, ...] | None", transport.get_extra_info("peername"))
        self.address = str(peer[0]) if peer else ""
        self._begun = self._connections.clock()
        if self._connections.admit(self):
            return True
        self._transport.abort()
        return False

    def _begin(self) -> None:
        self._begun = self._connections.clock()
        self.is_ready = True
        self._inner.connection_made(self._transport)

    async def _shake_hands(self, tls: ssl.SSLContext) -> None:
        loop, limit = asyncio.get_running_loop(), self._connections.limits.handshake
        try:
            # The limit is for `sweep` to keep, which says so; the loop's own is a little longer.
            made = await loop.start_tls(
                self._transport, self, tls, server_side=True, ssl_handshake_timeout=limit + _FLUSHING_SECONDS
            )
        except (OSError, RuntimeError) as error:  # ssl.SSLError is an OSError; uvloop's for a closed transport is not
            logger.debug("a TLS handshake that failed: %s", error)
            self.abort()
            return
        if made is None or made.is_closing():
            self.abort()
            return
        self._transport = made
        self._begin()
        if self._early:
            self.data_received(bytes(self._early))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._connections.left(self)
        vars(self._inner).pop("on_response_complete", None)  # else the two would be freed by a garbage collection only
        if self.is_ready:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes of one or more requests."""
        if not self.is_ready:  # it came with the end of the handshake
            self._early += data
            return
        self._has_sent = True
        before = self._inner.cycle
        if self._begun is None and (before is None or before.response_complete):
            self._begun = self._connections.clock()
        self._body_bytes += len(data)
        try:
            self._inner.data_received(data)
        except Exception as error:  # h11's protocol raises on garbage after a request that it has answered
            logger.debug("a request that cannot be read: %s", error)
            self.abort()
            return
        cycle = self._inner.cycle
        if cycle is None:
            return
        if cycle is not before:  # its headers are complete
            self._begun, self._body_bytes = self._connections.clock(), 0
            self._announce_end()
        if not cycle.more_body and not cycle.response_complete:
            self._begun = None

    def _answered(self) -> None:
        self._answered_at = self._connections.clock()
        self._on_answered()
        self._announce_end()  # with h11, the next request has begun if it came before the answer was complete

    def _announce_end(self) -> None:
        """Let the answer say `Connection: close`, and so be the last, if its head is still to be written."""
        cycle = self._inner.cycle
        if self._connections.are_ending and cycle is not None and LAST not in cycle.scope:
            cycle.default_headers = [*cycle.default_headers, CLOSE]  # the list is that of all connections
            cycle.scope[LAST] = True

    def eof_received(self) -> bool | None:
        """The peer has finished sending."""
        if not self.is_ready:
            return None
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The peer reads more slowly than data is written."""
        if not self.is_ready:
            return
        self._unread = self._connections.clock(), self._transport.get_write_buffer_size()
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The peer has read most of the waiting data."""
        if not self.is_ready:
            return
        self._unread = None
        self._inner.resume_writing()

    def is_stranger(self) -> bool:
        """Whether the peer has not shown a valid token, and no request of it is being answered."""
        cycle = self._inner.cycle
        if cycle is None:
            return True
        standing = cycle.scope.get(STANDING)
        return standing == REFUSED or (standing != KNOWN and (cycle.response_complete or cycle.more_body))

    def is_idle(self) -> bool:
        """Whether no request is being answered on this connection."""
        cycle = self._inner.cycle
        return cycle is None or cycle.response_complete

    def is_spare(self) -> bool:
        """Whether the connection is idle, and its peer has not just sent something on it."""
        return self.is_idle() and not has_unread(self._transport)

    def is_asking_since(self, moment: float) -> bool:
        """Whether the peer has connected, or begun a request, after this moment, and has not sent a whole one."""
        return self.is_idle() and self._begun is not None and self._begun > moment

    @property
    def unread_bytes(self) -> int:
        """Number of bytes of answers that the peer has not read yet."""
        return self._transport.get_write_buffer_size()

    def stalled(self, now: float) -> float:
        """Seconds for which the peer has read almost nothing of a waiting answer; 0 if none is waiting."""
        if self._unread is None:
            return 0.0
        since, before = self._unread
        left = self.unread_bytes
        if before - left > (now - since) * self._connections.limits.bytes_per_second:
            self._unread = now, left
        return now - self._unread[0]

    def close_unless_asked(self) -> bool:
        """Close the connection if its peer asks nothing, or let the answer tell the peer. Return false if it is kept.

        It is if its peer has sent something, or may be doing so after an answer a moment ago: who sends a request on a
        connection that was kept open for it, and finds it closed, cannot know what has become of the request. Its next
        answer says that it is the last one. An answer that has begun cannot say so any more: ask again after it.
        """
        if not self.is_ready or self._transport.is_closing():
            return True
        if not self.is_idle():
            self._announce_end()
            return True
        if has_unread(self._transport) or self._is_warm():
            return False
        if self._transport.can_write_eof():
            self._transport.write_eof()  # the peer is told now; the event loop closes the socket a little later
        self._inner.shutdown()
        return True

    def close_when_answered(self) -> None:
        """Close the connection as soon as the answer that is being written is complete."""
        if self.is_ready and not self._transport.is_closing() and not self.is_idle():
            self._inner.shutdown()

    def _is_warm(self) -> bool:
        return self._answered_at is not None and self._connections.clock() - self._answered_at < _WARM_SECONDS

    def abort(self) -> None:
        """Close the connection at once; data not yet sent is lost."""
        self._connections.left(self)
        self._transport.abort()

    def close_if_slow(self, now: float, elapsed: float) -> str | None:
        """Close the connection if its peer is too slow, and return why if people should know of it.

        `elapsed`: seconds since the last check.
        """
        if self._transport.is_closing():
            self._closing = now if self._closing is None else self._closing
            if now - self._closing > _FLUSHING_SECONDS:
                self.abort()
            return None
        if not self.is_ready:
            if self._begun is None or now - self._begun <= self._connections.limits.handshake:
                return None
            self.abort()
            return "its TLS handshake came too slowly"
        if self.stalled(now) >= self._connections.limits.unread:
            self.abort()
            return "it does not read its answer"
        if self._dawdles(now, elapsed):
            cycle = self._inner.cycle
            if cycle is not None and cycle.response_complete and cycle.more_body:
                # It was refused before its body arrived; a second answer would be taken for that of the next request.
                self._transport.close()
                return None
            if cycle is None or cycle.response_complete or not cycle.response_started:
                self._transport.write(_TOO_SLOW)
            self._transport.close()
            if self._has_sent:
                return "its request came too slowly"
            logger.debug("closed a connection from %s, on which nothing was sent", self.address)
        return None

    def _dawdles(self, now: float, elapsed: float) -> bool:
        if self._begun is None:
            return False
        if self._inner.flow.read_paused:  # the server itself is not reading
            self._begun += elapsed
            return False
        limits, cycle = self._connections.limits, self._inner.cycle
        in_body = cycle is not None and not cycle.response_complete
        return now - self._begun > limits.request + (self._body_bytes / limits.bytes_per_second if in_body else 0)
