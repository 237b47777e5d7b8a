"""A relay of TCP connections, to one server after another: a plain load balancer, and a cable that can be pulled."""

import asyncio
import contextlib
from collections.abc import Sequence
from enum import StrEnum


class Cable(StrEnum):
    """What becomes of a connection: it is passed on, refused, or taken and never answered."""

    WHOLE = "whole"
    PULLED = "pulled"
    SILENT = "silent"


class Relay:
    """Listens at `port`, and passes each connection on to the next of `servers` (ports) that takes one."""

    def __init__(self, port: int, servers: Sequence[int]) -> None:
        self.port = port
        self.servers = list(servers)
        self._cable = Cable.WHOLE
        self._turn = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "Relay":
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.set(Cable.PULLED)

    async def set(self, cable: Cable) -> None:
        """Let all connections be like that from now on; those that are open are cut off."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in tuple(self._open):
            writer.transport.abort()
        self._cable = cable
        if cable is not Cable.PULLED:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port, backlog=1024)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._cable is Cable.SILENT:
                while await reader.read(65_536):
                    pass
                return
            if (there := await self._next()) is None:
                return
            self._open.add(there[1])
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_copied(reader, there[1]))
                    tasks.create_task(_copied(there[0], writer))
            finally:
                self._open.discard(there[1])
                there[1].close()
        finally:
            self._open.discard(writer)
            writer.close()

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        servers = tuple(self.servers)
        self._turn += 1
        for place in range(len(servers)):
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", servers[(self._turn + place) % len(servers)])
        return None


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, and pass that on. A side that is gone takes the other one with it."""
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
