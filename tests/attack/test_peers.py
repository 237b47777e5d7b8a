"""Slow and greedy peers: hosts that half-send, do not read or guess; upstreams that ask and list without end."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

MIB = 2**20
TOKEN = "a-token-that-nobody-guesses"
CONNECTED = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

SERVER = """
import json, sys

def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def tool(name):
    return {"name": name, "description": name, "inputSchema": {"type": "object"}}

def is_unknown(message):
    return "id" in message and message.get("method") not in (None, "initialize", "tools/list", "tools/call")

def initialized(params):
    return {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "greedy", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}}}
"""

NEVER_READS = (
    SERVER
    + """
for line in sys.stdin:
    message = json.loads(line)
    if is_unknown(message):
        say(id=message["id"], error={"code": -32601, "message": "no"})
    elif message.get("method") == "initialize":
        say(id=message["id"], result=initialized(message["params"]))
    elif message.get("method") == "tools/list":
        say(id=message["id"], result={"tools": [tool("go")]})
    elif message.get("method") == "tools/call":
        break

count = 0
while True:
    count += 1
    say(id=count, method="ping", params={"pad": "x" * 1000})
"""
)

LISTS_WITHOUT_END = (
    SERVER
    + """
grown = False
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if is_unknown(message):
        say(id=message["id"], error={"code": -32601, "message": "no"})
    elif method == "initialize":
        say(id=message["id"], result=initialized(message["params"]))
    elif method == "tools/list" and not grown:
        say(id=message["id"], result={"tools": [tool("grow")]})
    elif method == "tools/list":
        page = int(message.get("params", {}).get("cursor") or 0)
        tools = [tool("grow")] if page == 0 else []
        tools += [{**tool(f"t{page}_{n}"), "description": "d" * 10_000} for n in range(100)]
        more = {"nextCursor": str(page + 1)} if page < 250 else {}
        say(id=message["id"], result={"tools": tools, **more})
    elif method == "tools/call":
        say(id=message["id"], result={"content": [{"type": "text", "text": f"grown: {grown}"}]})
        if not grown:
            grown = True
            say(method="notifications/tools/list_changed")
"""
)

LARGE_RESULTS = (
    SERVER
    + """
for line in sys.stdin:
    message = json.loads(line)
    if is_unknown(message):
        say(id=message["id"], error={"code": -32601, "message": "no"})
    elif message.get("method") == "initialize":
        say(id=message["id"], result=initialized(message["params"]))
    elif message.get("method") == "tools/list":
        say(id=message["id"], result={"tools": [tool("large")]})
    elif message.get("method") == "tools/call":
        say(id=message["id"], result={"content": [{"type": "text", "text": "x" * 3_000_000}]})
