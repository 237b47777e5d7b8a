"""The gateway's own HTTP client beside the SDK's transport: the same servers, and the same that is seen of them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import UpstreamError
from gateway.upstream.connection.request_context import RequestContext
from tests.upstream.transports.streamable.scripted import (
    RESULT,
    Asked,
    Script,
    Server,
    chunked,
    event,
    message,
    response,
    served,
)

pytestmark = pytest.mark.anyio

LIMIT = 200_000
PING = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'
Client = Literal["gateway", "sdk"]


class Seen(NamedTuple):
    """What is observed of one call, and of a sound one after it."""

    outcome: Any
    progress: list[float]
    asked: list[str]
    afterwards: Any


def says(write: Callable[[Asked], bytes], *, ends: bool = False, once: bool = True) -> Script:
    """A script that answers the first call with bytes, and then perhaps closes; later calls get a sound answer."""

    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "GET":
            writer.write(response(b"", 405))
        elif once and server.names().count("tools/call") > 1:
            writer.write(response(message(asked)))
        else:
            writer.write(write(asked))
            if ends:
                await writer.drain()
                writer.close()

    return script


def in_bytes(write: Callable[[Asked], bytes]) -> Script:
    """The same, one byte after the other."""

    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        for byte in write(asked) if asked.method == "POST" else response(b"", 405):
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)

    return script


def progress(asked: Asked, amount: Any) -> bytes:
    token = asked.message["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": amount}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode()


async def asks(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Ask something back, and answer only when that was answered."""
    writer.write(chunked(event(PING), end=False))
    await server.until(lambda: "answer" in server.names())
    part = event(message(asked))
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(part), part))


def resumed(*, fails: int = 0, retry: int = 10) -> Script:
    """Break off after an event with an id; the answer is in the stream that resumes it, after some failures."""

    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        names = server.names()
        if asked.method == "POST":
            writer.write(chunked(b"id: e1\nretry: %d\ndata:\n\n" % retry))
        elif "last-event-id" not in asked.headers:
            writer.write(response(b"", 405))
        elif sum(name.startswith("GET") for name in names) <= fails:
            writer.write(response(b"", 503))
        else:
            call = next(each for each in server.asked if each.name == "tools/call")
            writer.write(chunked(event(message(call), b"id: e2\n")))

    return script


def redirected(status: int, location: str) -> Script:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/there":
            writer.write(response(message(asked)))
        else:
            writer.write(response(b"", status, extra=f"location: {location}\r\n".encode()))

    return script


def answer_in(lines: Callable[[bytes], bytes]) -> Callable[[Asked], bytes]:
    """Write a stream with an answer as these lines."""
    return lambda asked: chunked(lines(message(asked)))


def with_head(head: bytes) -> Callable[[Asked], bytes]:
    return lambda asked: head + response(message(asked))


def raw(head: str, body: Callable[[Asked], bytes] = message) -> Callable[[Asked], bytes]:
    return lambda asked: head.format(length=len(body(asked))).replace("\n", "\r\n").encode() + b"\r\n\r\n" + body(asked)


OK = "HTTP/1.1 200 OK\ncontent-type: application/json"
ERROR = {"error": {"code": -32602, "message": "bad", "data": {"n": 1}}}

