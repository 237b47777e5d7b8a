"""Serve an application on a loopback port beside everything else that a gateway does, for browsers on this machine."""

from typing import TYPE_CHECKING

from anyio.abc import TaskGroup, TaskStatus

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_ADDRESS = "127.0.0.1"


async def serve_on_loopback(tasks: TaskGroup, app: "ASGIApp", port: int = 0, where: str = "http.port") -> str:
    """Serve until the tasks are cancelled; return the origin once requests are answered. Port 0 picks a free one.

    Requests for other names than this machine's own are refused (DNS rebinding).

    Raises:
        ConfigError: the port cannot be used; `where` is the key that sets it.
    """
    # Imported here, because few gateways on stdio need a web server.
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from gateway.serving.http.http_server import Listening, serve

    named = TrustedHostMiddleware(app, allowed_hosts=[_ADDRESS, "localhost"])

    async def run(*, task_status: TaskStatus[int]) -> None:
        await serve(named, Listening(_ADDRESS, port, where), on_bound=task_status.started)

    return f"http://{_ADDRESS}:{await tasks.start(run)}"
