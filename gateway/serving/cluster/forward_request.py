"""Pass an HTTP request on to another replica as it is, and its response back, both while they arrive."""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import cast

import anyio
import httpx2
from starlette.types import Message, Receive, Scope, Send

from gateway.core.model.json_values import as_object
from gateway.serving.cluster.hop_mark import HEADER, HopMarks, asked_path
from gateway.serving.cluster.replicas import Replica
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.system.tls import HOOKS, ssl_context

logger = logging.getLogger(__name__)

_CONNECT_SECONDS = 2.0
_FETCH_SECONDS = 3.0
UNLIMITED = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
"""None is kept open: one that a replica has left behind would be noticed too late to send the request elsewhere."""
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
WITHOUT_BODY = frozenset({"GET", "DELETE"})
_SMALL = 64 * 1024
"""Maximum bytes of a body that is kept, to say which request has failed."""
_OWN = frozenset({HEADER.encode()})
_OF_RESPONSE = frozenset({b"date"})  # the server here adds its own


class Unreachable(Exception):
    """The request has not reached the replica. `is_gone`: nothing listens at its address, so it has ended."""

    def __init__(self, *, is_gone: bool) -> None:
        super().__init__("the replica cannot be reached")
        self.is_gone = is_gone


class BrokenOff(Exception):
    """The replica has gone while it had the request.

    `begun`: the host has got a part of the response, of a stream of events or not. `request` is the id of the message.
    """

    def __init__(self, request: str | int | None = None, *, begun: bool = False, is_stream: bool = False) -> None:
        super().__init__("the replica has gone while it had the request")
        self.request = request
        self.begun = begun
        self.is_stream = is_stream


class Forwarder:
    """Passes requests on, each over a connection of its own."""

    def __init__(self, client: httpx2.AsyncClient, marks: HopMarks) -> None:
        self.on_passed_on: Callable[[], object] = lambda: None
        """Called for each request that another replica has begun to answer."""
        self.passing = RunningRequests()
        """The requests that are being passed on, without the streams that hosts listen to."""
        self._client = client
        self._marks = marks

    async def forward(self, replica: Replica, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request with the response of the replica; returns early if the host disconnects.

        Raises:
            Unreachable: no connection can be opened.
            BrokenOff: it is gone before the whole response has come.
        """
        body = _Body(receive)
        if scope["method"] in WITHOUT_BODY:
            body.skip()
        request = httpx2.Request(
            scope["method"],
            replica.address + _target(scope),
            headers=[*_passed(scope), (HEADER.encode(), self._marks.make(replica.id, scope).encode())],
            content=None if scope["method"] in WITHOUT_BODY else body.pieces(),
        )
        failed: Exception | None = None
        with nullcontext() if scope["method"] == "GET" else self.passing.one():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(body.disconnected, tasks.cancel_scope)
                try:
                    await self._answer(request, body, send)
                except (Unreachable, BrokenOff) as error:
                    failed = error
                tasks.cancel_scope.cancel()
        if failed is not None:
            raise failed

    async def fetch(self, replica: Replica, scope: Scope) -> str | None:
        """Return the text that another replica answers the same GET with; None if it does not, or not with 200."""
        headers = [*_passed(scope), (HEADER.encode(), self._marks.make(replica.id, scope).encode())]
        try:
            with anyio.fail_after(_FETCH_SECONDS):
                request = httpx2.Request("GET", replica.address + _target(scope), headers=headers)
                response = await self._sent(request, stream=False)
        except (httpx2.TransportError, TimeoutError) as error:
            logger.debug("replica %s does not answer: %s", replica.id, error)
            return None
        return response.text if response.status_code == 200 else None

    async def _sent(self, request: httpx2.Request, *, stream: bool = True) -> httpx2.Response:
        try:
            return await self._client.send(request, stream=stream)
        except AttributeError as error:
            if error.name != "getpeername":
                raise
            # anyio asks the socket of a connection that was closed as soon as it was open, before anything was sent.
            raise httpx2.ConnectError("it was closed at once", request=request) from error

    async def _answer(self, request: httpx2.Request, body: "_Body", send: Send) -> None:
        try:
            response = await self._sent(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            logger.debug("no connection to a replica at %s: %s", request.url, error)
            raise Unreachable(is_gone=_is_refused(error)) from error
        except httpx2.TransportError as error:
            raise BrokenOff(body.request_id()) from error
        self.on_passed_on()
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            headers = [
                (name.lower(), value)
                for name, value in response.headers.raw
                if name.lower() not in _HOP_BY_HOP | _OF_RESPONSE
            ]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            try:
                async for piece in response.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except httpx2.TransportError as error:
                raise BrokenOff(body.request_id(), begun=True, is_stream=is_stream) from error
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()


class _Body:
    """The body of a request, read once by the client that sends it on; afterwards, the host may disconnect."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = anyio.Event()
        self._small: bytes | None = b""

    async def pieces(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                raise httpx2.WriteError("the host has disconnected")
            more = message.get("more_body", False)
            if piece := message.get("body"):
                if self._small is not None:
                    self._small = self._small + piece if len(self._small) + len(piece) <= _SMALL else None
                yield piece
        self._read.set()

    def skip(self) -> None:
        """There is none."""
        self._read.set()

    def request_id(self) -> str | int | None:
        """Return the id of the message in the body; None if it is too large to be kept."""
        try:
            found = as_object(json.loads(self._small or b"null")).get("id")
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, str | int) else None

    async def disconnected(self, scope: anyio.CancelScope) -> None:
        """Wait until the host disconnects after its body, and cancel."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        scope.cancel()


def _is_refused(error: BaseException | None) -> bool:
    """Whether a connection failed because nothing listens: not for want of time, a route, a name, or a certificate."""
    if isinstance(error, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return bool(parts) and all(_is_refused(part) for part in parts)
    if error is None or isinstance(error, ConnectionRefusedError | FileNotFoundError):  # the latter of Unix sockets
        return error is not None
    return _is_refused(error.__cause__ or error.__context__)


def without_body(receive: Receive) -> Receive:
    """Return what a request without a body receives, also if somebody has received from it before."""
    is_first = True

    async def receive_again() -> Message:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return receive_again


def _passed(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in scope["headers"] if name not in _HOP_BY_HOP | _OWN]


def _target(scope: Scope) -> str:
    """Return path and query as the host sent them: a token in the path is no longer in the scope's."""
    query = scope["query_string"].decode("latin-1")
    path = asked_path(scope)
    return f"{path}?{query}" if query else path


@asynccontextmanager
async def forwarding_client(transport: httpx2.AsyncBaseTransport | None = None) -> AsyncGenerator[httpx2.AsyncClient]:
    """Provide the client of a `Forwarder`. Answers may take as long as they like.

    `transport` reaches replicas that are not at addresses of a network.
    """
    async with httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
        limits=UNLIMITED,
        transport=transport,
        verify=ssl_context(),
        trust_env=False,
        event_hooks=HOOKS,
    ) as client:
        yield client
