"""The client's side of one request: its body, and whether the client is still connected."""

from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
from starlette.requests import ClientDisconnect
from starlette.types import Receive

_LINGERING_SECONDS = 5
_LINGERING_BYTES = 64 * 1024 * 1024


class BodyTooLarge(Exception):
    """The body is larger than the limit."""


class ClientSide:
    """Reads a request's body of at most `limit` bytes, and then waits for the client to disconnect."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._read = anyio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            BodyTooLarge: it is larger than the limit.
            ClientDisconnect: the client disconnected before it was complete.
        """
        size = 0
        while not self._read.is_set():
            chunk = await self._next()
            size += len(chunk)
            if size > self._limit:
                raise BodyTooLarge
            if chunk:
                yield chunk

    async def whole(self) -> bytes:
        """Return the whole body. Raises the same errors as `chunks`."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def rest(self) -> None:
        """Read and discard the rest of the body, because a client that is still sending would not see the answer."""
        size = 0
        with anyio.move_on_after(_LINGERING_SECONDS), suppress(ClientDisconnect):
            while not self._read.is_set() and size < _LINGERING_BYTES:
                size += len(await self._next())

    async def gone(self) -> None:
        """Wait until the client disconnects. Call this after the body has been read."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if not message.get("more_body", False):
            self._read.set()
        return message.get("body", b"")
