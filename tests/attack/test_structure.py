"""Structure instead of size: depth, half characters and odd numbers cost only the one item or answer that has them."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import mcp_types as types
import pytest
from pydantic import AnyUrl, TypeAdapter

from tests.attack.conftest import weighed

ROOT = Path(__file__).parents[2]
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])

ANSWERS = r'''
import json

def nested(depth, kind="["):
    return "[" * depth + "]" * depth if kind == "[" else '{"items": ' * depth + "{}" + "}" * depth

OBJECT = '{"type": "object"}'
DEEP_SCHEMA = '{"type": "object", "properties": {"a": %s}}' % nested(300, "{")
TOOLS = ", ".join([
    '{"name": "deep", "inputSchema": %s}' % DEEP_SCHEMA,
    '{"name": "abyss", "inputSchema": {"type": "object", "properties": {"a": %s}}}' % nested(20000, "{"),
    '{"name": "meta", "inputSchema": %s, "_meta": {"a": %s}}' % (OBJECT, nested(300)),
    '{"name": "annotated", "inputSchema": %s, "annotations": {"a": %s}}' % (OBJECT, nested(110)),
    '{"name": "output", "inputSchema": %s, "outputSchema": %s}' % (OBJECT, DEEP_SCHEMA),
    '{"name": "fine", "description": "half \\ud83d", "inputSchema": %s}' % OBJECT,
    '{"name": %s, "inputSchema": %s}' % (nested(300), OBJECT),
])
FINE = '{"type": "text", "text": "fine"}'
RESULTS = {
    "structured": '{"content": [%s], "structuredContent": {"a": %s}}' % (FINE, nested(300)),
    "pit": '{"content": [%s], "structuredContent": {"a": %s}}' % (FINE, nested(20000)),
    "meta": '{"content": [%s], "_meta": {"a": %s}}' % (FINE, nested(300)),
    "block": '{"content": [{"type": "new", "x": %s}, %s]}' % (nested(300), FINE),
    "annotated": '{"content": [{"type": "text", "text": "fine", "_meta": {"a": %s}}]}' % nested(300),
    "half": '{"content": [{"type": "text", "text": "fine \\ud83d"}]}',
    "digits": '{"content": [%s], "structuredContent": {"n": %s}}' % (FINE, "9" * 5000),
    "infinite": '{"content": [%s], "structuredContent": {"n": 1e400, "m": -1e400, "o": NaN}}' % FINE,
}
RESOURCES = ", ".join([
    '{"uri": "x://deep", "name": "deep", "_meta": {"a": %s}}' % nested(300),
    '{"uri": %s, "name": "lost"}' % nested(300),
    '{"uri": "not a uri", "name": "no uri"}',
    '{"uri": "x://odd", "name": "odd", "annotations": {"audience": ["everybody"], "priority": "high"}, "size": "big"}',
    '{"uri": "x://fine", "name": "fine"}',
])
TEMPLATES = ", ".join([
    '{"uriTemplate": %s, "name": "lost"}' % nested(300),
    '{"uriTemplate": "x://{fine}", "name": "fine", "annotations": {"priority": "high"}}',
])
PROMPTS = ", ".join([
    '{"name": "bad", "arguments": [{"name": "a", "x": %s}]}' % nested(300),
    '{"name": "good"}',
    '{"name": %s}' % nested(300),
])

def respond(message):
    """The text of the JSON-RPC answer to a request."""
    method, params = message["method"], message.get("params") or {}
    name = params.get("name")
    if method == "initialize":
        result = json.dumps({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "experimental": "DEEP"},
            "serverInfo": {"name": "deep", "version": "1"},
        }).replace('"DEEP"', '{"x": %s}' % nested(300))
    elif method == "tools/list":
        names = ['{"name": "%s", "inputSchema": %s}' % (name, OBJECT) for name in (*RESULTS, "error", "progress")
                 if name not in ("meta", "annotated")]
        result = '{"tools": [%s, %s]}' % (TOOLS, ", ".join(names))
    elif method == "resources/list":
        result = '{"resources": [%s]}' % RESOURCES
    elif method == "resources/templates/list":
        result = '{"resourceTemplates": [%s]}' % TEMPLATES
    elif method == "prompts/list":
        result = '{"prompts": [%s]}' % PROMPTS
    elif method == "resources/read":
        fine = '{"uri": "x://fine", "text": "fine", "_meta": {"a": %s}}' % nested(300)
        result = '{"contents": [%s, %s]}' % (fine, nested(300))
    elif method == "completion/complete":
        result = '{"completion": {"values": ["fine", %s]}}' % nested(300)
    elif method == "prompts/get":
        block = '{"type": "text", "text": "fine", "_meta": {"a": %s}}' % nested(300)
        result = '{"messages": [{"role": "user", "content": %s}, %s]}' % (block, nested(300))
    elif name == "error":
        error = '{"code": -32000, "message": "no \\udc00", "data": %s}' % nested(256)
        return '{"jsonrpc": "2.0", "id": %s, "error": %s}' % (json.dumps(message["id"]), error)
    elif method != "tools/call":
        return '{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "no"}}' % json.dumps(message["id"])
    else:
        result = RESULTS.get(name, '{"content": [%s]}' % FINE)
    return '{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(message["id"]), result)
'''

STDIO = (
    ANSWERS
    + """
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if (message.get("params") or {}).get("name") == "progress":
        token = message["params"]["_meta"]["progressToken"]
        for number in ("1e400", "9" * 5000, "9" * 400, '"x"', "NaN", "1"):
            params = '{"progressToken": %s, "progress": %s, "total": %s}' % (json.dumps(token), number, number)
            print('{"jsonrpc": "2.0", "method": "notifications/progress", "params": %s}' % params)
    print(respond(message), flush=True)
