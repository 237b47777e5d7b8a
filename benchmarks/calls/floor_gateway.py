"""The floor: what no gateway that reads its messages can be faster than, in Python.

    python -m benchmarks.calls.floor_gateway (stdio | PORT) ERA (URL | COMMAND ARGS...)

An asyncio protocol that parses each message, routes it by its id and serialises it again. It has no checks, no
sessions, no errors and no cancellation, and is nothing that anybody could use.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json, to_json

from benchmarks.calls.driver import Client, HttpClient, StdioClient
from benchmarks.calls.upstream import HttpServer
from benchmarks.calls.wire import Era

try:
    from uvloop import run
except ImportError:
    from asyncio import run


class Router:
    """Messages of hosts to the upstream, under ids of its own, and the answers back."""

    def __init__(self, upstream: Client) -> None:
        self._upstream = upstream
        self._tasks: set[asyncio.Task[None]] = set()

    def route(self, body: bytes, reply: Callable[[bytes | None], None]) -> None:
        """Answer one message; None for a notification."""
        task = asyncio.get_running_loop().create_task(self._routed(from_json(body), reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _routed(self, message: dict[str, Any], reply: Callable[[bytes | None], None]) -> None:
        if "id" not in message:
            reply(None)
            return
        asked, message["id"] = message["id"], self._upstream.number()
        name = message.get("params", {}).get("name")
        answer = from_json(await self._upstream.send(message["method"], name, to_json(message)))
        answer["id"] = asked
        reply(to_json(answer))


class HttpFront(HttpServer):
    """A host's connection."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router

    def respond(self, head: str, body: bytes) -> None:
        """Answer when the upstream has."""
        self._router.route(body, self.write_answer)


class StdioFront(asyncio.Protocol):
    """The host that started this process."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._rest = b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Route every line that is complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._router.route(line, _write_line)

    def connection_lost(self, exc: Exception | None) -> None:
        """The host has left."""
        self.ended.set()


def _write_line(answer: bytes | None) -> None:
    if answer is not None:
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


async def main(front: str, era: str, *target: str) -> None:
    """Serve until killed, or until the input ends."""
    upstream: Client
    if target[0].startswith("http"):
        address = urlsplit(target[0])
        assert address.port is not None
        upstream = HttpClient(Era(era), address.port, address.path)
    else:
        upstream = StdioClient(Era(era), target, os.environ, Path(os.devnull))
        await upstream.start()
    await upstream.open()
    router, loop = Router(upstream), asyncio.get_running_loop()
    if front == "stdio":
        _, protocol = await loop.connect_read_pipe(lambda: StdioFront(router), sys.stdin)
        await protocol.ended.wait()
        await upstream.close()
        return
    server = await loop.create_server(lambda: HttpFront(router), "127.0.0.1", int(front), backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    run(main(*sys.argv[1:]))