CASES: dict[str, Script] = {
    # Sound answers.
    "json": says(lambda asked: response(message(asked))),
    "json, byte by byte": in_bytes(lambda asked: response(message(asked))),
    "json, in chunks": says(lambda asked: chunked(message(asked)[:9], message(asked)[9:], kind="application/json")),
    "json, until the end": says(raw(OK), ends=True),
    "json, connection: close": says(raw(f"{OK}\nconnection: close\ncontent-length: {{length}}"), ends=True),
    "json, http/1.0": says(raw(OK.replace("1.1", "1.0")), ends=True),
    "json, after 100": says(with_head(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "json, after 103": says(with_head(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")),
    "json, half a surrogate pair": says(lambda asked: response(message(asked, {"content": [{"t": "\\"}]}).replace(
        b"\\\\", b"\\ud83d"))),
    "an error": says(lambda asked: response(message(asked, **ERROR))),
    "an error with 400": says(lambda asked: response(message(asked, **ERROR), 400)),
    "an error with 400 and no id": says(lambda asked: response(b'{"jsonrpc":"2.0","id":null,"error":'
                                                               b'{"code":-32600,"message":"no"}}', 400)),
    "stream": says(answer_in(event)),
    "stream, byte by byte": in_bytes(answer_in(event)),
    "stream, crlf": says(answer_in(lambda data: event(data, b"event: message\nid: 1\n").replace(b"\n", b"\r\n"))),
    "stream, cr": says(answer_in(lambda data: event(data).replace(b"\n", b"\r"))),
    "stream, lines": says(answer_in(lambda data: event(data.replace(b", ", b",\ndata: ")))),
    "stream, comments and more": says(answer_in(lambda data: b": hello\n\nevent: odd\ndata: 1\n\n" + event(
        data, b"unknown\nretry: x\nid\n"))),
    "stream, another id": says(answer_in(lambda data: event(data.replace(b'"id": ', b'"id": 7')))),
    "stream, progress": says(lambda asked: chunked(event(progress(asked, 1)), event(progress(asked, 2.5)), event(
        message(asked)))),
    "stream, useless progress": says(lambda asked: chunked(event(progress(asked, 10**400)), event(message(asked)))),
    "stream, a question": asks,
    "stream, resumed": resumed(),
    "stream, resumed at the second attempt": resumed(fails=1),
    "stream, not resumed": resumed(fails=9),
    "307": redirected(307, "/there"),
    "308": redirected(308, "/there"),
    "302": redirected(302, "/there"),
    "307 without end": redirected(307, "/mcp"),
    "307 elsewhere": redirected(307, "http://127.0.0.1:1/there?secret=1"),
    # Faults.
    "closed at once": says(lambda asked: b"", ends=True),
    "cut in the headers": says(lambda asked: response(message(asked))[:30], ends=True),
    "cut in the body": says(lambda asked: response(message(asked))[:-3], ends=True),
    "cut between chunks": says(lambda asked: chunked(message(asked), kind="application/json", end=False), ends=True),
    "cut in a stream": says(lambda asked: chunked(event(progress(asked, 1)), end=False), ends=True),
    "a stream without an answer": says(lambda asked: chunked(event(progress(asked, 1)))),
    "not http": says(lambda asked: b"SSH-2.0-OpenSSH_9.9\r\n", ends=True),
    "not a chunk": says(lambda asked: chunked(end=False) + b"zz\r\n" + message(asked), ends=True),
    "endless headers": says(lambda asked: b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, ends=True),
    "an unknown encoding": says(raw(f"{OK}\ntransfer-encoding: gzip"), ends=True),
    "compressed": says(raw(f"{OK}\ncontent-encoding: gzip\ncontent-length: {{length}}")),
    "202": says(lambda asked: response(b"", 202)),
    "html": says(lambda asked: response(b"<html>", kind="text/html")),
    "not json": says(lambda asked: response(b"{")),
    "not json-rpc": says(lambda asked: response(b'{"id": 1}')),
    "a stream of something else": says(lambda asked: chunked(event(b"[1"))),
    "too large": says(lambda asked: response(message(asked, "x" * LIMIT))),
    "too large, in chunks": says(lambda asked: chunked(message(asked, "x" * LIMIT), kind="application/json")),
    "an event too large": says(lambda asked: chunked(event(message(asked, "x" * LIMIT)))),
    "401": says(lambda asked: response(b"", 401, extra=b"www-authenticate: Bearer resource_metadata=\"x\"\r\n")),
    "403": says(lambda asked: response(message(asked, **ERROR), 403)),
    "404": says(lambda asked: response(b"", 404)),
    "404 as json-rpc": says(lambda asked: response(message(asked, error={"code": -32601, "message": "no"}), 404)),
    "500": says(lambda asked: response(b"oops", 500, "text/plain")),
    "a longer body than declared": says(lambda asked: response(message(asked)) + b"{}"),
    "two responses": says(lambda asked: response(message(asked)) * 2),
}  # fmt: skip

DIFFERENT: dict[str, str] = {
    "a longer body than declared": "What follows an answer costs its connection, not the next call.",
    "two responses": "The same.",
    "json, another id": "A wrong answer fails at once; the SDK's transport leaves the request waiting.",
    "json, a notification": "The same.",
    "a batch": "Batches, which 2025-03-26 allows, are read as over the other transports.",
    "stream, a batch": "The same.",
    "stream, a byte order mark": "The format of event streams says that it is ignored.",
    "nothing": "An empty answer is not a refusal by the server.",
}
"""Cases that differ on purpose, and why. What is seen with the gateway's own client is in EXPECTED."""

SOUND = str(RESULT)
GARBAGE = "('UpstreamGarbage', 'NOT_MCP', 'answered with something that is %s, while tools/call was running')"
EXPECTED = {
    **dict.fromkeys(DIFFERENT, SOUND),
    "json, another id": GARBAGE % "not the response to the request",
    "json, a notification": GARBAGE % "not the response to the request",
    "nothing": GARBAGE % "not a JSON-RPC message",
}

CASES |= {
    "json, another id": says(lambda asked: response(message(asked).replace(b'"id": ', b'"id": 7'))),
    "json, a notification": says(lambda asked: response(b'{"jsonrpc":"2.0","method":"notifications/message"}')),
    "a batch": says(lambda asked: response(b"[%b,%b]" % (progress(asked, 1), message(asked)))),
    "stream, a batch": says(lambda asked: chunked(event(b"[%b,%b]" % (progress(asked, 1), message(asked))))),
    "stream, a byte order mark": says(answer_in(lambda data: b"\xef\xbb\xbf" + event(data))),
    "nothing": says(lambda asked: response(b"", kind="text/plain")),
}
IN_SESSIONS = (
    "404",
    "410",
    "400 for an unknown session",
    "closed at once",
    "json",
    "stream, resumed",
    "404 as json-rpc",
)
CASES |= {
    "410": says(lambda asked: response(b"", 410)),
    "400 for an unknown session": says(
        lambda asked: response(message(asked, error={"code": -32000, "message": "No valid session ID"}), 400)
    ),
}

IN_SESSIONS = (
    *("404", "410", "400 for an unknown session", "404 as json-rpc"),
    *("closed at once", "json", "stream, resumed"),
)


async def observe(
    connect: Any, case: str, client: Client, era: str, session: str | None = None, seconds: float = 20
) -> Seen:
    """Make the call of a case, and another one."""
    server = Server(CASES[case], era, session)
    heard: list[float] = []

    async def hear(amount: float, total: float | None, text: str | None) -> None:
        heard.append(amount)

    async def call(upstream: Any) -> str:
        context = RequestContext(Caller(), on_progress=hear)
        limits = Timeouts(call=seconds, idle=seconds)
        try:
            params = {"name": "go", "arguments": {}}
            return str(await upstream.default.request("tools/call", params, context, limits))
        except UpstreamError as error:
            seen = type(error).__name__, error.failure.code.name, error.failure.message.partition(" (")[0]
            return str(seen).replace(origin, "ORIGIN")

    async with served(server) as origin:
        settings = UpstreamSettings(url=f"{origin}/mcp", transport="http", http_client=client, max_message_bytes=LIMIT)
        async with connect(settings, era=era) as upstream:
            outcome = await call(upstream)
            asked = server.names()
            afterwards = await call(upstream)
    return Seen(outcome, heard, asked, afterwards)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("case", [case for case in CASES if case not in DIFFERENT])
async def test_the_same_is_seen(connect: Any, case: str, era: str) -> None:
    assert await observe(connect, case, "gateway", era) == await observe(connect, case, "sdk", era)


@pytest.mark.parametrize("case", IN_SESSIONS)
async def test_the_same_is_seen_in_sessions(connect: Any, case: str) -> None:
    ours, theirs = [await observe(connect, case, client, "handshake", "s1") for client in ("gateway", "sdk")]
    assert ours == theirs


@pytest.mark.parametrize("case", DIFFERENT)
async def test_what_differs_on_purpose(connect: Any, case: str) -> None:
    ours = await observe(connect, case, "gateway", "modern")
    assert (ours.outcome, ours.afterwards) == (EXPECTED[case], SOUND)
    # The SDK's may leave a request waiting: a short limit shows that as well as a long one.
    assert await observe(connect, case, "sdk", "modern", seconds=1) != ours
