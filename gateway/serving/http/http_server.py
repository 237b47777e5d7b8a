"""Serve an application on a port until cancelled, and stop within a few seconds."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from gateway.errors import ConfigError, PortInUse
from gateway.serving.http.connections import Connections, limited_protocol
from gateway.serving.http.limits import KEEP_ALIVE_SECONDS, OUT_OF_FILES, Limits
from gateway.serving.http.repeated import BrokenOff, NowAndThen, RepeatedLines
from gateway.serving.http.tls_files import TlsFiles

logger = logging.getLogger(__name__)

GRACE_SECONDS = 3
"""Time for requests in progress to finish when the gateway stops. Event streams end at once."""
_CLOSING_SECONDS = 3.0
"""Time limit for closing everything after that."""

_SPEAKING_SECONDS = 2.0
"""Time to send a request for those that have connected just before the door is closed."""

_LEAVING_SECONDS = 5.0
"""Time for all of them together, as each may begin its request when another has sent its own."""

_LOOK_SECONDS = 0.02
_MOST_WAITING = 4_096
"""More connections than a system lets wait."""

_TAKEN_AT_ONCE = 8
_TICKS_A_SECOND = 10  # of uvicorn's main loop
_CERTIFICATE_SECONDS = 30
"""Seconds after which the certificate's files are looked at again."""


class Listening(NamedTuple):
    """The address to listen on; port 0 picks a free one. `where` is the configuration key that sets it.

    `limits` apply to the peers. `tls` has the certificate, if connections are encrypted. `listener` is the open port,
    if somebody has opened it. Requests are also taken, without TLS, at the Unix socket `private`. `is_shared`: other
    processes take connections from the same port, and may go on with that.
    """

    bind: str
    port: int
    where: str
    limits: Limits = Limits()
    tls: TlsFiles | None = None
    listener: "TcpListener | None" = None
    private: Path | None = None
    is_shared: bool = False


