"""Sessions, standing streams and cancellations over the gateway's own HTTP client."""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.errors import UpstreamTimeout
from gateway.upstream.transports.clients import takes_own_client
from tests.upstream.transports.streamable.scripted import Asked, Server, chunked, event, message, response, served

pytestmark = pytest.mark.anyio

GROWN = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
CALL = ("tools/call", {"name": "go", "arguments": {}})
LIMITS = Timeouts(call=20, idle=20)


async def sound(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"", 405) if asked.method == "GET" else response(message(asked)))


async def streams(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"", 405) if asked.method == "GET" else chunked(event(message(asked))))


@pytest.mark.parametrize("script", [sound, streams])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_calls_use_one_connection_whatever_their_answers_look_like(connect: Any, era: str, script: Any) -> None:
    server = Server(script, era)
    async with served(server) as origin, connect(UpstreamSettings(url=f"{origin}/mcp"), era=era) as upstream:
        before = server.connections
        for _ in range(10):
            await upstream.request(*CALL, timeout=LIMITS)
        assert server.connections == before


async def test_a_session_is_named_in_every_request_and_ended(connect: Any) -> None:
    server = Server(sound, session="s 1")
    async with served(server) as origin:
        async with connect(UpstreamSettings(url=f"{origin}/mcp"), era="handshake") as upstream:
            await upstream.request(*CALL, timeout=LIMITS)
            await server.until(lambda: any(asked.method == "GET" for asked in server.asked))
        first, *others = server.asked
        assert first.name == "initialize"
        assert not {"mcp-session-id", "mcp-protocol-version"} & first.headers.keys()
        assert {asked.headers["mcp-session-id"] for asked in others} == {"s 1"}
        assert {asked.headers["mcp-protocol-version"] for asked in others} == {"2025-11-25"}
        assert others[-1].name == "DELETE"
        assert [asked.name for asked in others].count("GET") == 1, "405 says that there is no standing stream"


async def test_the_standing_stream_is_opened_again_where_it_broke(connect: Any, changes: Any) -> None:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.name == "GET":
            writer.write(chunked(b"retry: 1\nid: e7\ndata:\n\n", event(b"oops"), event(GROWN)))
        elif asked.name == "GET after e7":
            writer.write(chunked(event(GROWN, b"id: e8\n")))
        else:
            writer.write(chunked(end=False))

    server = Server(script, session="s1")
    async with served(server) as origin, connect(UpstreamSettings(url=f"{origin}/mcp"), era="handshake"):
        await server.until(lambda: "GET after e8" in server.names())
        await changes.until(lambda: ("raw", "tools") in changes.all)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cancelled_call_of_a_session_is_announced_before_its_connection_ends(
    connect: Any, streaming: bool
) -> None:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if streaming:
            writer.write(chunked(b": wait\n\n", end=False))

    server = Server(script)
    async with served(server) as origin, connect(UpstreamSettings(url=f"{origin}/mcp"), era="handshake") as upstream:
        with pytest.raises(UpstreamTimeout):
            await upstream.request(*CALL, timeout=Timeouts(call=0.2, idle=20))
        await server.until(lambda: "notifications/cancelled" in server.names())
        cancelled = next(asked for asked in server.asked if asked.name == "notifications/cancelled")
        call = next(asked for asked in server.asked if asked.name == "tools/call")
        assert cancelled.message["params"]["requestId"] == call.message["id"]
        assert cancelled.headers["mcp-protocol-version"] == "2025-11-25"


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cancelled_call_of_the_stateless_era_ends_with_its_connection(connect: Any, streaming: bool) -> None:
    ended = asyncio.Event()

    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if streaming:
            writer.write(chunked(b": wait\n\n", end=False))
            await writer.drain()
        with suppress(ConnectionError):
            while not writer.transport.is_closing():
                writer.write(b"3\r\n:\n\n\r\n" if streaming else b"HTTP/1.1 102 Processing\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        ended.set()

    server = Server(script, "modern")
    async with served(server) as origin, connect(UpstreamSettings(url=f"{origin}/mcp"), era="modern") as upstream:
        with pytest.raises(UpstreamTimeout):
            await upstream.request(*CALL, timeout=Timeouts(call=0.2, idle=20))
        with anyio.fail_after(20):
            await ended.wait()
        assert "notifications/cancelled" not in server.names()


@pytest.mark.parametrize(
    ("url", "environment", "own"),
    [
        ("http://127.0.0.1/", {"HTTP_PROXY": "http://proxy:1"}, True),
        ("http://mcp.example/", {}, True),
        ("http://mcp.example/", {"http_proxy": "http://proxy:1"}, False),
        ("http://mcp.example/", {"https_proxy": "http://proxy:1"}, True),
        ("https://mcp.example/", {"all_proxy": "http://proxy:1"}, False),
    ],
)
def test_a_proxy_is_for_the_sdk(monkeypatch: Any, url: str, environment: dict[str, str], own: bool) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert takes_own_client(UpstreamSettings(url=url)) is own
    assert not takes_own_client(UpstreamSettings(url=url, http_client="sdk"))


def test_without_httptools_the_sdk_is_used(monkeypatch: Any) -> None:
    monkeypatch.setattr("gateway.upstream.transports.clients.find_spec", lambda _: None)
    assert not takes_own_client(UpstreamSettings(url="http://127.0.0.1/"))
