"""One response: filled by its connection, read by whoever sent the request."""

import asyncio
from typing import Protocol

import httpx2

from gateway.upstream.transports.causes import MessageTooLarge

_MOST_BUFFERED = 512 * 1024
"""Bytes of a body that wait for a reader before the connection is paused."""


_MOST_PARTS = 1_000
"""Parts of a body beyond which they are joined."""


class Flow(Protocol):
    """The connection of a response."""

    def pause(self) -> None:
        """Read nothing more."""
        ...

    def resume(self) -> None:
        """Read on."""
        ...

    def release(self) -> None:
        """The response is of no more interest; the connection may serve another request once it is complete."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


class Response:
    """A response. Reading it raises httpx2's errors if the connection fails, or is silent for `seconds`."""

    def __init__(self, flow: Flow, seconds: float | None) -> None:
        self.status = 0
        """0 until the headers are complete."""
        self.headers: list[tuple[bytes, bytes]] = []
        """As received, with names in lower case."""
        self.has_begun = False
        """Whether anything was received."""
        self.is_complete = False
        self.unfollowed: str | None = None
        """Where it redirects to, in words, if it does and is not followed."""
        self._flow = flow
        self._seconds = seconds
        self._failure: Exception | None = None
        self._chunks: list[bytes] = []
        self._joined = 0
        self._buffered = 0
        self._limit: int | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_released = False

    def header(self, name: bytes) -> str:
        """Return a header's value; several are joined, and an absent one is empty."""
        return ", ".join(self.header_list(name))

    def header_list(self, name: bytes) -> list[str]:
        """Return every value of a header."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]

    # The connection's side.

    def open(self, status: int) -> None:
        """The headers are complete."""
        self.status = status
        self.wake()

    def feed(self, data: bytes) -> None:
        """A part of the body has arrived."""
        self._chunks.append(data)
        self._buffered += len(data)
        if len(self._chunks) - self._joined >= _MOST_PARTS:  # a part of two bytes takes dozens in memory
            self._chunks[self._joined :] = [b"".join(self._chunks[self._joined :])]
            self._joined += 1
        if self._limit is None:
            if self._buffered > _MOST_BUFFERED:
                self._flow.pause()
            self.wake()
        elif self._buffered > self._limit:
            self.wake()

    def finish(self) -> None:
        """The response is complete."""
        self.is_complete = True
        self.wake()

    def fail(self, failure: Exception) -> None:
        """No more will arrive."""
        if self._failure is None and not self.is_complete:
            self._failure = failure
            self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # The reader's side.

    async def opened(self) -> None:
        """Wait for the headers."""
        while not self.status:
            await self.news()

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises MessageTooLarge as soon as it exceeds `limit`, whatever length it declares."""
        self._limit = limit
        self._flow.resume()
        while self._buffered <= limit and not self.is_complete:
            await self.news()
        if self._buffered > limit:
            raise MessageTooLarge(limit)
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    async def receive(self) -> bytes:
        """Return the next part of the body, which is empty at its end."""
        while not self._chunks and not self.is_complete:
            await self.news()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = self._joined = 0
        self._flow.resume()
        return data

    async def beginning(self, limit: int) -> bytes:
        """Return up to `limit` bytes of the body: what was received before a failure."""
        try:
            return await self.read(limit)
        except (MessageTooLarge, httpx2.TransportError):
            return b"".join(self._chunks)[:limit]

    async def news(self) -> None:
        """Wait until something happens to the response."""
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = None if self._seconds is None else loop.call_later(self._seconds, self._time_out)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
        if self._failure is not None and not self._chunks:
            raise self._failure

    def release(self) -> None:
        """Let go of a response that was not necessarily read to its end; its connection is kept if that comes soon."""
        if not self._is_released:
            self._is_released = True
            self._chunks.clear()
            self._flow.release()

    def close(self) -> None:
        """Let go of a response. If it is not complete, its connection is closed, which tells the server."""
        if self.is_complete:
            self.release()
        elif not self._is_released:
            self._is_released = True
            self._flow.abort()

    def _time_out(self) -> None:
        self.fail(httpx2.ReadTimeout("no answer in time"))
