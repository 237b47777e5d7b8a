"""The connections of one port, under limits: slow ones are closed, and their number is bounded.

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
from typing import Any

from gateway.core.fact_words import counted
from gateway.serving.http.limited_connection import LimitedConnection
from gateway.serving.http.limits import Limits
from gateway.serving.http.peers import peer_of, unmapped
from gateway.serving.http.protocols import http_protocol
from gateway.serving.http.repeated import RepeatedLines
from gateway.system.loopback import is_loopback

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0
"""Time that a peer may go without reading anything while too much data waits on all connections."""
_MAKING_WAY = 16
"""Number of connections closed when the process has run out of file descriptors."""


class Connections:
    """All connections of one port. Call `sweep` about once a second."""

    def __init__(
        self, limits: Limits, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None
    ) -> None:
        self.limits = limits
        self.tls = tls
        self.clock = clock
        self.are_ending = False
        """Whether no connection is kept for more requests any more, which answers that begin from then on say."""
        self._most = limits.connections_at_most
        self._open: dict[LimitedConnection, None] = {}  # in the order in which they were opened
        self._by_peer: Counter[str] = Counter()
        self._lines = RepeatedLines(logger)
        self._swept = clock()
        self._counts_for = lru_cache(maxsize=1_000)(self._is_one_peer)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, new: LimitedConnection) -> bool:
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

    def left(self, connection: LimitedConnection) -> None:
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
        """Close the connections on which nobody asks.

        Return whether that is done: a peer may be about to use a connection that was kept open for it.
        """
        were_closed = [one.close_unless_asked() for one in tuple(self._open)]
        return all(were_closed)

    def close_when_answered(self) -> None:
        """Close the connections on which something is being answered right after that: answers end with the server."""
        for connection in tuple(self._open):
            connection.close_when_answered()

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
