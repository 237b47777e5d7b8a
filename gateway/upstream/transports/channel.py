"""A channel: the interface that every transport provides to the layer above."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData

    from gateway.errors import UpstreamError
    from gateway.upstream.transports.platforms import Work
    from gateway.upstream.transports.printed import Hint


@dataclass
class Ending:
    """The end of a channel and its reason: the first failure that is named counts."""

    failure: Exception | None = None
    event: anyio.Event = field(default_factory=anyio.Event)

    def name(self, failure: Exception) -> None:
        """Record that the channel has ended, or cannot be used any longer, because of `failure`."""
        if self.failure is None:
            self.failure = failure
            self.event.set()

    @property
    def has_come(self) -> bool:
        """Whether the channel has ended."""
        return self.failure is not None


async def _nobody() -> None:
    pass


STREAM_CLOSED: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("the host of this call", default=_nobody)
"""Called when the upstream has closed the stream of a call's response and is to be polled for it. Set while a call
runs."""


def _in_time(upstream: str, doing: str) -> None:
    del upstream, doing


TIMED_OUT: ContextVar[Callable[[str, str], UpstreamError | None]] = ContextVar(
    "the error of this call, if it ran out of time", default=_in_time
)
"""Called with the upstream's name and the method by those who have to know why a call is cancelled. Set while a call
runs."""


def _nothing() -> Hint | None:
    return None


def _idle() -> Work | None:
    return None


@dataclass(frozen=True)
class Channel:
    """Streams of messages to and from an upstream, open inside the context manager that yielded it.

    `failure_in` finds the actual failure behind an error that the transport made up for a request that failed; `hint`
    returns output of the upstream that may explain a silence; `is_http` says whether messages have headers; `pid` is
    the id of the upstream's process, if the gateway started one; `work` returns what the process has done so far (call
    it in a thread), and `printed` the number of bytes that it has written. `serves_http` says whether it printed that
    it serves HTTP, and has sent no message.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    ending: Ending
    failure_in: Callable[[ErrorData], Exception | None]
    hint: Callable[[], Hint | None] = _nothing
    is_http: bool = False
    pid: int | None = None
    work: Callable[[], Work | None] = _idle
    printed: Callable[[], int] = int
    serves_http: Callable[[], bool] = bool
