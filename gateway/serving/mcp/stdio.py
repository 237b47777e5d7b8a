"""Serve the host of a stdio connection, taking over from its `EarlyStdio`."""

import asyncio
import logging
import math
import os
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import CLIENT_CAPABILITIES, CLIENT_INFO, INVALID_REQUEST, PROTOCOL_VERSION
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.early_stdio import EarlyStdio
from gateway.serving.mcp.handshake import Handshake, Refusal
from gateway.serving.mcp.kept_lists import KeptLists
from gateway.serving.mcp.message_reads import MessageReads
from gateway.serving.mcp.service import Service
from gateway.serving.mcp.streams import StreamConnection
from gateway.serving.mcp.written_json import message_pieces

LINGER_SECONDS = 3.0
"""Time for open requests to be answered after the host has closed its end."""

_FLUSH_SECONDS = 2.0
_MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024

_logger = logging.getLogger(__name__)


async def serve_stdio(
    opening: EarlyStdio,
    open_service: Callable[[], AbstractAsyncContextManager[Service]],
    *,
    linger: float = LINGER_SECONDS,
    on_serving: Callable[[Downstream], None] | None = None,
) -> None:
    """Serve until the host closes its end, and return at most `linger` seconds (and a flush) later.

    `opening` has been started. Its queued messages are served as soon as `open_service()` has returned the service; if
    the host leaves before that, the start is cancelled. To end the connection from this side, cancel this. Exceptions
    of `open_service` are passed through. `on_serving` is called with the server once it serves the host.
    """
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as whole:
        inbox = _Inbox(opening, loop, whole, linger)
        async with open_service() as service:
            downstream = Downstream(service, opening.identity, KeptLists.of(os.environ))
            if on_serving is not None:
                on_serving(downstream)
            async with downstream.running():
                connection = StreamConnection(
                    downstream, inbox, _Outbox(opening, loop), opening.handshake, opened_elsewhere=True
                )
                inbox.serve_until_settled(connection)
                await connection.serve()


def expected_host(handshake: Handshake) -> Caller | None:
    """Return the host of a stdio connection, as far as it has introduced itself."""
    if handshake.client is not None:
        info, capabilities, revision = handshake.client["clientInfo"], handshake.client["capabilities"], None
    elif handshake.envelope is not None:
        info, capabilities = handshake.envelope.get(CLIENT_INFO), handshake.envelope.get(CLIENT_CAPABILITIES)
        revision = handshake.envelope[PROTOCOL_VERSION]
    else:
        return None
    known = as_object(info)
    able = as_object(capabilities)
    return Caller(
        revision=revision or handshake.revision,
        client_name=known.get("name"),
        client_info=known or None,
        capabilities=able,
    )


class _Inbox(MessageReads):
    """The host's messages as the SDK's `ReadStream`.

    Until the messages are taken, `starting` is cancelled when the host leaves: at once, or after `linger` seconds if it
    has sent a request.
    """

    def __init__(
        self, opening: EarlyStdio, loop: asyncio.AbstractEventLoop, starting: anyio.CancelScope, linger: float
    ) -> None:
        self._opening = opening
        self._starting = starting
        self._linger = linger
        self._arrived = anyio.Event()
        self._connection: StreamConnection | None = None
        opening.listen(lambda: _call_soon(loop, self._wake))

    def serve_until_settled(self, connection: StreamConnection) -> None:
        """Serve the messages from now on, and report the end only when `connection` has answered all before it."""
        self._connection = connection
        self._starting.deadline = math.inf

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()
        if self._opening.ended and self._connection is None:
            self._starting.deadline = anyio.current_time() + (self._linger if self._opening.waiting else 0)

    async def __anext__(self) -> SessionMessage | Exception:
        await anyio.lowlevel.checkpoint()
        while True:
            arrived = self._arrived
            if (taken := self._opening.take()) is not None:
                message, arrival = taken
                try:
                    checked = jsonrpc_message_adapter.validate_python(message, by_name=False)
                    return SessionMessage(checked, ServerMessageMetadata(request_context=arrival))
                except ValidationError:
                    self._turn_down(message)
            elif self._opening.ended and not self._opening.waiting:
                if self._connection is not None:
                    await self._connection.settle(self._linger)
                raise StopAsyncIteration
            else:
                await arrived.wait()

    def _turn_down(self, message: dict[str, object]) -> None:
        if "method" in message and "id" in message:
            self._opening.refuse(message["id"], Refusal(INVALID_REQUEST, "not a JSON-RPC 2.0 request"))
        else:
            _logger.debug("a malformed message of the host was dropped")

    async def aclose(self) -> None:
        """Do nothing: the thread that reads ends with the process."""


class _Outbox(AsyncResource):
    """The messages to the host, as the SDK's `WriteStream`.

    A thread writes what may have to wait, so that a host that does not read blocks nothing. It never keeps the process
    from exiting.
    """

    def __init__(self, opening: EarlyStdio, loop: asyncio.AbstractEventLoop) -> None:
        self._opening = opening
        self._loop = loop
        self._queue = queue.SimpleQueue[bytes | None]()
        self._unwritten = 0
        self._room = anyio.Event()
        self._finished = anyio.Event()
        self._closed = False
        threading.Thread(target=self._write_all, name="mcp-stdout", daemon=True).start()

    async def send(self, item: SessionMessage, /) -> None:
        while self._unwritten > _MAX_UNWRITTEN_BYTES and not self._closed:
            await self._room.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if isinstance(item.message, (JSONRPCResponse, JSONRPCError)) and self._opening.is_own(item.message.id):
            return
        if isinstance(item.message, JSONRPCNotification) and self._opening.is_said(
            item.message.method, item.message.params
        ):
            return
        line = b"".join([*message_pieces(item.message), b"\n"])
        if not self._unwritten and self._opening.write_at_once(line):
            return
        self._unwritten += len(line)
        self._queue.put(line)

    async def aclose(self) -> None:
        """Wait, for a limited time, until everything is written."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
                await self._finished.wait()

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            self._opening.write(line)
            _call_soon(self._loop, self._written, len(line))
        _call_soon(self._loop, self._finished.set)

    def _written(self, size: int) -> None:
        self._unwritten -= size
        self._room.set()
        self._room = anyio.Event()


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        _logger.debug("the event loop is closed: nothing waits for this any more")
