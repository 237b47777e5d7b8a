"""The HTTP client: which connections are used again, what is sent, and what is sent twice."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.transports.streamable.client import HttpClient, Request
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.requests import Origin
from gateway.upstream.transports.streamable.response import Response
from tests.upstream.transports.streamable.scripted import Asked, read_request, response

pytestmark = pytest.mark.anyio

OK = response(b"{}")
Handle = Callable[[Asked, asyncio.StreamWriter, "Raw"], Any]


class Raw:
    """A server that answers with `handle`; None from it closes the connection."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.asked: list[Asked] = []
        self.connections = 0
        self.ended = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (asked := await read_request(reader)) is not None:
                self.asked.append(asked)
                answer = self.handle(asked, writer, self)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.ended.set()


@asynccontextmanager
async def client_of(
    handle: Handle, host: str = "127.0.0.1", path: str = "/mcp", **settings: Any
) -> AsyncGenerator[tuple[HttpClient, Raw]]:
    raw = Raw(handle)
    with anyio.fail_after(30):
        async with await asyncio.start_server(raw, host, 0) as server:
            name = f"[{host}]" if ":" in host else host
            url = f"http://{settings.pop('user', '')}{name}:{server.sockets[0].getsockname()[1]}{path}"
            client = HttpClient(UpstreamSettings(url=url, **settings))
            try:
                yield client, raw
            finally:
                client.close()


async def posted(client: HttpClient, body: bytes = b"{}", **options: Any) -> Response:
    answer = await client.send(Request("POST", options.pop("headers", {}), body, 20, **options))
    await answer.read(1_000_000)
    answer.close()
    return answer


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with client_of(lambda *_: OK) as (client, raw):
        for _ in range(5):
            assert (await posted(client)).status == 200
        assert raw.connections == 1


async def test_requests_at_once_have_connections_of_their_own_and_leave_some_for_later() -> None:
    async with client_of(lambda *_: OK) as (client, raw):
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(30):
                    tasks.start_soon(posted, client)
        assert len(raw.asked) == 60
        assert raw.connections <= 40  # 20 of the first 30 were kept


@pytest.mark.parametrize(
    "answer",
    [
        OK.replace(b"content-length", b"connection: close\r\ncontent-length"),
        OK.replace(b"1.1", b"1.0", 1),
        OK + b"more",
        OK * 2,
    ],
    ids=["connection: close", "http/1.0", "more bytes", "another response"],
)
async def test_a_connection_that_cannot_be_trusted_is_not_used_again(answer: bytes) -> None:
    async with client_of(lambda *_: answer) as (client, raw):
        for _ in range(3):
            assert (await posted(client)).status == 200
        assert raw.connections == 3


@pytest.mark.parametrize(("repeatable", "asked"), [(True, 3), (False, 2)])
async def test_only_a_harmless_request_is_sent_again_if_a_used_connection_broke(repeatable: bool, asked: int) -> None:
    """The server takes the second request on a connection, and closes it without any answer."""

    def handle(_: Asked, __: asyncio.StreamWriter, raw: Raw) -> bytes | None:
        return None if len(raw.asked) == 2 else OK

    async with client_of(handle) as (client, raw):
        await posted(client)
        if repeatable:
            await posted(client, is_repeatable=True)
        else:
            with pytest.raises(httpx2.RemoteProtocolError):
                await posted(client)
        assert len(raw.asked) == asked