async def serve(
    app: ASGIApp,
    listening: Listening,
    *,
    on_bound: Callable[[int], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    until: "Callable[[CloseDoor], Awaitable[None]] | None" = None,
    dated: bool = True,
) -> None:
    """Listen and serve until cancelled, or `until` returns; then stop within a few seconds, even with open streams.

    `until` is given what closes the door before: nobody can connect any more, but all that have connected are served.
    `on_bound` is called with the port once requests are answered, `on_stop` when it is time to end streams. `dated`:
    add a Date header to responses; false if they already have one. Signals are left to the caller.

    Raises:
        ConfigError: the address cannot be bound.
    """
    tls = None if listening.tls is None else listening.tls.context
    connections = Connections(listening.limits, tls=tls)
    stopping = anyio.Event()
    with closing(listening.listener or listen(listening)) as listener, _quiet_about_peers(connections, stopping.is_set):
        listener.on_no_files = connections.out_of_files
        server = _Server(app, connections, listener, listening.tls, dated=dated, is_shared=listening.is_shared)
        beside = None if listening.private is None else _private_server(app, listening, listening.private, dated=dated)
        async with anyio.create_task_group() as tasks:
            last_words, words_beside = anyio.CancelScope(shield=True), anyio.CancelScope(shield=True)

            async def run() -> None:
                with last_words:
                    await server.serve(sockets=[listener])
                tasks.cancel_scope.cancel()

            async def run_beside(beside: _Server) -> None:
                with words_beside:
                    await beside.serve()

            tasks.start_soon(run)
            doors = [server, *([] if beside is None else [beside])]
            try:
                await server.answering.wait()
                if beside is not None:
                    tasks.start_soon(run_beside, beside)
                    await beside.answering.wait()
                if on_bound is not None:
                    on_bound(listener.getsockname()[1])
                await (anyio.sleep_forever() if until is None else until(lambda: _close_doors(doors)))
            finally:
                stopping.set()
                for door in doors:
                    door.close_when_answered()
                if on_stop is not None:
                    on_stop()
                connections.end_handshakes()
                server.should_exit = True
                if beside is not None:
                    beside.should_exit = True
                last_words.deadline = anyio.current_time() + GRACE_SECONDS + _CLOSING_SECONDS
                words_beside.deadline = last_words.deadline


CloseDoor = Callable[[], Awaitable[None]]


class _Server(Server):
    """A uvicorn server that reports when it is ready, limits connections, and leaves signals and logging alone."""

    def __init__(
        self,
        app: ASGIApp,
        connections: Connections,
        listener: "TcpListener | Path",
        tls: TlsFiles | None,
        *,
        dated: bool,
        is_shared: bool = False,
    ) -> None:
        is_private = isinstance(listener, Path)
        super().__init__(
            Config(
                app,
                uds=str(listener) if is_private else None,
                http=cast("type[asyncio.Protocol]", limited_protocol(connections)),
                lifespan="off" if is_private else "on",
                ws="none",
                log_config=None,
                access_log=False,  # paths and queries contain session ids and keys
                proxy_headers=False,
                server_header=False,
                date_header=dated,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self.config.load()
        self.answering = anyio.Event()
        self._tls = tls
        self._connections = connections
        self._listener = None if isinstance(listener, Path) else listener
        self._is_shared = is_shared
        """Whether other processes take connections from the same listening socket."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_SECOND == 0:
            self._connections.sweep()
            if self._listener is not None:
                self._listener.try_for_a_file()
        if self._tls is not None and counter % (_TICKS_A_SECOND * _CERTIFICATE_SECONDS) == 0:
            self._tls.refresh()
        return await super().on_tick(counter)

    async def close_door(self) -> None:
        """Listen no more, wait for a moment for what those ask who have just connected, and close idle connections.

        Whom the system has let connect must not find the connection closed: that host cannot know what has become of
        its request. So all that wait are taken, with nothing between the last one and the end of listening. Call it
        again for connections on which an answer had begun.
        """
        loop, connections = asyncio.get_running_loop(), self._connections
        connections.are_ending = True
        for taken in await self._last_waiting():
            with suppress(OSError):  # it has left meanwhile
                await loop.connect_accepted_socket(self._new_protocol, taken)
        with anyio.move_on_after(_LEAVING_SECONDS) as leaving:
            while connections.may_ask(_SPEAKING_SECONDS) or not connections.close_idle():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
        if leaving.cancelled_caught:
            connections.close_idle()

    def close_when_answered(self) -> None:
        """Keep no connection after the answer that is being written on it."""
        self._connections.close_when_answered()

    async def _last_waiting(self) -> list[socket.socket]:
        """Stop listening, and return the connections that nobody has taken yet."""
        listening = [one for server in self.servers for one in server.sockets]
        spares = [] if self._is_shared else [_same_socket(one) for one in listening]
        for server in self.servers:
            server.close()
        await asyncio.sleep(0)  # uvloop takes connections until then
        if self._listener is not None:
            self._listener.close()
        taken: list[socket.socket] = []
        for spare in spares:
            with spare:
                spare.setblocking(False)
                taken += _accepted(spare)
        for one in taken:
            one.setblocking(False)
        return taken

    def _new_protocol(self) -> asyncio.Protocol:
        make = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _accepted(listener: socket.socket) -> list[socket.socket]:
    """Return the connections that wait at a listening socket; one that has been reset meanwhile costs only itself."""
    taken: list[socket.socket] = []
    for _ in range(_MOST_WAITING):
        try:
            taken.append(listener.accept()[0])
        except ConnectionError:
            continue
        except OSError:  # there is none, or no file descriptor for it
            break
    return taken


def _same_socket(of: Any) -> socket.socket:
    """Return another descriptor of a socket, which stays open when the first is closed."""
    return socket.socket(of.family, of.type, of.proto, fileno=os.dup(of.fileno()))


async def _close_doors(servers: Sequence[_Server]) -> None:
    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(server.close_door)


def _private_server(app: ASGIApp, listening: Listening, private: Path, *, dated: bool) -> _Server:
    """Return the server of the Unix socket. Its folder keeps others away, so it has no TLS."""
    return _Server(app, Connections(listening.limits), private, None, dated=dated)


class TcpListener(socket.socket):
    """A listening socket that sets TCP_NODELAY on its connections, and accepts only a few of them at a time.

    asyncio sets TCP_NODELAY only if the socket's protocol is given as TCP, which `socket.create_server` does not do: an
    answer in two pieces then waits for the peer's delayed acknowledgement, 40 ms. asyncio also accepts as many
    connections at once as the backlog is long, before their protocols see any of them; without free file descriptors,
    Python 3.11 tries just as often, with a traceback each time.
    """

    _taken = 0
    on_no_files: Callable[[str], int] | None = None
    """Called with the reason when a connection gets no file descriptor; returns how many connections it has closed."""

    @classmethod
    def made_of(cls, listener: socket.socket) -> "TcpListener":
        """Take over the given socket, which is detached."""
        return cls(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, but now and then report that none is waiting, until the loop asks again."""
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
        """Make room if no file descriptors are free: uvloop, which does not use `accept`, does not report it."""
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
    """Context manager that limits log lines which peers can cause, by garbage or by connections without free files.

    Requests that are cancelled when the gateway stops are not logged as errors.
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


def _why(error: OSError) -> str:
    """Return the system's words alone: asyncio and `socket` put the address behind them, as Python writes it."""
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)


def listen(listening: Listening) -> TcpListener:
    """Open the port.

    Raises:
        ConfigError: it cannot be opened; PortInUse, if another program has it.
    """
    try:
        found = socket.getaddrinfo(listening.bind, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # `localhost` is both; IPv4 is what clients try by default.
        family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        return TcpListener.made_of(socket.create_server((str(address[0]), listening.port), family=family))
    except OSError as error:
        words = f"cannot listen on {listening.bind} port {listening.port}: {_why(error)}"
        remedy = "choose another port, or 0 for any that is free"
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(words, port=listening.port, where=listening.where, remedy=remedy) from error
        raise ConfigError(words, where=listening.where, remedy=remedy) from error
