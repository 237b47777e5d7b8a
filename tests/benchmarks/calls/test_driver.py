"""The client and the raw upstream against each other, and against what uvicorn and the SDK do beside."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks.calls.cases import CASES, check, seconds_per_call
from benchmarks.calls.driver import HttpClient, NotAnswered, StdioClient, result_of, unchunked
from benchmarks.calls.gateways import environ, upstream_command
from benchmarks.calls.upstream import HttpServer
from benchmarks.calls.wire import RESULTS, Era, result_bytes, tools

pytestmark = pytest.mark.anyio
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'


@pytest.mark.parametrize("era", Era)
async def test_every_case_is_answered_over_http(era: Era) -> None:
    server = await asyncio.get_running_loop().create_server(HttpServer, "127.0.0.1", 0)
    async with server:
        client = HttpClient(era, server.sockets[0].getsockname()[1], f"/{era}/20")
        await client.open()
        assert len(result_of(await client.list_tools())["tools"]) == 20
        for case in CASES:
            await check(client, case)
        assert await seconds_per_call(client, CASES[1], 0.0) > 0
        await client.close()


async def test_every_small_case_is_answered_over_stdio(tmp_path: Path) -> None:
    client = StdioClient(
        Era.STATELESS, upstream_command("stdio", Era.STATELESS, "0"), environ(tmp_path), tmp_path / "log"
    )
    await client.start()
    await client.open()
    answers = await asyncio.gather(*(client.call(tool) for tool in ("image_10k", "text", "structured")))
    assert [result_of(answer)["content"][0]["type"] for answer in answers] == ["image", "text", "text"]
    await client.close()


async def test_a_process_that_ends_leaves_nobody_waiting(tmp_path: Path) -> None:
    client = StdioClient(Era.HANDSHAKE, [sys.executable, "-c", "input()"], os.environ, tmp_path / "log")
    await client.start()
    with pytest.raises(ConnectionResetError):
        await client.open()
    await client.close()


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(answering: Answering, times: int = 1) -> list[bytes]:
    """What the client gets from a server that does that with each connection."""
    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    async with server:
        client = HttpClient(Era.STATELESS, server.sockets[0].getsockname()[1], "/mcp")
        got = [await client.list_tools() for _ in range(times)]
        await client.close()
    return got


async def test_an_event_stream_may_come_in_pieces():
    body = b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        for piece in (head[:20], head[20:] + chunked[:9], chunked[9:-3], chunked[-3:]):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    assert [result_of(answer) for answer in await asked(answer)] == [{"tools": []}]


async def test_a_connection_that_was_closed_while_idle_is_replaced():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        writer.close()

    assert await asked(answer, 3) == [ANSWER] * 3


async def test_what_is_no_result_is_an_error():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno")
        writer.close()

    with pytest.raises(NotAnswered, match="500"):
        await asked(answer)
    with pytest.raises(NotAnswered, match="error"):
        result_of(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}')
    with pytest.raises(NotAnswered, match="not an answer"):
        result_of(b": ping\r\n\r\n")


def test_chunks_are_put_together():
    assert unchunked(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") == b"abcde"


def test_there_are_as_many_tools_as_wanted_and_each_result_has_the_size_of_its_name():
    assert [len(tools(count)) for count in (0, 10, 1_000)] == [len(RESULTS), 10, 1_000]
    for tool, size in (("image_10k", 10_000), ("image_1m", 1_000_000)):
        data = json.loads(result_bytes(tool, Era.HANDSHAKE))["content"][0]["data"]
        assert 0.98 < len(data) * 3 / 4 / size < 1.02
