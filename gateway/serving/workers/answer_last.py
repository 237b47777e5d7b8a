"""Answer those who have connected to the workers' port when none of these takes connections any more."""

from starlette.types import Receive, Scope, Send

from gateway.config.http_settings import HttpSettings
from gateway.serving.http import Listening, TcpListener, serve
from gateway.serving.http.http_server import CloseDoor
from gateway.serving.mcp.security import limits_of, refused_response, tls_files

_RETRY_SECONDS = "2"


async def answer_last(settings: HttpSettings, listener: TcpListener) -> None:
    """Close the port: whoever waits there is told to come back, and is not broken off."""
    where = settings.bind, settings.port, "http.port"
    await serve(_refuse, Listening(*where, limits_of(settings), tls_files(settings), listener), until=_at_once)


async def _at_once(close_door: CloseDoor) -> None:
    await close_door()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        words = "the gateway is being stopped: try again in a moment"
        return await refused_response(503, words, {"Retry-After": _RETRY_SECONDS})(scope, receive, send)
    while (event := (await receive())["type"].removeprefix("lifespan.")) in ("startup", "shutdown"):
        await send({"type": f"lifespan.{event}.complete"})
        if event == "shutdown":
            return None
    return None
