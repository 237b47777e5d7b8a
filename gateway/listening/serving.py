"""Serving an application on a port until it is cancelled, and ending within a few seconds."""

import socket
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import NamedTuple

import anyio
import uvicorn
from starlette.types import ASGIApp

from gateway.errors import ConfigError

GRACE_SECONDS = 3
"""How long requests that are being answered may go on when the gateway stops. Streams of events end at once."""

_KEEP_ALIVE_SECONDS = 75
"""Longer than the pools of common clients hold a connection: a request never meets one that is just being closed."""


class Listening(NamedTuple):
    """Where to listen; port 0 takes a free one. `where` is the key of the configuration that says so."""

    bind: str
    port: int
    where: str


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
    with closing(_listen(listening)) as listener:
        server = _Server(app, dated=dated)
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
                if on_stop is not None:
                    on_stop()
                server.should_exit = True
                last_words.deadline = anyio.current_time() + 2 * GRACE_SECONDS


class _Server(uvicorn.Server):
    """uvicorn, which says when it answers, and leaves signals and logging alone."""

    def __init__(self, app: ASGIApp, *, dated: bool) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                ws="none",
                log_config=None,
                access_log=False,  # paths and queries name sessions, and hold keys
                proxy_headers=False,
                server_header=False,
                date_header=dated,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self.answering = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _listen(listening: Listening) -> socket.socket:
    try:
        found = socket.getaddrinfo(listening.bind, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # `localhost` is both: the older one is what clients try without being asked to.
        family, *_, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        return socket.create_server((str(address[0]), listening.port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {listening.bind} port {listening.port}: {error.strerror or error}",
            where=listening.where,
            remedy="choose another port, or 0 for any that is free",
        ) from error
