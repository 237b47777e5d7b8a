"""A server on raw sockets: it shakes hands as any other, and answers `tools/call` with the bytes of a script."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

RESULT = {"content": [{"type": "text", "text": "naïve ☃"}]}


class Asked(NamedTuple):
    """A request as the server saw it."""

    method: str
    target: str
    headers: Mapping[str, str]
    message: dict[str, Any]

    @property
    def name(self) -> str:
        """What it is about, for comparing: the MCP method, an answer, or the HTTP method."""
        if self.method != "POST":
            return f"{self.method} after {last}" if (last := self.headers.get("last-event-id")) else self.method
        return str(self.message.get("method") or "answer")


Script = Callable[["Server", Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """What happened so far. `script` answers calls, and every GET; `session` is the id of sessions, if any."""

    script: Script
    era: str = "handshake"
    session: str | None = None
    on_open: bytes = b""
    """Headers in the response to the first request, each with its line end."""
    asked: list[Asked] = field(default_factory=list[Asked])
    connections: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def names(self) -> list[str]:
        """What was asked, except for what every connection begins with."""
        usual = ("initialize", "notifications/initialized", "server/discover", "ping", "tools/list", "GET")
        return [asked.name for asked in self.asked if asked.name not in usual]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of what was asked."""
        while not condition():
            await self.news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while (asked := await read_request(reader)) is not None:
                self.asked.append(asked)
                self.news.set()
                self.news = asyncio.Event()
                await self._answer(asked, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        method = asked.message.get("method")
        if asked.method == "DELETE":
            writer.write(response(b"", 204))
        elif asked.method == "GET" or method == "tools/call":
            await self.script(self, asked, writer)
        elif "id" not in asked.message or method is None:
            writer.write(response(b"", 202))
        elif method in ("initialize", "server/discover"):
            session = b"" if self.session is None else f"mcp-session-id: {self.session}\r\n".encode()
            writer.write(response(message(asked, opening(asked)), extra=session + self.on_open))
        elif method == "tools/list":
            tools = [{"name": "go", "inputSchema": {"type": "object"}}]
            writer.write(response(message(asked, {"tools": tools})))
        else:
            error = {"code": -32601, "message": "no"}
            writer.write(response(json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}).encode()))
        with suppress(ConnectionError):
            await writer.drain()


def opening(asked: Asked) -> dict[str, Any]:
    """The result of the first request."""
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
    if asked.message["method"] == "initialize":
        return {"protocolVersion": asked.message["params"]["protocolVersion"], **about}
    return {"supportedVersions": ["2026-07-28"], **about}


def message(asked: Asked, result: Any = None, **other: Any) -> bytes:
    """The answer to a request."""
    fields = other or {"result": RESULT if result is None else result}
    return json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], **fields}, ensure_ascii=False).encode()


def response(body: bytes, status: int = 200, kind: str = "application/json", extra: bytes = b"") -> bytes:
    """A response with a length."""
    head = f"HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n".encode()
    return head + extra + b"\r\n" + body


def chunked(*parts: bytes, kind: str = "text/event-stream", end: bool = True) -> bytes:
    """A response in chunks, perhaps without its end."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")


def event(data: bytes, fields: bytes = b"") -> bytes:
    """An event."""
    return fields + b"data: " + data + b"\n\n"


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """Read a request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, json.loads(body) if body else {})


@asynccontextmanager
async def served(server: Server) -> AsyncGenerator[str]:
    """Serve on a port of the loopback, and return the origin."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
