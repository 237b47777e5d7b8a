"""A lean client for both transports: it sends bytes, collects bytes, and looks at little of them."""

import asyncio
import json
import re
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from benchmarks.calls.wire import ARGUMENTS, INITIALIZED, Era, http_head, initialize, request

ID: Final = re.compile(rb'"id":\s*(\d+)')
END_OF_CHUNKS: Final = b"\r\n0\r\n\r\n"
PATIENCE: Final = 120.0
"""Seconds that an answer may take."""


class NotAnswered(Exception):
    """The other side is gone, or says something else than a result."""


class Refused(NotAnswered):
    """The gateway can take no more for now: 429 or 503, with the seconds after which to try again."""

    def __init__(self, words: str, retry_after: float) -> None:
        super().__init__(words)
        self.retry_after = retry_after


class Address(NamedTuple):
    """Where a gateway is: an address and a port, with TLS or not, and the headers that it wants."""

    name: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    headers: Sequence[str] = ()


class Client(ABC):
    """A host in front of one gateway. `session` is what handshakes left."""

    def __init__(self, era: Era) -> None:
        self.era: Final = era
        self.names: Sequence[str] = ()
        """The tools, as the gateway calls them."""
        self._number = 0

    async def open(self) -> None:
        """Shake hands, where this era does; learn what the tools are called here."""
        if self.era is Era.HANDSHAKE:
            await self.shake_hands()
        self.names = [tool["name"] for tool in result_of(await self.list_tools())["tools"]]

    async def shake_hands(self) -> None:
        """Open a session."""
        result_of(await self.send("initialize", None, initialize(self.number())))
        await self._tell(INITIALIZED)

    async def call(self, tool: str, arguments: Mapping[str, Any] = ARGUMENTS) -> bytes:
        """One tools/call; the answer as it came."""
        name = self.name_of(tool)
        body = request(self.era, self.number(), "tools/call", {"name": name, "arguments": arguments})
        return await self.send("tools/call", name, body)

    async def list_tools(self) -> bytes:
        """One tools/list; the answer as it came."""
        return await self.send("tools/list", None, request(self.era, self.number(), "tools/list"))

    def name_of(self, tool: str) -> str:
        """What the gateway calls an upstream's tool. Raises NotAnswered if it has not listed it."""
        for name in self.names:
            if name == tool or name.endswith(f"_{tool}"):
                return name
        raise NotAnswered(f"no tool {tool}")

    def number(self) -> int:
        """An id that is not in use."""
        self._number += 1
        return self._number

    @abstractmethod
    async def send(self, method: str, name: str | None, body: bytes) -> bytes:
        """Send a request; the answer as it came. `name` is the tool's, where there is one."""

    @abstractmethod
    async def _tell(self, body: bytes) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Leave."""


def result_of(answer: bytes) -> dict[str, Any]:
    """The result in an answer, whether it came as JSON or as an event stream. Raises NotAnswered for anything else."""
    lines = (
        answer.splitlines() if answer.startswith((b"event:", b"data:", b"id:", b":", b"\r\n")) else [b"data: " + answer]
    )
    for line in lines:
        if line.startswith(b"data:") and line[5:].strip():
            message = json.loads(line[5:])
            if "result" in message:
                return message["result"]
            if "error" in message:
                raise NotAnswered(f"error: {message['error']}")
    raise NotAnswered(f"not an answer: {answer[:200]!r}")


class _Connection(asyncio.Protocol):
    """One HTTP connection: a request at a time."""

    def __init__(self) -> None:
        self.closed = False
        self.head = b""
        self._chunks: list[bytes] = []
        self._left = 0
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are of another class
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, sent: bytes) -> asyncio.Future[bytes]:
        """Send a request; the body of the answer."""
        self.head, self._chunks, self._left = b"", [], 0
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(sent)
        return self._answer

    def data_received(self, data: bytes) -> None:
        if not self.head:
            self._chunks.append(data)
            data = b"".join(self._chunks)
            self._chunks = []
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                self._chunks.append(data)
                return
            self.head, data = data[:end].lower(), data[end:]
            length = re.search(rb"\r\ncontent-length: *(\d+)", self.head)
            self._left = int(length[1]) if length else -1
        self._chunks.append(data)
        if self._left < 0:
            tail = data if len(data) >= len(END_OF_CHUNKS) else b"".join(self._chunks[-8:])
            if tail.endswith(END_OF_CHUNKS) or tail == END_OF_CHUNKS[2:]:
                self._done(unchunked(b"".join(self._chunks)))
            return
        self._left -= len(data)
        if self._left <= 0:
            self._left = 0
            self._done(b"".join(self._chunks))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("closed before the answer"))

    def _done(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(body)


def unchunked(data: bytes) -> bytes:
    """A body that came in chunks."""
    parts: list[bytes] = []
    place = 0
    while (end := data.find(b"\r\n", place)) >= 0 and (size := int(data[place:end], 16)):
        parts.append(data[end + 2 : end + 2 + size])
        place = end + 2 + size + 2
    return b"".join(parts)


class HttpClient(Client):
    """A host over Streamable HTTP. Connections are kept; uvicorn closes those that are idle for five seconds."""

    def __init__(self, era: Era, at: int | Address, path: str) -> None:
        super().__init__(era)
        self._at = Address(port=at) if isinstance(at, int) else at
        self._path = path
        self._idle: list[_Connection] = []
        self._session: str | None = None

    async def send(self, method: str, name: str | None, body: bytes) -> bytes:
        host = f"{self._at.name}:{self._at.port}"
        head = http_head(self.era, self._path, host, method, name, self._session, self._at.headers)
        sent = head + str(len(body)).encode() + b"\r\n\r\n" + body
        connection, answer = await self._exchange(sent)
        if connection.head.startswith((b"http/1.1 429", b"http/1.1 503")):
            wanted = re.search(rb"\r\nretry-after: *(\d+)", connection.head)
            raise Refused(answer[:300].decode("utf-8", "replace"), float(wanted[1]) if wanted else 1.0)
        if not connection.head.startswith((b"http/1.1 200", b"http/1.1 202")):
            raise NotAnswered(f"{connection.head[:100]!r} {answer[:300]!r}")
        if method == "initialize" and (found := re.search(rb"\r\nmcp-session-id: *(\S+)", connection.head)):
            self._session = found[1].decode()
        return answer

    async def _tell(self, body: bytes) -> None:
        await self.send("notifications/initialized", None, body)

    async def _exchange(self, sent: bytes) -> tuple[_Connection, bytes]:
        """Send on a connection that is open; again on a new one, if the server closed it at that moment."""
        while True:
            connection, is_new = await self._connected()
            try:
                async with asyncio.timeout(PATIENCE):
                    answer = await connection.ask(sent)
            except ConnectionResetError:
                if is_new or connection.head:
                    raise
                continue
            if not connection.closed:
                self._idle.append(connection)
            return connection, answer

    async def _connected(self) -> tuple[_Connection, bool]:
        while self._idle:
            if not (connection := self._idle.pop()).closed:
                return connection, False
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._at.name, self._at.port, ssl=self._at.tls)
        return connection, True

    async def close(self) -> None:
        """Leave."""
        for connection in self._idle:
            connection.transport.close()


class _Pipes(asyncio.SubprocessProtocol):
    """The lines of a process, each to whoever waits for its id."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.ended = asyncio.Event()
        self._chunks: list[bytes] = []

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if b"\n" not in data:
            self._chunks.append(data)
            return
        *lines, rest = b"".join([*self._chunks, data]).split(b"\n")
        self._chunks = [rest] if rest else []
        for line in lines:
            found = ID.search(line, 0, 300) or ID.search(line, max(0, len(line) - 300))
            waits = self.waiting.pop(int(found[1]), None) if found else None
            if waits is not None and not waits.done():
                waits.set_result(line)

    def process_exited(self) -> None:
        self.ended.set()
        for waits in self.waiting.values():
            if not waits.done():
                waits.set_exception(ConnectionResetError("the process ended"))


class StdioClient(Client):
    """A host that starts its gateway itself."""

    def __init__(self, era: Era, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        super().__init__(era)
        self._command, self._environ, self._log = command, environ, log

    async def start(self) -> int:
        """Start it; its process id."""
        loop = asyncio.get_running_loop()
        with self._log.open("wb") as log:
            transport, self._pipes = await loop.subprocess_exec(
                _Pipes, *self._command, env=dict(self._environ), stderr=log
            )
        self._process: asyncio.SubprocessTransport = transport
        self._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        return transport.get_pid()

    async def send(self, method: str, name: str | None, body: bytes) -> bytes:
        found = ID.search(body)
        assert found is not None
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pipes.waiting[int(found[1])] = answer
        self._stdin.write(body + b"\n")
        async with asyncio.timeout(PATIENCE):
            return await answer

    async def _tell(self, body: bytes) -> None:
        self._stdin.write(body + b"\n")

    async def close(self) -> None:
        """Leave: the process ends by itself, or is made to."""
        self._stdin.close()
        try:
            async with asyncio.timeout(5):
                await self._pipes.ended.wait()
        except TimeoutError:
            self._process.kill()
            await self._pipes.ended.wait()
        self._process.close()
