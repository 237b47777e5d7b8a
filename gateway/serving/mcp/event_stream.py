"""The answer to one POST as it is sent: a stream of events, or JSON after all, and what goes beside a long one."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp_types import ProgressToken
from starlette.types import Receive, Send

from gateway.serving.mcp.written_json import event_pieces
from gateway.upstream.transports.messages import write_fields

PING_SECONDS = 15.0
"""How long nothing is sent before a comment is, as in the SDK."""

_SMALL: Final = 64 * 1024
"""Bytes that are rather copied than sent in several pieces."""

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)

_logger = logging.getLogger(__name__)


class EventStream:
    """A stream of events, which begins with the first of them. Several tasks may write to it."""

    def __init__(self, send: Send, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._send = send
        self._headers = [*_EVENTS, *headers]
        self._writing = anyio.Lock(fast_acquire=True)
        self._has_begun = False
        self._is_over = False

    async def write(self, event: bytes) -> None:
        """Send an event; with none, only begin. What comes after the end is dropped."""
        async with self._writing:
            if self._is_over:
                _logger.debug("an event after the end of its stream was dropped")
                return
            await self._begin()
            if event:
                await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def keep_alive(self) -> None:
        """Send a comment, so that no proxy takes the connection for dead."""
        await self.write(b": ping\r\n\r\n")

    async def end(self, event: list[bytes]) -> None:
        """Send the last event, which is given in pieces, and end the stream."""
        async with self._writing:
            self._is_over = True
            await self._begin()
            await self._rest(event)

    async def _begin(self) -> None:
        if not self._has_begun:
            await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
            self._has_begun = True

    async def _rest(self, pieces: list[bytes]) -> None:
        """Send the rest of the answer; in one piece only if that is small, because its pieces may be shared."""
        if sum(map(len, pieces)) < _SMALL:
            pieces = [b"".join(pieces)]
        last = len(pieces) - 1
        for at, piece in enumerate(pieces):
            await self._send({"type": "http.response.body", "body": piece, "more_body": at < last})


class AnswerStream(EventStream):
    """The answer to a request of 2026-07-28. Until the first event, it may still become JSON with a status of its own.

    It is an `Outbound` of the SDK which, in this revision, carries notifications only.
    """

    def __init__(self, send: Send, progress_token: ProgressToken | None) -> None:
        super().__init__(send)
        self._progress_token = progress_token

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: a host of this revision is not sent requests."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification to the host, unless its answer is complete."""
        said = {} if params is None else {"params": params}
        await self.write(b"".join(event_pieces([write_fields({"jsonrpc": "2.0", "method": method, **said})])))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the host, if its request asks for it."""
        if self._progress_token is None:
            return
        told = {"progressToken": self._progress_token, "progress": progress, "total": total, "message": message}
        await self.notify("notifications/progress", {key: value for key, value in told.items() if value is not None})

    async def finish(self, status: int, message: list[bytes], more_headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Send the last message, which is given as its JSON in pieces.

        `status` and `more_headers` count if nothing was sent before.
        """
        async with self._writing:
            self._is_over = True
            if self._has_begun:
                return await self._rest(event_pieces(message))
            headers = [_JSON, (b"content-length", str(sum(map(len, message))).encode()), *more_headers]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            return await self._rest(message)


class Companion:
    """Goes beside an answer that is not complete at once: sends comments, and cancels it when the host disconnects.

    It is a context manager. It begins after `alone` seconds, so that nothing is started for an answer that is complete
    before.
    """

    def __init__(
        self,
        receive: Receive,
        stream: EventStream,
        answering: anyio.CancelScope,
        *,
        alone: float = 0.0,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._receive = receive
        self._stream = stream
        self._answering = answering
        self._alone = alone
        self._ping_seconds = ping_seconds
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._alone, self._start)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while not await self._is_gone():
                await self._stream.keep_alive()
        except Exception as error:  # a failure of the HTTP server: there is no connection any more
            _logger.debug("a host's connection failed: %s", error)
        self._answering.cancel()

    async def _is_gone(self) -> bool:
        """Wait until the host has disconnected, or for as long as nothing needs to be sent."""
        with anyio.move_on_after(self._ping_seconds):
            while (await self._receive())["type"] != "http.disconnect":
                pass
            return True
        return False
