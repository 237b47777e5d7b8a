"""Requests that wait for their answers, and how far the streams with these were read."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.shared._otel import inject_trace_context
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import RequestId

from gateway.upstream.transports.messages import write_fields
from gateway.upstream.transports.streamable.answers import Outcome
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.events import Event
from gateway.upstream.transports.streamable.response import Response

_DELAY = 1.0
"""Seconds before a stream is opened again, unless the upstream says otherwise (`retry`)."""


@dataclass(eq=False)
class Call:
    """A request that waits for its answer."""

    key: RequestId
    on_progress: ProgressFnT | None
    stays: bool
    """Whether what is left of a cancelled request stays open until the upstream knows that it was cancelled."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    outcome: Outcome | None = None
    is_sent: bool = False
    is_abandoned: bool = False
    left: Callable[[], None] | None = None

    def sent(self) -> None:
        """The upstream has the request, and may be working on it."""
        self.is_sent = True

    @property
    def is_to_be_cancelled(self) -> bool:
        """Whether the upstream has to be told that nobody waits for its answer any more."""
        return self.stays and self.is_abandoned and self.outcome is None and (self.is_sent or self.left is not None)

    def settle(self, outcome: Outcome) -> None:
        """Answer it from elsewhere than its own response."""
        if self.outcome is None:
            self.outcome = outcome
            self.scope.cancel()

    def leave(self, close: Callable[[], None]) -> None:
        """Close what is left of it, now or later."""
        if self.stays:
            self.left = close
        else:
            close()

    def leave_connection(self, connection: Connection) -> None:
        """The same for a connection without a response."""
        self.leave(connection.abort)


@dataclass
class StreamPosition:
    """How far an event stream was read, and when it may be opened again."""

    last_id: bytes = b""
    delay: float = _DELAY

    def note(self, event: Event) -> None:
        """Note an event."""
        if event.last_id.isascii() and event.last_id.decode("ascii").isprintable():  # it will be sent as a header
            self.last_id = event.last_id or self.last_id
        if event.retry is not None:
            self.delay = event.retry / 1_000


@contextmanager
def open_response(response: Response, call: Call) -> Generator[None]:
    """Close a response unless it is read to its end."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        call.leave(response.close)
        raise
    except BaseException:
        response.close()
        raise


def write_request(request_id: RequestId, method: str, params: Mapping[str, Any] | None, call: Call) -> bytes:
    """Write a request. Its id is also the token of its progress."""
    sent = dict(params) if params is not None else {}
    meta = dict(sent.get("_meta") or {})
    if call.on_progress is not None:
        meta["progressToken"] = request_id
    inject_trace_context(meta)
    if meta:
        sent["_meta"] = meta
    else:
        sent.pop("_meta", None)
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return write_fields({**message, "params": sent} if sent else message)
