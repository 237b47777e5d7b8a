"""The SDK's dispatcher with limits on the requests and notifications of an upstream.

A request from the upstream is kept until its response has been read: an upstream that sends requests and never reads
would fill the memory. A notification is kept until the host in front has read it.
"""

import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from gateway.core.fact_words import size_words
from gateway.core.model.json_size import MANY_VALUES, memory_of, size_of
from gateway.core.model.json_values import is_object
from gateway.upstream.transports.backlog import Backlog
from gateway.upstream.transports.causes import TooMuchWaiting
from gateway.upstream.transports.channel import Channel

logger = logging.getLogger(__name__)

MOST_REQUESTS = 256
MOST_NOTIFICATIONS = 4_096
_EACH = 4_000
"""Approximate bytes that a message takes besides its params: its task, and what the SDK keeps of it."""

_NEVER_DROPPED = ("/list_changed", "/updated", "/cancelled")
"""Suffixes of the methods of notifications that the gateway handles at once, whatever a host does."""


class BoundedDispatcher(JSONRPCDispatcher[TransportContext]):
    """Ends the channel if more than `MOST_REQUESTS` requests of the upstream, or `most_bytes`, are unanswered.

    It also does so if the upstream does not read what it is sent. Notifications that nobody reads are dropped.
    """

    def __init__(self, channel: Channel, most_bytes: int) -> None:
        unread = Backlog[SessionMessage](
            channel.write,
            most_bytes,
            lambda much: self._end(TooMuchWaiting(f"does not read what it is sent: {much}")),
            json_of=json_in,
            counts=lambda item: not isinstance(item.message, JSONRPCRequest),  # calls have limits of their own
        )
        super().__init__(channel.read, unread)
        self.channel = channel
        self._most_bytes = most_bytes
        self._requests = 0
        self._request_bytes = 0
        self._notifications = 0
        self._notification_bytes = 0

    def _spawn(self, fn: Callable[..., Awaitable[Any]], *args: object, sender_ctx: Context | None) -> None:
        # Every incoming request and notification passes through here.
        is_request = bool(args) and isinstance(args[0], JSONRPCRequest)
        size = _EACH + self._memory_of(_params_in(args))
        # A single one may have the maximum size of a message, which takes more in memory than on the wire.
        too_large = self._requests and self._request_bytes + size > self._most_bytes
        if is_request and (self._requests >= MOST_REQUESTS or too_large):
            words = f"{self._requests} of its requests, with {size_words(self._request_bytes)}, are unanswered"
            self._end(TooMuchWaiting(f"sends too many requests: {words}"))
            return
        if not is_request and self._is_too_much(args, size):
            logger.debug("a notification of an upstream is dropped: they arrive faster than they are read")
            return
        self._count(is_request, 1, size)

        async def counted() -> None:
            try:
                await fn(*args)
            finally:
                self._count(is_request, -1, -size)

        super()._spawn(counted, sender_ctx=sender_ctx)

    def _memory_of(self, params: Any) -> int:
        """Return the approximate bytes in memory. What takes long to count is taken for the maximum."""
        is_counted = size_of(params, most_values=MANY_VALUES).is_whole
        return memory_of(params, self._most_bytes) if is_counted else self._most_bytes

    def _end(self, failure: Exception) -> None:
        self.channel.ending.name(failure)
        if self._tg is not None:
            self._tg.cancel_scope.cancel()  # nothing more is read, and nobody waits for a response

    def _is_too_much(self, args: tuple[object, ...], size: int) -> bool:
        if any(isinstance(one, str) and one.endswith(_NEVER_DROPPED) for one in args):
            return False
        too_large = self._notifications and self._notification_bytes + size > self._most_bytes
        return self._notifications >= MOST_NOTIFICATIONS or bool(too_large)

    def _count(self, is_request: bool, more: int, size: int) -> None:
        if is_request:
            self._requests += more
            self._request_bytes += size
        else:
            self._notifications += more
            self._notification_bytes += size


def _params_in(args: tuple[object, ...]) -> Any:
    for one in args:
        if isinstance(one, JSONRPCRequest):
            return one.params
        if is_object(one):
            return one
    return None


def json_in(item: SessionMessage) -> Any:
    """Return the part of a message that may be large."""
    message = item.message
    if isinstance(message, JSONRPCError):
        return message.error.data
    return message.result if isinstance(message, JSONRPCResponse) else message.params
