"""Servers on the loopback that answer as they are told, and a resolver that says what it is told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest


class Site:
    """A server whose every connection is given to `answer`; remembers the requests that were made."""

    def __init__(self, answer: Callable, tls=None) -> None:
        self._answer = answer
        self._tls = tls
        self.requests: list[bytes] = []
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Site"]:
        tasks: set[asyncio.Task[Any] | None] = set()

        async def serve(reader, writer):
            tasks.add(asyncio.current_task())
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                await self._answer(self, writer)
                await writer.drain()
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*filter(None, tasks), return_exceptions=True)
            await server.wait_closed()

    def paths(self) -> list[str]:
        return [request.split(b" ", 2)[1].decode() for request in self.requests]


def reply(body: bytes = b"", *headers: str, status: str = "200 OK", sized: bool = True):
    """An answer that is the same for every request."""
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if sized else []), "Connection: close"]
    whole = "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    async def answer(_: Site, writer) -> None:
        writer.write(whole)

    return answer


@pytest.fixture
def site():
    """`async with site(answer) as running`: see `Site`."""
    return lambda answer, tls=None: Site(answer, tls).running()


@pytest.fixture(name="reply")
def reply_fixture():
    return reply


class Names:
    """A resolver: each name gives its lists of addresses one after another, the last again and again."""

    def __init__(self, **names: list[list[str]]) -> None:
        self._names = {name.replace("_", "."): lists for name, lists in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        lists = self._names.get(host)
        if lists is None:
            raise OSError("no such name")
        return lists.pop(0) if len(lists) > 1 else lists[0]


@pytest.fixture
def names():
    return Names
