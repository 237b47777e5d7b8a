"""A byte stream as the SDK's message streams: a message on each line, as on stdio."""

import collections
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from gateway.core.model.json_shape import is_deep, may_be_deep
from gateway.core.model.json_values import as_object, is_dict
from gateway.serving.mcp.early_stdio import MAX_LINE_BYTES, Arrival, Lines
from gateway.serving.mcp.kept_lists import LISTS, AskedList, is_key
from gateway.serving.mcp.message_reads import MessageReads
from gateway.serving.mcp.written_json import message_pieces
from gateway.system.turns import Turns, few_lines_each

_LONGEST_LINE = 2 * MAX_LINE_BYTES
"""A relay passes on messages of at most `MAX_LINE_BYTES`, and may have to write them with escapes."""
_CHUNK = 256 * 1024
_PARSED_IN_A_THREAD = 256 * 1024
_MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024
_MOST_WAITING = 100
"""Messages that wait for the host to read; up to here, its cancellations are still read."""
_FLUSH_SECONDS = 2.0
_LONGEST_WAIT = 3_600.0

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sender:
    """What the host at the other end was started with: its profile, the model behind it, and its toolsets.

    `keeps_lists`: whether the lists that it is given may be kept for its next start, with a gateway of its own.
    """

    profile: str | None = None
    model: str | None = None
    toolsets: tuple[str, ...] = ()
    keeps_lists: bool = True


class LineReads(MessageReads):
    """The messages that arrive, as the SDK's `ReadStream`. `rest` are bytes that have arrived before.

    A line that is not a message is dropped. One that is too long ends the stream. `settle` is awaited at the end of the
    stream, before it is reported.
    """

    def __init__(self, stream: ByteReceiveStream, rest: bytes, sender: Sender) -> None:
        self._stream = stream
        self._sender = sender
        self._splitter = Lines(_LONGEST_LINE)
        self._lines = collections.deque[bytes | None](self._splitter.feed(rest))
        self._waited, self._asked = 0.0, None
        self._ended = False
        self._turns = Turns()
        self.settle: Callable[[], Awaitable[None]] | None = None
        self.room: Callable[[], Awaitable[None]] | None = None
        """Awaited before more is read: it waits while too many answers are unread."""

    async def __anext__(self) -> SessionMessage | Exception:
        await anyio.lowlevel.checkpoint()
        while True:
            while self._lines:
                line = self._lines.popleft()
                if line is None:
                    _logger.warning("an attached host sent a message of more than %d bytes", _LONGEST_LINE)
                    self._ended = True
                    self._lines.clear()
                elif (message := await self._message(line)) is not None:
                    return message
                await self._turns.give_way()
            if self._ended:
                if self.settle is not None:
                    await self.settle()
                raise StopAsyncIteration
            if self.room is not None:
                await self.room()
            await self._receive()

    async def _receive(self) -> None:
        try:
            for piece in few_lines_each(await self._stream.receive(_CHUNK)):
                self._lines.extend(self._splitter.feed(piece))
                await self._turns.give_way()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            self._ended = True
            self._lines.extend(self._splitter.rest())

    async def _message(self, line: bytes) -> SessionMessage | None:
        try:
            large = len(line) > _PARSED_IN_A_THREAD
            fields = await to_thread.run_sync(_parsed, line) if large else _parsed(line)
            if "relay" in fields and "jsonrpc" not in fields:
                told = as_object(fields["relay"])
                self._waited, self._asked = _seconds(told.get("waited")), _asked(as_object(told.get("list")))
                return None
            checked = jsonrpc_message_adapter.validate_python(fields, by_name=False)
        except (ValueError, RecursionError, ValidationError):
            _logger.debug("a malformed message of an attached host was dropped")
            return None
        known = (self._sender.profile, self._sender.model, self._sender.toolsets)
        asked = self._asked if isinstance(checked, JSONRPCRequest) and checked.method in LISTS else None
        if asked is not None and not self._sender.keeps_lists:
            asked = asked._replace(key=None)
        arrival = Arrival(time.monotonic() - self._waited, time.monotonic, *known, asked)
        self._waited, self._asked = 0.0, None
        return SessionMessage(checked, ServerMessageMetadata(request_context=arrival))

    async def aclose(self) -> None:
        """Do nothing: the stream is closed by its owner."""


class LineWrites(AsyncResource):
    """The messages to send, as the SDK's `WriteStream`. `run` sends them, so that none is cut short by a cancellation.

    A host that does not read makes `send` wait; with too many answers waiting, `room` waits as well.
    """

    def __init__(self, stream: ByteSendStream) -> None:
        self._stream = stream
        self._lines = collections.deque[bytes]()
        self._unwritten = 0
        self._waiting = 0
        self._moved = anyio.Event()
        self._closed = False
        self.is_whole = True
        """Whether no line is cut in half, so that another one may follow."""

    async def send(self, item: SessionMessage, /) -> None:
        self._waiting += 1
        try:
            while self._unwritten > _MAX_UNWRITTEN_BYTES and not self._closed:
                await self._moved.wait()
        finally:
            self._waiting -= 1
        if self._closed:
            raise anyio.ClosedResourceError
        line = b"".join([*message_pieces(item.message), b"\n"])
        self._unwritten += len(line)
        self._lines.append(line)
        self._wake()

    async def room(self) -> None:
        """Wait while many messages wait to be sent: whoever asks without reading is not asked for more."""
        while self._waiting >= _MOST_WAITING and not self._closed:
            await self._moved.wait()

    async def run(self) -> None:
        """Send lines until cancelled, or until the other end is gone."""
        try:
            while True:
                while self._lines:
                    line = self._lines.popleft()
                    self.is_whole = False
                    await self._stream.send(line)
                    self.is_whole = True
                    self._unwritten -= len(line)
                    self._wake()
                await self._moved.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
        finally:  # what is left is never sent
            self._closed = True
            self._wake()

    async def aclose(self) -> None:
        """Wait, for a limited time, until everything is sent."""
        if self._closed:
            return
        with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
            while (self._lines or not self.is_whole) and not self._closed:
                await self._moved.wait()
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse a line. Raises ValueError if it is not an object, or nested too deeply."""
    fields = json.loads(line)
    if not is_dict(fields) or (may_be_deep(line) and is_deep(fields)):
        raise ValueError
    return fields


def _asked(told: Mapping[str, Any]) -> AskedList | None:
    key, given = told.get("key"), told.get("given")
    if not told or not (key is None or is_key(key)) or not (given is None or isinstance(given, str)):
        return None
    return AskedList(key, given)


def _seconds(value: object) -> float:
    return min(max(0.0, value), _LONGEST_WAIT) if isinstance(value, (int, float)) else 0.0
