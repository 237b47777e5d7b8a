"""A channel: what every transport hands to the layer above, whatever is underneath."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData


@dataclass
class Ending:
    """The end of a channel, and why: the first failure that is named stays."""

    failure: Exception | None = None
    event: anyio.Event = field(default_factory=anyio.Event)

    def name(self, failure: Exception) -> None:
        """The channel has ended, or can be used no more, because of `failure`."""
        if self.failure is None:
            self.failure = failure
            self.event.set()

    @property
    def has_come(self) -> bool:
        """Whether the channel has ended."""
        return self.failure is not None


def _nothing() -> str | None:
    return None


@dataclass(frozen=True)
class Channel:
    """Streams of messages to and from an upstream, open inside the context manager that yielded it.

    `failure_in` finds, in an error that the transport made up for a request it could not carry, what really happened;
    `hint` says what the upstream printed that may explain a silence; `is_http` whether messages carry headers;
    `pid` is that of the upstream's process, if the gateway started one.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    ending: Ending
    failure_in: Callable[[ErrorData], Exception | None]
    hint: Callable[[], str | None] = _nothing
    is_http: bool = False
    pid: int | None = None
