"""The connections of one port, under limits: slow ones are closed, and their number is bounded.

uvicorn only limits how long a connection may be idle. So its protocol, whichever it is, is wrapped here, and its state
is observed. TLS is begun here too: the event loop, if it did it, would show a connection only after its handshake.

When there are too many connections, one is closed with which nothing is lost: one that has not sent a whole request
yet, oldest first, or else one that is kept open for another request. Connections that have not shown a valid token go
before those that have.
"""

import asyncio
import ipaddress
import logging
import ssl
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from gateway.core.fact_words import counted
from gateway.serving.http.limits import Limits
from gateway.serving.http.peers import peer_of, unmapped
from gateway.serving.http.protocols import HttpProtocol, http_protocol
from gateway.serving.http.repeated import RepeatedLines
from gateway.serving.http.tokens import KNOWN, REFUSED, STANDING
from gateway.system.loopback import is_loopback
from gateway.system.unread import has_unread

logger = logging.getLogger(__name__)

_FLUSHING_SECONDS = 5.0
"""Time for the peer to read the rest of an answer once a connection is being closed."""
_PATIENCE_SECONDS = 5.0
"""Time that a peer may go without reading anything while too much data waits on all connections."""
_MAKING_WAY = 16
"""Number of connections closed when the process has run out of file descriptors."""
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 28\r\n"
    b"connection: close\r\n\r\nThe request came too slowly."
)


class Connections:
    """All connections of one port. Call `sweep` about once a second."""

    def __init__(
        self, limits: Limits, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None
    ) -> None:
        self.limits = limits
        self.tls = tls
        self.clock = clock
        self._most = limits.connections_at_most
        self._open: dict[LimitedConnection, None] = {}  # in the order in which they were opened
        self._by_peer: Counter[str] = Counter()
        self._lines = RepeatedLines(logger)
        self._swept = clock()
        self._counts_for = lru_cache(maxsize=1_000)(self._is_one_peer)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, new: "LimitedConnection") -> bool:
        """Accept a connection if there is room, or if another can be closed for it."""
        if len(self._open) >= self._most:
            why = "" if self._most == self.limits.connections else ", for want of files (ulimit -n)"
            self._lines.warn("all", f"{counted(self._most, 'connection')} open, the maximum{why}: idle ones are closed")
            if not self._make_way(1):
                return False
        most = self.limits.connections_per_address
        is_bounded = self._counts_for(new.address) and not self.limits.is_replica(new.address)
        # Those without a bound are not counted with their /64: a proxy's connections are not those of its neighbours.
        new.peer = peer_of(new.address) if is_bounded else new.address
        if is_bounded and self._by_peer[new.peer] >= most:
            self._lines.warn(
                "address",
                f"{new.peer} has {counted(most, 'connection')} open, its maximum: idle ones are closed",
            )
            if not self._make_way(1, new.peer):
                return False
        self._open[new] = None
        self._by_peer[new.peer] += 1
        return True

    def left(self, connection: "LimitedConnection") -> None:
        """Remove a connection that has been closed."""
        if connection in self._open:
            del self._open[connection]
            self._by_peer[connection.peer] -= 1
            if not self._by_peer[connection.peer]:
                del self._by_peer[connection.peer]

    def sweep(self) -> None:
        """Close the connections whose peers are too slow."""
        now = self.clock()
        elapsed, self._swept = now - self._swept, now
        for connection in tuple(self._open):
            if (why := connection.close_if_slow(now, elapsed)) is not None:
                self._lines.warn(why, f"closed a connection from {connection.address}: {why}")
        self._bound_unread(now)

    def end_handshakes(self) -> None:
        """Close the connections that have not completed their TLS handshake: the gateway stops."""
        for connection in [one for one in self._open if not one.is_ready]:
            connection.abort()

    def _bound_unread(self, now: float) -> None:
        """While too much data waits on all connections, close those that have gone longest without reading."""
        waiting = {one: one.unread_bytes for one in self._open if one.stalled(now) >= _PATIENCE_SECONDS}
        too_much = sum(waiting.values()) - self.limits.unread_bytes
        for connection in sorted(waiting, key=lambda one: one.stalled(now), reverse=True):
            if too_much <= 0:
                return
            too_much -= waiting[connection]
            connection.abort()
            words = "it does not read its answer, and too much waits to be read on all connections"
            self._lines.warn(words, f"closed a connection from {connection.address}: {words}")

    def may_ask(self, seconds: float) -> bool:
        """Whether a request is probably on its way: for so long after a peer has connected, or begun to send one."""
        since = self.clock() - seconds
        return any(one.is_asking_since(since) for one in self._open)

    def close_idle(self) -> bool:
        """Close the connections on which nobody asks, and let no other be kept for more requests.

        Return whether that is done: a peer may just have sent a request on a connection that was kept open for it.
        """
        were_closed = [one.close_unless_asked() for one in tuple(self._open)]
        return all(were_closed)

    def out_of_files(self, reason: str) -> int:
        """Log now and then that no connection can be accepted, close some idle ones, and return how many."""
        made = self._make_way(_MAKING_WAY)
        self._lines.warn("files", f"no connection can be accepted for now: {reason}; {made} idle ones were closed")
        return made

    def _make_way(self, count: int, peer: str | None = None) -> int:
        """Close connections with which nothing is lost, and return how many there were."""
        made = 0
        for rank in (LimitedConnection.is_stranger, LimitedConnection.is_spare):
            for connection in tuple(self._open):
                if made >= count:
                    return made
                if peer in (None, connection.peer) and rank(connection):
                    connection.abort()
                    made += 1
        return made

    def _is_one_peer(self, address: str) -> bool:
        """Whether an address stands for one peer: not if it is the loopback (one user, or a proxy) or a known proxy."""
        given = unmapped(address)
        if is_loopback(address if given is None else str(given)):
            return False
        return given is None or not any(
            given in ipaddress.ip_network(proxy, strict=False) for proxy in self.limits.proxies
        )


class LimitedConnection(asyncio.Protocol):
    """One connection: uvicorn's protocol, with a record of how long its peer keeps the server waiting."""

    def __init__(self, connections: Connections, inner: HttpProtocol) -> None:
        self.address = ""
        self.peer = ""
        """What its address is counted as (`Connections.admit`)."""
        self._connections = connections
        self._inner = inner
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
        if not cycle.more_body and not cycle.response_complete:
            self._begun = None

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
        """Close the connection if it is idle, or after the answer to its request. Return false if it stays open.

        It does if its peer has just sent something: who sends a request on a connection that was kept open for it, and
        finds it closed, cannot know what has become of the request.
        """
        if not self.is_ready or self._transport.is_closing():
            return True
        if self.is_idle():
            if has_unread(self._transport):
                return False
            if self._transport.can_write_eof():
                self._transport.write_eof()  # the peer is told now; the event loop closes the socket a little later
        self._inner.shutdown()
        return True

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


class _Handshake(asyncio.Protocol):
    """A connection until TLS has been begun on it. What came before that is never taken for a part of what follows."""

    def __init__(self, connection: LimitedConnection, tls: ssl.SSLContext) -> None:
        self._connection = connection
        self._tls = tls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.shake_hands(transport, self._tls)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._connection.abort()


def limited_protocol(connections: Connections) -> Callable[..., asyncio.Protocol]:
    """Return a factory for uvicorn that makes the protocol of each new connection."""

    def make(*given: Any, **options: Any) -> asyncio.Protocol:
        made = LimitedConnection(connections, http_protocol(*given, **options))
        return made if connections.tls is None else _Handshake(made, connections.tls)

    return make
