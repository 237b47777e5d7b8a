"""An HTTP/1.1 connection on httptools' parser (llhttp, in C): one exchange after the other."""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools
import httpx2

from gateway.system.unread import has_unread
from gateway.upstream.transports.streamable.requests import Origin
from gateway.upstream.transports.streamable.response import Response

_MOST_HEAD = 64 * 1024
"""Bytes before, between or after the parts of a body: interim responses and headers, sizes of chunks, trailers."""
_SLICE = 256 * 1024
_LINGERS = 1.0
"""Seconds, and `_LINGERING` bytes, for the end of a response of which nothing more is wanted."""
_LINGERING = 64 * 1024


class Connection(asyncio.Protocol):
    """A connection to `origin`. `on_idle` is called when it may be used again, `on_end` once it has ended."""

    def __init__(
        self, origin: Origin, on_idle: Callable[["Connection"], None], on_end: Callable[["Connection"], None]
    ) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._on_idle = on_idle
        self._on_end = on_end
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._response: Response | None = None
        self._ended = False
        self._can_write = True
        self._written = True
        self._is_paused = False
        self._lingering: asyncio.TimerHandle | None = None
        self._reset()

    def _reset(self) -> None:
        self._head_bytes = 0
        self._body_bytes = 0
        self._is_interim = False
        self._ends_with_connection = True
        self._is_spent = False

    # For whoever sends requests.

    def begin(self, seconds: float | None) -> Response:
        """Return the response to the request that is about to be sent."""
        self._reset()
        self._response = Response(self, seconds)
        return self._response

    async def write(self, response: Response, head: bytes, body: bytes) -> None:
        """Write the request, as fast as the server reads.

        A server may respond before it has read everything; then the rest is not sent.
        """
        if self._ended:
            response.fail(httpx2.RemoteProtocolError("the server closed the connection"))
        if len(body) <= _SLICE:
            self._transport.write(head + body)
            return
        self._written = False
        self._transport.write(head)
        for start in range(0, len(body), _SLICE):
            while not self._can_write and not response.status:
                await response.news()
            if response.status:
                return
            self._transport.write(memoryview(body)[start : start + _SLICE])
        self._written = True

    @property
    def has_ended(self) -> bool:
        """Whether the connection has been closed, by whichever side."""
        return self._ended

    @property
    def is_usable(self) -> bool:
        """Whether an idle connection can take a request: it is open, and the server has not sent anything.

        The socket is asked as well, since the end of the connection may have arrived without having been noticed yet.
        """
        return not self._ended and not self._transport.is_closing() and not has_unread(self._transport)

    def close(self) -> None:
        """Close an idle connection."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._response is not None:
            self._response.fail(httpx2.ReadError("the connection was closed"))
        self._transport.abort()

    def release(self) -> None:
        """Give the connection back as soon as the response is complete, if that is soon."""
        response = self._response
        if response is None or self._ended:
            return
        if response.is_complete:
            self._settle()
        else:
            self.resume()
            self._body_bytes = 0
            self._lingering = asyncio.get_running_loop().call_later(_LINGERS, self.abort)

    def pause(self) -> None:
        """Read nothing more, so that a server which sends faster than it is read has to wait."""
        if not self._is_paused and not self._ended:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            if not self._ended and not self._transport.is_closing():
                self._transport.resume_reading()

    def _settle(self) -> None:
        self._response = None
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._is_spent or not self._written:
            self._transport.abort()
        else:
            self.resume()
            self._on_idle(self)

    # For the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class is not one

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        response = self._response
        if response is None or response.is_complete:  # nobody has asked for it
            self._is_spent = True
            if response is None:
                self._transport.abort()
            return
        response.has_begun = True
        before = self._body_bytes
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._is_spent = True
            response.fail(httpx2.RemoteProtocolError(f"not an HTTP/1.1 response: {error}"))
        if not response.is_complete and self._body_bytes == before:
            self._head_bytes += len(data)
            self._check_head(response)

    def eof_received(self) -> None:
        """The server sends nothing more: the transport closes itself."""
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._end(exc)

    def pause_writing(self) -> None:
        """The server does not read as fast as we write."""
        self._can_write = False

    def resume_writing(self) -> None:
        """The server has read what was written."""
        self._can_write = True
        if self._response is not None:
            self._response.wake()

    def _end(self, error: Exception | None) -> None:
        if self._ended:
            return
        self._ended = True
        if self._lingering is not None:
            self._lingering.cancel()
        self._on_end(self)
        response = self._response
        if response is None or response.is_complete:
            return
        if error is None and response.status and self._ends_with_connection and not self._is_spent:
            response.finish()
        elif error is None:
            response.fail(httpx2.RemoteProtocolError("the server closed the connection before its answer was complete"))
        else:
            failure = httpx2.ReadError("the connection broke")
            failure.__cause__ = error
            response.fail(failure)

    # For the parser.

    def on_message_begin(self) -> None:
        """A response begins."""
        if self._response is not None and self._response.is_complete:  # another one, which nobody has asked for
            self._is_spent = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, is complete."""
        response = self._response
        assert response is not None
        if response.status or response.is_complete:
            self._head_bytes += len(name) + len(value)
            self._check_head(response)
            return
        name = name.lower()
        if name == b"content-length":
            self._ends_with_connection = False
        elif name == b"transfer-encoding":
            self._ends_with_connection = False
            if value.lower() != b"chunked":
                raise ValueError("an unknown transfer encoding")
        response.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The headers of a response are complete, perhaps of an interim one."""
        response = self._response
        assert response is not None
        if response.is_complete:
            return
        self._head_bytes += sum(len(name) + len(value) for name, value in response.headers)
        self._check_head(response)
        status = self._parser.get_status_code()
        if status < 100 or status == 101:
            raise ValueError("a status that is none, or another protocol, which nobody has asked for")
        self._is_interim = status < 200
        if self._is_interim:
            response.headers.clear()
            self._ends_with_connection = True
        else:
            response.open(status)

    def on_body(self, data: bytes) -> None:
        """A part of the body is there."""
        response = self._response
        if response is None or response.is_complete:
            return
        self._body_bytes += len(data)
        self._head_bytes = 0  # a long stream has the sizes of many chunks
        if self._lingering is None:
            response.feed(data)
        elif self._body_bytes > _LINGERING:
            self.abort()

    def on_message_complete(self) -> None:
        """A response is complete."""
        response = self._response
        if response is None or response.is_complete or self._is_interim:
            return
        if not self._parser.should_keep_alive():  # later, the parser no longer knows
            self._is_spent = True
        response.finish()
        if self._lingering is not None:
            # Not from within the parser, and not before what follows the response in the same data was seen.
            asyncio.get_running_loop().call_soon(self._settle_lingering)

    def _settle_lingering(self) -> None:
        if not self._ended and self._response is not None:
            self._settle()

    def _check_head(self, response: Response) -> None:
        if self._head_bytes > _MOST_HEAD:
            self._is_spent = True
            response.fail(httpx2.RemoteProtocolError("the headers of the response are too large"))
            self._transport.abort()
