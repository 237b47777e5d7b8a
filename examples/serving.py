"""Serving an example over HTTP: the port is open before it is announced, and 0 finds a free one."""

import argparse
import socket
import sys
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def serve(name: str, path: str, default_port: int, app_for: Callable[[str], ASGIApp]) -> None:
    """Serve until interrupted: read `--host` and `--port`, print `listening on URL` to stderr, run the app.

    `app_for` makes the app for a host, since the names under which it may be called (DNS rebinding) depend on it.
    Exits with 2 and one line on stderr if the address cannot be opened.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.{name}")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=default_port, help="0 finds a free port (default: %(default)s)")
    options = parser.parse_args()
    host: str = options.host
    port: int = options.port
    if not 0 <= port <= 65_535:
        parser.error(f"--port {port} is not a port: give 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        parser.error(f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port")
    shown = f"[{host}]" if ":" in host else host
    print(f"listening on http://{shown}:{listener.getsockname()[1]}{path}", file=sys.stderr, flush=True)
    # Imported late: a mistake in the options should not wait for it.
    import uvicorn

    # Streams stay open as long as their clients; a second is enough for them to end.
    config = uvicorn.Config(
        answering_once(app_for(host)), log_level="warning", lifespan="on", timeout_graceful_shutdown=1
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        sys.exit(130)


def answering_once(app: ASGIApp) -> ASGIApp:
    """The app without second beginnings of a response.

    When the server stops while an SSE client is connected, version 2.3.0 of the SDK answers the finished stream once
    more. Without that beginning, its empty body is just the end of the stream.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_once(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                if begun:
                    return
                begun = True
            await send(message)

        await app(scope, receive, send_once)

    return answer
