"""The connections of one upstream: idle ones are used again, for a short while."""

import asyncio

from gateway.upstream.transports.clients import KEEPALIVE_EXPIRY, MOST_IDLE
from gateway.upstream.transports.streamable.connect import open_connection
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.requests import Origin


class ConnectionPool:
    """Connections, at most `MOST_IDLE` of them idle."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._sweep: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """Return an idle connection, the one last used; None if there is none."""
        oldest = asyncio.get_running_loop().time() - KEEPALIVE_EXPIRY
        for connection in reversed(self._idle):
            if connection.origin == origin and connection.idle_since > oldest:
                self._idle.remove(connection)
                if connection.is_usable:
                    return connection
                connection.close()
        return None

    async def open(self, origin: Origin, seconds: float) -> Connection:
        """Open a connection, for up to `seconds`."""
        connection = await open_connection(origin, seconds, lambda: Connection(origin, self._take_back, self._forget))
        if not connection.has_ended:
            self._open.add(connection)
        return connection

    def close(self) -> None:
        """Close all connections, those in use as well."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._open):
            connection.abort()

    def _take_back(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if len(self._idle) > MOST_IDLE:
            self._idle.pop(0).close()
        if self._sweep is None:
            self._sweep = loop.call_later(KEEPALIVE_EXPIRY, self._close_expired)

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _close_expired(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEPALIVE_EXPIRY
        for connection in [one for one in self._idle if one.idle_since <= oldest]:
            self._idle.remove(connection)
            connection.close()
        if self._idle:
            self._sweep = loop.call_at(self._idle[0].idle_since + KEEPALIVE_EXPIRY, self._close_expired)
