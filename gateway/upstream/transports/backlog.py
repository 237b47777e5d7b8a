"""A bounded queue of messages for a peer, so that a peer that does not read cannot exhaust the memory."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import anyio
from anyio.abc import AsyncResource

from gateway.core.model.json_size import memory_of

ItemT = TypeVar("ItemT", contravariant=True)

MOST_MESSAGES = 1_024
_MESSAGE = 1_000
"""Approximate bytes that a message takes besides its JSON: the message, and the task that waits to send it."""


class Sink(Protocol[ItemT]):
    """The destination of messages: a write stream of the SDK."""

    async def send(self, item: ItemT, /) -> None: ...
    async def aclose(self) -> None: ...


class Backlog(AsyncResource, Generic[ItemT]):
    """A write stream in front of another. If too much waits for the other, `on_over` is called once, with the amount.

    After that, sending raises `anyio.BrokenResourceError`. A message that need not wait is not measured, nor is the
    first that waits. `counts` says whether a message counts, and `json_of` returns its JSON.
    """

    def __init__(
        self,
        sink: Sink[ItemT],
        most_bytes: int,
        on_over: Callable[[str], None],
        *,
        json_of: Callable[[ItemT], Any],
        counts: Callable[[ItemT], bool] = lambda _: True,
        most_messages: int = MOST_MESSAGES,
    ) -> None:
        self._sink = sink
        self._most_bytes = most_bytes
        self._most_messages = most_messages
        self._on_over = on_over
        self._json_of = json_of
        self._counts = counts
        self._messages = 0
        self._bytes = 0
        self._is_over = False

    async def send(self, item: ItemT, /) -> None:
        """Send a message as soon as the peer has read those before it."""
        if not self._counts(item):
            await self._sink.send(item)
            return
        size = 0
        if self._messages:
            size = _MESSAGE + memory_of(self._json_of(item), self._most_bytes)
        if self._is_over or self._messages >= self._most_messages or self._bytes + size > self._most_bytes:
            self._over()
            raise anyio.BrokenResourceError
        self._messages += 1
        self._bytes += size
        try:
            await self._sink.send(item)
        finally:
            self._messages -= 1
            self._bytes -= size

    async def aclose(self) -> None:
        """Close the other stream."""
        await self._sink.aclose()

    def _over(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._on_over(
                f"{self._messages} {'message' if self._messages == 1 else 'messages'} with {self._bytes:,} bytes wait"
            )
