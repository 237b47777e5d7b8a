"""The pages of logins on a loopback port, for a gateway without HTTP: the browser is on the same machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup, TaskStatus

from gateway.system.background_tasks import background_tasks
from gateway.upstream.authorization.login_desk import LoginDesk

_ADDRESS = "127.0.0.1"


@asynccontextmanager
async def loopback_pages(desk: LoginDesk, port_for: Callable[[str], int | None]) -> AsyncGenerator[None]:
    """Serve the pages of a desk inside the context. A port is opened when it is first needed.

    `port_for` returns the port that an upstream's client is registered with; None stands for any that is free.
    """
    bases: dict[int, str] = {}
    opening = anyio.Lock()

    async with background_tasks() as tasks:

        async def place(upstream: str) -> str:
            port = port_for(upstream) or 0
            async with opening:
                if port not in bases:
                    bases[port] = await _open(tasks, desk, port)
            return bases[port]

        desk.serve_at(place)
        yield


async def _open(tasks: TaskGroup, desk: LoginDesk, port: int) -> str:
    # Imported here, because few gateways on stdio need a web server.
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from gateway.serving.http import Listening, serve
    from gateway.serving.logins.routes import login_routes

    names = Middleware(TrustedHostMiddleware, allowed_hosts=[_ADDRESS, "localhost"])
    app = Starlette(routes=login_routes(desk, asks=False), middleware=[names])

    async def run(*, task_status: TaskStatus[int]) -> None:
        await serve(app, Listening(_ADDRESS, port, "auth.callback_port"), on_bound=task_status.started)

    return f"http://{_ADDRESS}:{await tasks.start(run)}"
