"""The console of a running gateway, opened when somebody asks for it."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

if TYPE_CHECKING:
    from gateway.serving.console.console import Console
    from gateway.serving.console.ports import Operation, Report, ShownGateway

CONSOLE_PATH = "/console"


class ConsoleOnRequest:
    """The console of a gateway. Nothing is loaded, kept or listened on before it is asked for."""

    def __init__(
        self,
        gateway: "ShownGateway",
        report: "Report",
        tasks: TaskGroup,
        operation: "Callable[[], Operation] | None" = None,
    ) -> None:
        self._gateway = gateway
        self._report = report
        self._operation = operation
        self._tasks = tasks
        self._opening = anyio.Lock()
        self._console: Console | None = None
        self._address: str | None = None

    async def console(self) -> "Console":
        """Return the console; calls are kept from now on. Raises ConfigError if their file cannot be used."""
        async with self._opening:
            return await self._opened()

    async def _opened(self) -> "Console":
        if self._console is None:
            from gateway.serving.console.console import open_console

            operation = None if self._operation is None else self._operation()
            self._console = await open_console(self._gateway, self._report, self._tasks, operation)
        return self._console

    async def address(self) -> str:
        """Return an address of the console on this machine, which lets one browser in, once."""
        async with self._opening:
            console = await self._opened()
            if self._address is None:
                self._address = await self._listen(console)
        return f"{self._address}/enter?key={console.sessions.new_key()}"

    async def _listen(self, console: "Console") -> str:
        from starlette.applications import Starlette

        from gateway.serving.console.routes import console_mounts
        from gateway.serving.http.loopback import serve_on_loopback

        # Browsers send cookies to all ports of a machine (RFC 6265, 8.5), but not to paths that nobody else can know.
        path = f"{CONSOLE_PATH}-{secrets.token_urlsafe(16)}"
        app = Starlette(routes=console_mounts(path, console))
        return await serve_on_loopback(self._tasks, app) + path