"""
)

SLOW = """
import json, sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "begun", "release")]
waiting = []

def say(request, text):
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        server = {"name": "slow", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif method == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": TOOLS}}), flush=True)
    elif params["name"] == "wait":
        waiting.append(message["id"])
    else:
        say(message["id"], f"{params['name']}: {len(waiting)} waiting")
        if params["name"] == "release":
            for request in waiting:
                say(request, "waited")
"""

LISTS = {
    "tools/list": types.ListToolsResult,
    "resources/list": types.ListResourcesResult,
    "resources/templates/list": types.ListResourceTemplatesResult,
    "prompts/list": types.ListPromptsResult,
}
"""The models of a strict client: one item that they refuse costs it the whole list."""

CALLS = ("structured", "pit", "meta", "block", "annotated", "half", "digits", "infinite", "progress")


@contextmanager
def web_server(*, events: bool) -> Iterator[int]:
    """The same server over Streamable HTTP, which answers with JSON bodies or with event streams; its port."""
    scope: dict[str, Any] = {}
    exec(ANSWERS, scope)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer = scope["respond"](message) if "id" in message and "method" in message else None
            if answer is not None and events:
                progress = '{"jsonrpc": "2.0", "method": "notifications/progress", "params": %s}'
                token = message.get("params", {}).get("_meta", {}).get("progressToken", 0)
                odd = progress % f'{{"progressToken": {json.dumps(token)}, "progress": {"9" * 400}}}'
                answer = f"event: message\r\ndata: {odd}\r\n\r\nevent: message\r\ndata: {answer}\r\n\r\n"
            body = (answer or "").encode()
            self.send_response(202 if answer is None else 200)
            self.send_header("content-type", "text/event-stream" if events else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def check_lists(host: Any) -> None:
    tools = host.tools()
    assert {"hostile__fine", "hostile__meta", "hostile__annotated", "hostile__output", "bystander__ping"} <= set(tools)
    assert not {"hostile__deep", "hostile__abyss"} & set(tools)
    assert "a" not in tools["hostile__meta"].get("_meta", {})
    deadline = time.monotonic() + 30  # an upstream may be listed before all of its lists are there
    while "x://fine" not in [each["uri"] for each in host.ask("resources/list")["result"]["resources"]]:
        assert time.monotonic() < deadline
    while not (prompts := [each["name"] for each in host.ask("prompts/list")["result"]["prompts"]]):
        assert time.monotonic() < deadline
    assert prompts[-1].endswith("good")
    assert not any(name.endswith("bad") for name in prompts)
    for method, model in LISTS.items():
        model.model_validate(host.ask(method)["result"])
    uris = [each["uri"] for each in host.ask("resources/list")["result"]["resources"]]
    assert "x://odd" in uris
    TypeAdapter(list[AnyUrl]).validate_python(uris)
    templates = [each["uriTemplate"] for each in host.ask("resources/templates/list")["result"]["resourceTemplates"]]
    assert "x://{fine}" in templates


def check_answers(host: Any, calls: tuple[str, ...] = CALLS) -> None:
    for tool in calls:
        result = host.call(f"hostile__{tool}")
        assert "fine" in json.dumps(result.get("content")), (tool, str(result)[:500])
    assert "left out: nested deeper than" in json.dumps(host.call("hostile__structured"))
    assert host.call("hostile__error")["code"] == -32000
    read = host.ask("resources/read", {"uri": "x://fine"})["result"]
    assert read["contents"][0]["text"] == "fine"
    prompt = host.ask("prompts/get", {"name": "hostile__good"})["result"]
    assert prompt["messages"][0]["content"]["text"] == "fine"
    types.ReadResourceResult.model_validate(read)
    types.GetPromptResult.model_validate(prompt)
    ref = {"type": "ref/prompt", "name": "hostile__good"}
    asked = {"ref": ref, "argument": {"name": "a", "value": ""}}
    types.CompleteResult.model_validate(host.ask("completion/complete", asked)["result"])


@ERAS
def test_depth_and_odd_values_of_a_stdio_upstream_cost_only_what_has_them(attacked: Any, modern: bool) -> None:
    gateway = attacked({"hostile": STDIO})
    with gateway.watched() as others:
        for name in ("claude-code", "inspector"):
            host = gateway.client(name, modern=modern)
            check_lists(host)
            check_answers(host)
            host.close()
    assert not others.failures
    said = "".join(gateway.said)
    assert "'deep' withheld: it nests deeper than 100 levels" in said
    assert "withheld: it nests deeper than 100 levels" in next(
        line for line in said.splitlines() if "tool number" in line
    )
    assert "tools/call 'structured': structuredContent left out: nested deeper than 100 levels" in said


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
def test_depth_and_odd_values_of_an_http_upstream_cost_only_what_has_them(attacked: Any, events: bool) -> None:
    with web_server(events=events) as port:
        gateway = attacked({}, f'[upstreams.hostile]\nurl = "http://127.0.0.1:{port}/mcp"\ntransport = "http"\n')
        with gateway.watched() as others:
            host = gateway.client("claude-code")
            check_lists(host)
            check_answers(host)
            host.close()
        assert not others.failures


@ERAS
def test_a_host_that_nests_its_arguments_is_refused_and_answered(attacked: Any, modern: bool) -> None:
    gateway = attacked({"hostile": STDIO})
    host = gateway.client("claude-code", modern=modern)
    for depth in (120, 190, 500, 5_000):
        arguments = json.loads("[" * min(depth, 900) + "]" * min(depth, 900))
        with gateway.watched(f"{depth} deep") as others:
            answer = host.ask("tools/call", {"name": "hostile__fine", "arguments": {"a": arguments}})
            assert "error" in answer
            assert "fine" in json.dumps(host.call("hostile__fine"))
        assert not others.failures
    host.close()


def test_a_second_request_of_the_same_id_is_refused_and_the_first_is_answered(attacked: Any) -> None:
    gateway = attacked({"slow": SLOW})
    host = gateway.client("claude-code")
    again = gateway.client("claude-code", modern=True)  # another connection, of the same session
    again.modern, again.session = False, host.session
    answers: list[dict[str, Any]] = []
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "slow__wait", "arguments": {}}}
    first = threading.Thread(target=lambda: answers.append({"text": host.send(message)[1]}))
    with gateway.watched() as others:
        first.start()
        begun = {"name": "slow__begun", "arguments": {}}
        while "1 waiting" not in again.send({**message, "id": f"begun {time.monotonic()}", "params": begun})[1]:
            time.sleep(0.05)
        status, text = again.send({**message, "params": begun})
        assert (status, json.loads(text)["id"]) == (400, 77)
        assert again.send({**message, "id": 78, "params": {"name": "slow__release", "arguments": {}}})[0] == 200
        first.join(30)
    assert "waited" in answers[0]["text"]
    assert not others.failures
    host.close()
    again.close()


class StdioHost:
    """A host that speaks raw lines to a gateway that it started."""

    OPENING: ClassVar[dict[str, Any]] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "version": "1"},
    }

    def __init__(self, tmp_path: Path) -> None:
        (tmp_path / "hostile.py").write_text(STDIO, "utf-8")
        config = tmp_path / "mcp-gateway.toml"
        args = json.dumps([str(tmp_path / "hostile.py")])
        config.write_text(f"[upstreams.hostile]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n", "utf-8")
        self.longest = 0.0
        """The longest wait for an answer so far, in seconds."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MCP_GATEWAY_CACHE": "", "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, request_id: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        began = time.monotonic()
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == request_id and "method" not in message:
                self.longest = max(self.longest, time.monotonic() - began)
                return message
        raise AssertionError(f"the gateway ended with {self.process.wait(10)}")

    def ask(self, request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
        self.say(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}))
        return self.answer(request_id)

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()


