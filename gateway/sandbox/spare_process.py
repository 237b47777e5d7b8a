"""One process that waits for the next script, which then need not wait for Python to start.

It has seen nothing of any script: each process runs one, and ends. There is none before the first script, and none
after a while without scripts.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from gateway.sandbox.process import ScriptProcess

logger = logging.getLogger(__name__)

_IDLE_SECONDS = 120.0
"""How long a process waits for a script before it is ended."""
_QUIET_SECONDS = 0.2
"""How long after a script another process is started: what the script has shown is shaped first."""


class SpareProcess:
    """Hands out processes for scripts; while it is `kept`, one is ready soon after a script has ended."""

    def __init__(self, idle: float = _IDLE_SECONDS) -> None:
        self._idle = idle
        self._process: ScriptProcess | None = None
        self._wanted, self._taken = anyio.Event(), anyio.Event()
        self._waiting = anyio.CancelScope()

    async def take(self) -> ScriptProcess:
        """Return the process that is ready, or start one. Whoever takes it must `end` it.

        Raises:
            OSError: none can be started.
        """
        process, self._process = self._process, None
        if process is not None:
            self._taken.set()
            if process.is_running:
                return process
            await process.end()
        return await ScriptProcess.start()

    def want(self) -> None:
        """Say that a script has ended: there may be another soon."""
        self._wanted.set()
        self._waiting.deadline = anyio.current_time() + self._idle

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """Keep a process ready while this is open; at its end, there is none."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep)
            yield
            tasks.cancel_scope.cancel()

    async def _keep(self) -> None:
        while True:
            await self._wanted.wait()
            await anyio.sleep(_QUIET_SECONDS)
            self._wanted, self._taken = anyio.Event(), anyio.Event()
            try:
                process = await ScriptProcess.start()
            except OSError:
                logger.exception("no process could be started for the next script")
                continue
            await self._offer(process)

    async def _offer(self, process: ScriptProcess) -> None:
        """Offer a process until it is taken, or for as long as it may idle; then end it."""
        self._process = process
        try:
            with anyio.move_on_after(self._idle) as self._waiting:
                await self._taken.wait()
        finally:
            if self._process is process:
                self._process = None
                self._wanted = anyio.Event()
                await process.end()