@pytest.mark.parametrize("begun", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n"], ids=len)
async def test_nothing_is_sent_again_once_anything_of_an_answer_arrived(begun: bytes) -> None:
    def handle(_: Asked, writer: asyncio.StreamWriter, raw: Raw) -> bytes | None:
        if len(raw.asked) == 1:
            return OK
        writer.write(begun)
        return None

    async with client_of(handle) as (client, raw):
        await posted(client)
        with pytest.raises(httpx2.TransportError):
            await posted(client, is_repeatable=True)
        assert len(raw.asked) == 2


async def test_nothing_is_sent_again_that_broke_on_a_new_connection() -> None:
    async with client_of(lambda *_: None) as (client, raw):
        with pytest.raises(httpx2.RemoteProtocolError):
            await posted(client, is_repeatable=True)
        assert len(raw.asked) == 1


async def test_the_url_and_the_headers_are_written_as_httpx2_does() -> None:
    headers = {"X-Key": "é", "Content-Length": "7", "User-Agent": "mine", "Authorization": "Bearer x"}
    options: dict[str, Any] = {"path": "/a b?q=ü&r=%20#f", "user": "us%40er:pa%3Ass@", "headers": headers}
    async with client_of(lambda *_: OK, **options) as (client, raw):
        await posted(client, b"12", headers={"accept": "a/b"})
        sent = raw.asked[0]
        assert sent.target == "/a%20b?q=%C3%BC&r=%20"
        assert sent.headers["host"].startswith("127.0.0.1:")
        assert (sent.headers["x-key"], sent.headers["user-agent"], sent.headers["accept"]) == ("é", "mine", "a/b")
        assert sent.headers["authorization"] == "Basic dXNAZXI6cGE6c3M="
        assert (sent.headers["content-length"], sent.headers["accept-encoding"]) == ("2", "identity")


@pytest.mark.parametrize("headers", [{"x": "a\r\nb"}, {"x": "\0"}, {"x": "☃"}, {"x y": "1"}, {"": "1"}, {"x": "\x7f"}])
async def test_headers_that_cannot_be_written_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(httpx2.LocalProtocolError):
        HttpClient(UpstreamSettings(url="http://127.0.0.1:9/", headers=headers))
    async with client_of(lambda *_: OK) as (client, raw):
        with pytest.raises(httpx2.LocalProtocolError):
            await posted(client, headers=headers)
        assert raw.asked == []


async def test_cookies_are_sent_back() -> None:
    answer = response(b"{}", extra=b"set-cookie: node=a1; Path=/\r\nset-cookie: other=2; Path=/elsewhere\r\n")
    async with client_of(lambda *_: answer) as (client, raw):
        await posted(client)
        await posted(client)
        assert "cookie" not in raw.asked[0].headers
        assert raw.asked[1].headers["cookie"] == "node=a1"


async def test_a_configured_cookie_is_not_replaced() -> None:
    answer = response(b"{}", extra=b"set-cookie: node=a1; Path=/\r\n")
    async with client_of(lambda *_: answer, headers={"Cookie": "auth=1"}) as (client, raw):
        await posted(client)
        await posted(client)
        assert [asked.headers["cookie"] for asked in raw.asked] == ["auth=1"] * 2


async def test_a_cookie_that_cannot_be_sent_back_is_not_kept() -> None:
    answer = response(b"{}", extra="set-cookie: a=é; Path=/\r\nset-cookie: b=2; Path=/\r\n".encode())
    async with client_of(lambda *_: answer) as (client, raw):
        await posted(client)
        await posted(client)
        assert raw.asked[1].headers["cookie"] == "b=2"


@pytest.mark.parametrize("written", ["/n\u00e9w".encode(), "/n\u00e9w".encode("latin-1"), b"/n%C3%A9w"])
async def test_a_redirect_leads_where_its_author_meant(written: bytes) -> None:
    def handle(asked: Asked, *_: Any) -> bytes:
        return OK if asked.target != "/mcp" else response(b"", 307, extra=b"location: " + written + b"\r\n")

    async with client_of(handle) as (client, raw):
        assert (await posted(client)).status == 200
        assert raw.asked[-1].target == "/n%C3%A9w"


async def test_a_status_that_is_none_is_no_answer() -> None:
    async with client_of(lambda *_: b"HTTP/1.1 000 Nothing\r\ncontent-length: 0\r\n\r\n") as (client, _):
        with pytest.raises(httpx2.RemoteProtocolError):
            await posted(client)


async def test_a_body_in_very_small_parts_is_kept_in_few() -> None:
    size = 50_000
    body = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * size + b"0\r\n\r\n"
    async with client_of(lambda *_: body) as (client, _):
        answer = await client.send(Request("POST", {}, b"{}", 20))
        assert await answer.read(1_000_000) == b"ab" * size
        assert len(answer._chunks) < 2_000
        answer.close()


async def test_credentials_of_the_url_go_along_with_a_redirect_within_the_origin() -> None:
    def handle(asked: Asked, *_: Any) -> bytes:
        there = f"location: http://{asked.headers['host']}/there\r\n".encode()
        return OK if asked.target == "/there" else response(b"", 307, extra=there)

    async with client_of(handle, user="u:p@") as (client, raw):
        assert (await posted(client)).status == 200
        assert [asked.headers["authorization"] for asked in raw.asked] == ["Basic dTpw"] * 2


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
async def test_an_ipv6_literal_is_an_address() -> None:
    try:
        async with client_of(lambda *_: OK, host="::1") as (client, raw):
            assert (await posted(client)).status == 200
            assert raw.asked[0].headers["host"].startswith("[::1]:")
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")


async def test_localhost_is_found_on_whichever_address_it_listens() -> None:
    async with client_of(lambda *_: OK) as (_, raw):
        raw.handle = lambda *_: OK
        async with await asyncio.start_server(raw, "127.0.0.1", 0) as server:
            client = HttpClient(UpstreamSettings(url=f"http://localhost:{server.sockets[0].getsockname()[1]}/"))
            assert (await posted(client)).status == 200
            client.close()


async def test_a_large_body_arrives_whole() -> None:
    async with client_of(lambda *_: OK) as (client, raw):
        await posted(client, b'"' + b"x" * 5_000_000 + b'"')
        assert raw.asked[0].headers["content-length"] == "5000002"


async def test_an_answer_ends_a_body_that_the_server_does_not_read() -> None:
    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(b"{}", 413))
        await writer.drain()
        await ended.wait()
        writer.close()

    ended = anyio.Event()
    with anyio.fail_after(30):
        async with await asyncio.start_server(refuses, "127.0.0.1", 0) as server:
            client = HttpClient(UpstreamSettings(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
            assert (await posted(client, b"x" * 50_000_000)).status == 413
            ended.set()
            client.close()


async def test_silence_has_a_limit() -> None:
    async with client_of(lambda *_: b"") as (client, _):
        with pytest.raises(httpx2.ReadTimeout):
            await client.send(Request("POST", {}, b"{}", 0.1))


async def test_a_cancelled_request_closes_its_connection() -> None:
    async with client_of(lambda *_: b"") as (client, raw):
        with anyio.move_on_after(0.1):
            await posted(client)
        await raw.ended.wait()


async def test_a_cancelled_tls_handshake_leaves_nothing_open() -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        ended.set()

    with anyio.fail_after(30):
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            client = HttpClient(UpstreamSettings(url=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
            with anyio.move_on_after(0.2):
                await posted(client)
            await ended.wait()
            client.close()


async def test_nobody_listening_is_a_connection_refused() -> None:
    client = HttpClient(UpstreamSettings(url="http://127.0.0.1:9/"))
    with pytest.raises(httpx2.ConnectError) as caught:
        await posted(client)
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


class Paused(asyncio.Transport):
    """A transport that remembers whether it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False


async def test_a_stream_that_nobody_reads_is_paused() -> None:
    connection = Connection(Origin(False, "x", 1), lambda _: None, lambda _: None)
    transport = Paused()
    connection.connection_made(transport)
    answer = connection.begin(None)
    connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n" + b"x" * 600_000)
    assert not transport.reads
    assert len(await answer.receive()) == 600_000
    assert transport.reads