def say_odd_things(host: StdioHost, beside: dict[str, Any]) -> None:
    """Half characters, deep arguments and odd numbers, each of which is answered; `beside` is in all params."""
    half = "\ud800"
    assert host.ask(2, "resources/read", {"uri": f"x://{half}", **beside})
    assert "error" in host.ask(3, f"what/{half}", beside)
    assert "error" in host.ask(4, "tools/call", {"name": half, "arguments": {half: half}, **beside})
    assert "result" in host.ask(half, "tools/list", beside)
    assert "error" in host.ask(f"{half}2", half, beside)
    assert "error" in host.ask(5, "tools/call", {"name": "hostile__error", **beside})
    for number, tool in enumerate(CALLS, 10):
        assert "fine" in json.dumps(host.ask(number, "tools/call", {"name": f"hostile__{tool}", **beside}))
    fine = {"name": "hostile__fine", **beside}
    said = json.dumps(fine | {"arguments": {"a": "HERE"}})
    for number, odd in enumerate(("[" * 300 + "]" * 300, "[" * 5_000 + "]" * 5_000), 30):
        params = said.replace('"HERE"', odd)
        host.say(f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {params}}}')
        assert "100 levels" in host.answer(number)["error"]["message"]
    for number, odd in enumerate(("9" * 5_000, "1e400", "NaN", '"\\udc00"'), 40):
        params = said.replace('"HERE"', odd)
        host.say(f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {params}}}')
        assert "fine" in json.dumps(host.answer(number))


@ERAS
def test_a_stdio_host_is_answered_whatever_it_or_an_upstream_says(tmp_path: Path, modern: bool) -> None:
    host = StdioHost(tmp_path)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    beside: dict[str, Any] = {"_meta": meta} if modern else {}
    try:
        if not modern:
            assert "result" in host.ask(0, "initialize", StdioHost.OPENING)
            host.say('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        names: list[str] = []
        for number in range(100, 700):  # a list does not wait for ever for a server that starts slowly
            names = [tool["name"] for tool in host.ask(number, "tools/list", beside)["result"]["tools"]]
            if "hostile__fine" in names:
                break
            time.sleep(0.1)
        assert "hostile__fine" in names
        assert "hostile__deep" not in names
        host.longest = 0.0
        with weighed(host.process) as memory:
            say_odd_things(host, beside)
    finally:
        code = host.close()
    era = "modern" if modern else "handshake"
    print(f"attack by the only host on stdio ({era}): no others; it waited {host.longest:.2f} s at most; {memory}")
    assert code == 0
    assert host.longest < 5
    assert memory.growth < 100 * 2**20
