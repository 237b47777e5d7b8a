"""The same over HTTP: an upstream that asks and asks, and leaves the answers that are posted to it hanging."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.errors import UpstreamLost
from gateway.serving.http import Listening, serve
from gateway.upstream import Upstreams

pytestmark = pytest.mark.anyio

Send = Callable[[dict[str, Any]], Awaitable[None]]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, as JSON-RPC."""
    if message["method"] == "initialize":
        server = {"name": "greedy", "version": "1"}
        version = message["params"]["protocolVersion"]
        result: dict[str, Any] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Greedy:
    """Both transports: Streamable HTTP at /mcp, HTTP+SSE at /sse."""

    def __init__(self) -> None:
        self.to_stream: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.goes = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        if scope["method"] == "GET" and scope["path"] == "/sse":
            await self._stream(receive, send)
        elif scope["method"] == "POST":
            body, more = b"", True
            while more:
                piece = await receive()
                body += piece.get("body", b"")
                more = piece.get("more_body", False)
            await self._posted(json.loads(body), scope["path"] == "/mcp", receive, send)
        else:
            await respond(send, 405)

    async def _posted(self, message: dict[str, Any], streamable: bool, receive: Any, send: Send) -> None:
        if "method" not in message:  # an answer: it is not taken
            while (await receive())["type"] != "http.disconnect":
                pass
        elif "id" not in message:
            await respond(send, 202)
        elif message["method"] == "tools/call" and streamable:
            await begin(send)
            await self._ask_without_end(receive, send)
        elif message["method"] == "tools/call":
            self.goes.set()
            await respond(send, 202)
        elif streamable:
            await respond(send, 200, answer(message))
        else:
            await self.to_stream.put(answer(message))
            await respond(send, 202)

    async def _stream(self, receive: Any, send: Send) -> None:
        await begin(send)
        await event(send, "endpoint", "/messages")
        while not self.goes.is_set():
            with anyio.move_on_after(0.05):
                await event(send, "message", json.dumps(await self.to_stream.get()))
        await self._ask_without_end(receive, send)

    async def _ask_without_end(self, receive: Any, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()


async def flood(send: Send) -> None:
    count = 0
    while True:
        count += 1
        ping = {"jsonrpc": "2.0", "id": count, "method": "ping", "params": {"pad": "x" * 200}}
        await event(send, "message", json.dumps(ping))
        await anyio.lowlevel.checkpoint()


async def begin(send: Send) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def event(send: Send, name: str, data: str) -> None:
    body = f"event: {name}\ndata: {data}\n\n".encode()
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def respond(send: Send, status: int, content: Any = None) -> None:
    body = b"" if content is None else json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    async with anyio.create_task_group() as tasks:
        ports: asyncio.Queue[int] = asyncio.Queue()
        tasks.start_soon(partial(serve, Greedy(), Listening("127.0.0.1", 0, "test"), on_bound=ports.put_nowait))
        yield await ports.get()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("path", "transport"), [("/mcp", "http"), ("/sse", "sse")])
@pytest.mark.parametrize("client", ["gateway", "sdk"])
async def test_requests_without_end_end_the_link(path: str, transport: Any, client: Any) -> None:
    with anyio.fail_after(60):
        async with served() as port:
            settings = UpstreamSettings(url=f"http://127.0.0.1:{port}{path}", transport=transport, http_client=client)
            async with Upstreams({"greedy": settings}, on_change=lambda *_: None) as upstreams:
                assert await upstreams["greedy"].ready(30)
                limits = Timeouts(call=50, idle=50)
                with pytest.raises(UpstreamLost, match="sends too many requests"):
                    await upstreams["greedy"].request("tools/call", {"name": "go"}, timeout=limits)
