"""Serving an application on a port until it is cancelled, and ending within a few seconds."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, cast

import anyio
import uvicorn
from starlette.types import ASGIApp

from gateway.errors import ConfigError
from gateway.serving.http.connections import Connections, limited_protocol
from gateway.serving.http.limits import KEEP_ALIVE_SECONDS, OUT_OF_FILES, Limits
from gateway.serving.http.repeated import BrokenOff, NowAndThen, RepeatedLines

logger = logging.getLogger(__name__)

GRACE_SECONDS = 3
"""How long requests that are being answered may go on when the gateway stops. Streams of events end at once."""
_CLOSING_SECONDS = 3.0
"""How long closing everything may take after that."""

_TAKEN_AT_ONCE = 8
_TICKS_A_SECOND = 10  # of uvicorn's main loop


class Listening(NamedTuple):
    """Where to listen; port 0 takes a free one. `where` is the key of the configuration that says so.

    `limits` are what peers may take.
    """

    bind: str
    port: int
    where: str
    limits: Limits = Limits()


async def serve(
    app: ASGIApp,
    listening: Listening,
    *,
    on_bound: Callable[[int], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    dated: bool = True,
) -> None:
    """Listen and serve until this is cancelled; then stop within a few seconds, open streams or not.

    `on_bound` gets the port once requests are answered; `on_stop` is called when it is time to end streams.
    `dated`: responses get a Date header; not where they have one already. Signals are the caller's business.

    Raises:
        ConfigError: the address cannot be had.
    """
    connections = Connections(listening.limits)
    stopping = anyio.Event()
    with closing(_listen(listening)) as listener, _quiet_about_peers(connections, stopping.is_set):
        listener.on_no_files = connections.out_of_files
        server = _Server(app, connections, listener, dated=dated)
        async with anyio.create_task_group() as tasks:
            last_words = anyio.CancelScope(shield=True)

            async def run() -> None:
                with last_words:
                    await server.serve(sockets=[listener])
                tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            try:
                await server.answering.wait()
                if on_bound is not None:
                    on_bound(listener.getsockname()[1])
                await anyio.sleep_forever()
            finally:
                stopping.set()
                if on_stop is not None:
                    on_stop()
                server.should_exit = True
                last_words.deadline = anyio.current_time() + GRACE_SECONDS + _CLOSING_SECONDS


class _Server(uvicorn.Server):
    """uvicorn, which says when it answers, limits its connections, and leaves signals and logging alone."""

    def __init__(self, app: ASGIApp, connections: Connections, listener: "TcpListener", *, dated: bool) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", limited_protocol(connections)),
                lifespan="on",
                ws="none",
                log_config=None,
                access_log=False,  # paths and queries name sessions, and hold keys
                proxy_headers=False,
                server_header=False,
                date_header=dated,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self.answering = anyio.Event()
        self._connections = connections
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_SECOND == 0:
            self._connections.sweep()
            self._listener.try_for_a_file()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class TcpListener(socket.socket):
    """A listening socket whose connections do not wait to fill packets, and that takes a few of them at a time.

    asyncio sets TCP_NODELAY only where the protocol is said to be TCP, which `socket.create_server` does not: an answer
    in two pieces then waits for the peer's delayed acknowledgement, 40 ms. And it takes as many connections at once as
    the backlog is long, before their protocols see any of them; when there are no files left, Python 3.11 tries as
    often, with a traceback each time.
    """

    _taken = 0
    on_no_files: Callable[[str], int] | None = None
    """Called with the reason when there are no files for a connection; gives how many connections it has closed."""

    @classmethod
    def made_of(cls, listener: socket.socket) -> "TcpListener":
        """The same socket, which the one that is given loses."""
        return cls(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """As every socket's; but now and then it says that nobody is there, until the loop asks again."""
        if self._taken >= _TAKEN_AT_ONCE:
            self._taken = 0
            raise BlockingIOError
        try:
            taken = super().accept()
        except OSError as error:
            self._taken = _TAKEN_AT_ONCE if error.errno in OUT_OF_FILES else 0
            if self._made_room(error):
                raise BlockingIOError from error
            raise
        self._taken += 1
        return taken

    def try_for_a_file(self) -> None:
        """Have room made when there are no files: uvloop, which does not use `accept`, says nothing of it."""
        try:
            os.close(os.dup(self.fileno()))
        except OSError as error:
            self._made_room(error)

    def _made_room(self, error: OSError) -> bool:
        if error.errno not in OUT_OF_FILES or self.on_no_files is None:
            return False
        return self.on_no_files(error.strerror or str(error)) > 0


@contextmanager
def _quiet_about_peers(connections: Connections, is_stopping: Callable[[], bool]) -> Generator[None]:
    """While this is open, what peers cause costs a line now and then: rubbish, and connections without a file left.

    Requests that are broken off when the gateway stops are not logged as mistakes.
    """
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    of_uvicorn = logging.getLogger("uvicorn.error")
    filters = (NowAndThen(RepeatedLines(logger)), BrokenOff(is_stopping))

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in OUT_OF_FILES and "socket" in context:
            connections.out_of_files(error.strerror or str(error))
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    for each in filters:
        of_uvicorn.addFilter(each)
    try:
        yield
    finally:
        for each in filters:
            of_uvicorn.removeFilter(each)
        if loop.get_exception_handler() is handle:
            loop.set_exception_handler(before)


def _listen(listening: Listening) -> TcpListener:
    try:
        found = socket.getaddrinfo(listening.bind, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # `localhost` is both: the older one is what clients try without being asked to.
        family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        return TcpListener.made_of(socket.create_server((str(address[0]), listening.port), family=family))
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {listening.bind} port {listening.port}: {error.strerror or error}",
            where=listening.where,
            remedy="choose another port, or 0 for any that is free",
        ) from error
