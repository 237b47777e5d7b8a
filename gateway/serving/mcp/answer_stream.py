"""The answer to one POST of 2026-07-28: JSON, or events if something has to be sent before the result."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp_types import ProgressToken
from starlette.types import Send

from gateway.serving.mcp.written_json import event_pieces
from gateway.upstream.transports.messages import write_fields

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]

_logger = logging.getLogger(__name__)


class AnswerStream:
    """Sends the answer to one request. Until the first event, the answer may still become plain JSON with a status.

    It is an `Outbound` of the SDK which, in this revision, carries notifications only.
    """

    def __init__(self, send: Send, progress_token: ProgressToken | None) -> None:
        self._send = send
        self._progress_token = progress_token
        self._sending = anyio.Lock()  # the call, what accompanies it and its upstream may all have something to send
        self._is_events = False
        self._is_over = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: a host of this revision is not sent requests."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification to the host, unless its answer is complete."""
        said = {} if params is None else {"params": params}
        message = write_fields({"jsonrpc": "2.0", "method": method, **said})
        await self._event(b"".join(event_pieces([message])))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the host, if its request asks for it."""
        if self._progress_token is None:
            return
        known = {"total": total, "message": message}
        await self.notify(
            "notifications/progress",
            {
                "progressToken": self._progress_token,
                "progress": progress,
                **{key: value for key, value in known.items() if value is not None},
            },
        )

    async def keep_alive(self) -> None:
        """Send a comment, so that no proxy takes the connection for dead."""
        await self._event(b": ping\r\n\r\n")

    async def finish(self, status: int, message: list[bytes]) -> None:
        """Send the last message, which is given as its JSON in pieces. `status` counts if nothing was sent before."""
        async with self._sending:
            self._is_over = True
            if self._is_events:
                message = event_pieces(message)
            else:
                headers = [_JSON, (b"content-length", str(sum(map(len, message))).encode())]
                await self._send({"type": "http.response.start", "status": status, "headers": headers})
            # Not in one piece, because they may be large, and shared with other answers.
            while message:
                piece = message.pop(0)
                await self._send({"type": "http.response.body", "body": piece, "more_body": bool(message)})

    async def _event(self, event: bytes) -> None:
        async with self._sending:
            if self._is_over:
                _logger.debug("something that came after the answer was dropped")
                return
            if not self._is_events:
                await self._send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
                self._is_events = True
            await self._send({"type": "http.response.body", "body": event, "more_body": True})
