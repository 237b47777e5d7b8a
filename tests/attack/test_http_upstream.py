"""An upstream over HTTP that breaks the rules of HTTP and of event streams: only the call that meets it fails."""

import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CALL_SECONDS = 1.5
Parts = Iterator[bytes]
"""What is written to the socket, part by part, until the client has closed it."""

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def head(status: str, *headers: str) -> bytes:
    return "".join([f"HTTP/1.1 {status}\r\n", *(f"{header}\r\n" for header in headers), "\r\n"]).encode("latin-1")


def slowly(content: bytes, first: bytes = b"") -> Parts:
    yield first
    for byte in itertools.cycle(content):
        time.sleep(0.05)
        yield bytes([byte])


def forever(part: bytes, first: bytes = b"") -> Parts:
    yield first
    while True:
        yield part


def event(message: object, *fields: str) -> bytes:
    return "".join([*(f"{field}\n" for field in fields), f"data: {json.dumps(message)}\n\n"]).encode()


NOTICE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1_000}}
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

BROKEN: dict[str, Callable[[bytes], Parts]] = {
    "nothing": lambda _: iter(()),
    "half-a-line": lambda _: iter((b"HTTP/1.1 20",)),
    "not-http": lambda _: iter((b"SSH-2.0-OpenSSH_9.6\r\n",)),
    "tls": lambda _: iter((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),)),
    "status-0": lambda _: iter((head("0 None", "content-length: 0"),)),
    "status-999": lambda _: iter((head("999 Denied", "content-length: 0"),)),
    "headers-slowly": lambda _: slowly(b"x-slow: y\r\n", OK),
    "body-slowly": lambda _: slowly(b" ", OK + b"content-length: 1000000\r\n\r\n"),
    "short": lambda rest: iter((OK + b"content-length: 100000\r\n\r\n" + rest,)),
    "lengths": lambda rest: iter((OK + b"content-length: 5\r\ncontent-length: 100\r\n\r\n" + rest,)),
    "negative": lambda rest: iter((OK + b"content-length: -5\r\n\r\n" + rest,)),
    "both": lambda rest: iter((OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\n" + rest,)),
    "chunk-size": lambda rest: iter((OK + b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + rest,)),
    "chunk-words": lambda rest: iter((OK + b"transfer-encoding: chunked\r\n\r\nlots\r\n" + rest,)),
    "no-type": lambda _: iter((head("200 OK", "content-length: 2") + b"{}",)),
    "page": lambda _: iter((head("200 OK", "content-type: text/html", "content-length: 6") + b"<html>",)),
    "no-content": lambda _: iter((head("204 No Content"),)),
    "accepted": lambda _: iter((head("202 Accepted", "content-length: 0"),)),
    "not-modified": lambda _: iter((head("304 Not Modified", "content-length: 10"),)),
    "not-utf8": lambda _: iter((OK + b"content-length: 4\r\n\r\n\xff\xfe\xfd\xfc",)),
    "array": lambda _: iter((OK + b"content-length: 2\r\n\r\n[]",)),
    "here-again": lambda _: iter((head("307 Temporary Redirect", "location: /mcp", "content-length: 0"),)),
    "elsewhere": lambda _: iter((head("308 Permanent", "location: http://192.0.2.1/", "content-length: 0"),)),
    "a-file": lambda _: iter((head("307 Temporary Redirect", "location: file:///etc/passwd", "content-length: 0"),)),
    "much-later": lambda _: iter((head("429 Later", "retry-after: 99999999999", "content-length: 0"),)),
    "unavailable": lambda _: iter((head("503 Busy", "retry-after: -1", "content-length: 0"),)),
    "gone": lambda _: iter((head("404 Not Found", "content-length: 0"),)),
    "no-events": lambda _: iter((STREAM,)),
    "nul": lambda _: iter((STREAM + b"id: a\0b\nretry: 0\ndata: \0\n\n",)),
    "resume-later": lambda _: iter((STREAM + b"retry: 99999999999999\nid: 1\ndata:\n\n",)),
    "not-json": lambda _: iter((STREAM + b"data: {\n\n",)),
}
"""What comes in the place of an answer, or (given the right one) around it."""

ENDLESS: dict[str, Callable[[bytes], Parts]] = {
    "switching": lambda _: forever(b"\x81\x05hello", head("101 Switching Protocols", "upgrade: websocket")),
    "continues": lambda _: forever(head("100 Continue") * 1_000),
    "hints": lambda _: forever(head("103 Early Hints", "link: </x>; rel=preload") * 1_000),
    "headers": lambda _: forever(b"x-more: and more\r\n" * 1_000, OK),
    "header-line": lambda _: forever(b"x" * 65_536, OK + b"x-long: "),
    "chunk-notes": lambda _: forever(b"x" * 65_536, OK + b"transfer-encoding: chunked\r\n\r\n5;"),
    "trailers": lambda _: forever(b"x: y\r\n" * 1_000, OK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"),
    "endless-body": lambda _: forever(b" " * 65_536, OK + b"\r\n"),
    "comments": lambda _: forever(b": nothing\n" * 1_000, STREAM),
    "comment-line": lambda _: forever(b"x" * 65_536, STREAM + b":"),
    "empty-events": lambda _: forever(b"data\n\n" * 1_000, STREAM),
    "data-lines": lambda _: forever(b"data: x\n" * 1_000, STREAM),
    "notices": lambda _: forever(event(NOTICE) * 20, STREAM),
    "asks": lambda _: forever(event(ASKED) * 100, STREAM),
}
"""What would be read for ever."""

EVIL = {**BROKEN, **ENDLESS}


class EvilServer:
    """Speaks the protocol until one of the tools in `EVIL` is called."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        with connection, connection.makefile("rb") as received:
            try:
                while (answer := self._answer(*_request(received))) is not None:
                    connection.sendall(answer)
            except (OSError, ValueError):
                return
            except _Evil as evil:
                try:
                    for part in evil.parts:
                        connection.sendall(part)
                except OSError:
                    pass

    def _answer(self, method: str, body: bytes) -> bytes | None:
        message = json.loads(body) if body else {}
        if method != "POST" or "id" not in message or "method" not in message:
            return (
                head("202 Accepted", "content-length: 0") if method == "POST" else head("405 No", "content-length: 0")
            )
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": _result(message)}).encode()
        name = message.get("params", {}).get("name")
        if message["method"] == "tools/call" and name in EVIL:
            raise _Evil(EVIL[name](answer))
        return OK + f"content-length: {len(answer)}\r\n\r\n".encode() + answer


class _Evil(Exception):
    def __init__(self, parts: Parts) -> None:
        self.parts = parts


def _request(received: Any) -> tuple[str, bytes]:
    method = received.readline().split(b" ")[0].decode()
    if not method:
        raise ValueError("closed")
    length = 0
    while (line := received.readline().strip()) != b"":
        if found := re.match(rb"content-length: *(\d+)", line, re.IGNORECASE):
            length = int(found[1])
    return method, received.read(length)


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        server = {"name": "evil", "version": "1"}
        version = message["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": server}
    if message["method"] == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("fine", *EVIL)]}
    return {"content": [{"type": "text", "text": "fine"}]}


@contextmanager
def evil_server() -> Iterator[EvilServer]:
    server = EvilServer()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def evil(attacked: Any) -> Iterator[tuple[Any, Any]]:
    """A gateway before the evil server, and a host."""
    with evil_server() as server:
        config = f'[upstreams.evil]\nurl = "http://127.0.0.1:{server.port}/mcp"\ntransport = "http"\n'
        gateway = attacked({}, f"{config}timeout.call = {CALL_SECONDS}\n")
        host = gateway.client("claude-code")
        yield gateway, host
        host.close()


def fails_alone(host: Any, name: str) -> str:
    """Call the tool, which fails in time, and one that works, at once. What the host was told."""
    began = time.monotonic()
    failed = host.call(f"evil__{name}")
    assert failed["isError"], (name, failed)
    assert time.monotonic() - began < CALL_SECONDS + 7, name
    assert host.call("evil__fine") == {"content": [{"type": "text", "text": "fine"}]}, name
    return failed["content"][0]["text"]


@pytest.mark.timeout(120)
def test_answers_that_break_the_rules_fail_their_own_call(evil: Any) -> None:
    gateway, host = evil
    with gateway.watched() as others:
        said = {name: fails_alone(host, name) for name in BROKEN}
    unclear = {name: words for name, words in said.items() if "upstream 'evil': " not in words or "Error" in words}
    assert unclear == {}
    assert not others.failures
    assert others.longest < 5


@pytest.mark.timeout(120)
def test_answers_without_end_keep_nobody_else_waiting(evil: Any) -> None:
    gateway, host = evil
    for name in ENDLESS:
        with gateway.watched(name) as others:
            fails_alone(host, name)
        assert not others.failures, name
        assert others.longest < 5, name
        assert others.growth < 150 * 2**20, name