"""
)


@contextmanager
def held(port: int, sent: list[str]) -> Iterator[list[socket.socket]]:
    """Connections on each of which something is sent, and nothing is read."""
    sockets: list[socket.socket] = []
    try:
        for text in sent:
            one = socket.create_connection(("127.0.0.1", port), 30)
            sockets.append(one)
            one.sendall(text.encode())
        yield sockets
    finally:
        for one in sockets:
            one.close()


def is_closed(one: socket.socket) -> bool:
    """Wait until the gateway has closed the connection."""
    try:
        while one.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def waited_for(attacked: Any, words: str, seconds: float = 60) -> bool:
    """Whether the gateway says so within a while."""
    end = time.monotonic() + seconds
    while not any(words in line for line in tuple(attacked.said)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def quiet(attacked: Any, lines: int = 20) -> bool:
    """Whether the log has few lines, none of them of a traceback."""
    said = [line for line in tuple(attacked.said) if "bystander__ping" not in line]
    assert not [line for line in said if "Traceback" in line], said
    return len(said) <= lines


@pytest.mark.parametrize("token", [TOKEN, None], ids=["token", "no token"])
def test_half_sent_headers(attacked: Callable[..., Any], token: str | None) -> None:
    gateway = attacked(config="[http]\nrequest_timeout = 2", token=token, open_files=256)
    with gateway.watched() as watch, held(gateway.port, ["GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "] * 260) as held_:
        newcomer = gateway.client("newcomer")
        assert "bystander__ping" in newcomer.tools()
        newcomer.close()
        assert all(map(is_closed, held_))
    assert watch.failures == []
    assert watch.longest < 10
    assert watch.growth < 100 * MIB
    assert quiet(gateway)


def test_slow_bodies(attacked: Callable[..., Any]) -> None:
    gateway = attacked(config="[http]\nrequest_timeout = 1", token=TOKEN)
    request = f"{CONNECTED}Authorization: Bearer {TOKEN}\r\nContent-Length: 100000\r\n\r\n{{"
    refused = f"{CONNECTED}Content-Length: 100000\r\n\r\n{{"
    with gateway.watched() as watch, held(gateway.port, [request, refused] * 40) as sockets:
        for _ in range(5):
            for one in sockets:
                try:
                    one.sendall(b" ")
                except ConnectionError:
                    continue
            time.sleep(0.2)
        assert all(map(is_closed, sockets))
    assert watch.failures == []
    assert quiet(gateway)


def test_wrong_tokens(attacked: Callable[..., Any]) -> None:
    gateway = attacked(token=TOKEN)
    guesses = [f"{CONNECTED}Authorization: Bearer guess{n}\r\nContent-Length: 2\r\n\r\n{{}}" for n in range(300)]
    began = time.monotonic()
    with gateway.watched() as watch:
        for some in (guesses[:100], guesses[100:200], guesses[200:]):
            with held(gateway.port, some) as sockets:
                answers = [one.recv(4_096) for one in sockets]
                assert all(b" 401 " in answer.partition(b"\r\n")[0] for answer in answers)
    assert time.monotonic() - began > 3 * 1.5  # one is answered after 2 seconds, as of the 11th
    assert watch.failures == []
    lines = [line for line in gateway.said if "a wrong token from 127.0.0.1" in line]
    assert 1 <= len(lines) <= 3
    assert quiet(gateway)


def test_an_upstream_that_asks_and_never_reads(attacked: Callable[..., Any]) -> None:
    gateway = attacked({"greedy": NEVER_READS})
    host = gateway.client("claude-code")
    with gateway.watched() as watch:
        answer = host.call("greedy__go")
        assert "sends too many requests" in json.dumps(answer), answer
        assert "unanswered" in json.dumps(answer)
    host.close()
    assert watch.failures == []
    assert watch.growth < 60 * MIB
    assert waited_for(gateway, "sends too many requests")


def test_lists_without_end(attacked: Callable[..., Any]) -> None:
    gateway = attacked({"greedy": LISTS_WITHOUT_END})
    host = gateway.client("claude-code")
    with gateway.watched() as watch:
        assert "grown: False" in json.dumps(host.call("greedy__grow"))
        assert waited_for(gateway, "of its tools are offered"), gateway.said
        assert "grown: True" in json.dumps(host.call("greedy__grow"))
    host.close()
    assert watch.failures == []
    assert watch.growth < 300 * MIB


def test_results_that_a_host_on_sse_does_not_read(attacked: Callable[..., Any]) -> None:
    gateway = attacked({"greedy": LARGE_RESULTS}, config="[http]\nmax_unread_bytes = 33554432")
    opening = "GET /sse/passthrough HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
    with gateway.watched() as watch, held(gateway.port, [opening]) as (stream,):
        said = b""
        while b"session_id=" not in said or not said.endswith(b"\r\n\r\n"):
            said += stream.recv(4_096)
        path = said.partition(b"data: ")[2].split()[0].decode()
        for number in range(100):
            method = "tools/call" if number else "initialize"
            params = {"name": "greedy__large", "arguments": {}} if number else info
            body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            with held(gateway.port, [f"{head}Content-Length: {len(body)}\r\n\r\n{body}"]) as (post,):
                status = post.recv(4_096).split()[1]
            if status != b"202":  # the stream is ended
                break
        assert waited_for(gateway, "does not read its stream"), gateway.said
        assert is_closed(stream)
    assert watch.failures == []
    assert watch.growth < 250 * MIB


def test_answers_that_nobody_reads(attacked: Callable[..., Any]) -> None:
    larger = LARGE_RESULTS.replace("3_000_000", "12_000_000")  # more than the system itself keeps
    gateway = attacked({"greedy": larger}, config="[http]\nmax_unread_bytes = 4194304")
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "deaf", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "greedy__large", "arguments": {}, "_meta": envelope}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = (
        "POST /mcp/passthrough HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: greedy__large\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    with gateway.watched() as watch, held(gateway.port, [head] * 12):
        assert waited_for(gateway, "it does not read its answer, and too much waits"), gateway.said
    assert watch.failures == []
    assert watch.growth < 400 * MIB
