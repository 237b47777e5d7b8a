"""The pages of logins on a loopback port, for a gateway without HTTP: the browser is on the same machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from gateway.system.background_tasks import background_tasks
from gateway.upstream.authorization.login_desk import LoginDesk


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

    from gateway.serving.http.loopback import serve_on_loopback
    from gateway.serving.logins.routes import login_routes

    app = Starlette(routes=login_routes(desk, asks=False))
    return await serve_on_loopback(tasks, app, port, "auth.callback_port")
