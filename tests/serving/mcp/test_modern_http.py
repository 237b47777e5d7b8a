"""Requests of 2026-07-28 over HTTP, answered beside the SDK's own entry over the same server: the same answers."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import mcp.server._streamable_http_modern as modern_of_sdk
import pytest
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.config.http_settings import HttpSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_shape import DEEPEST
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.modern_http import ModernEndpoint
from gateway.serving.mcp.security import allowed_by, for_sdk
from tests.servers.downstream_service import TOOLS, SampleService

pytestmark = pytest.mark.anyio

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META: dict[str, Any] = {
    VERSION: "2026-07-28",
    CAPABILITIES: {},
    "io.modelcontextprotocol/clientInfo": {"name": "Tester", "version": "9"},
}
MOST_BYTES = 10_000
REGION: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "other": {"type": "string"}},
}
MATTERING = ("content-type", "cache-control", "connection", "x-accel-buffering", "allow")


class Service(SampleService):
    """Adds tools for what only HTTP has: a header for an argument, logs, and calls that are let go by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.go = anyio.Event()

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        return REGION if name == "region" else super().header_schema(name, caller)

    async def respond(self, method: str, params: Mapping[str, Any], caller: Any, **others: Any) -> dict[str, Any]:
        match params.get("name") if method == "tools/call" else None:
            case "region" | "nothing":
                return {"content": [{"type": "text", "text": params["name"], "gone": None}], "structuredContent": None}
            case "log":
                for level in ("debug", "error"):
                    await others["host"].tell(
                        "notifications/message", {"level": level, "data": "a \u2028 line", "x": None}
                    )
                return {"content": []}
            case "fail late":
                await others["on_progress"](1.0)
                raise RuntimeError("secret detail")
            case "held":
                await self.go.wait()
                return {"content": []}
            case _:
                return await super().respond(method, params, caller, **others)


@dataclass
class Sent:
    """A request as a server gets it. `body` is sent as it is if it is bytes, and as JSON if not."""

    name: str
    body: Any = None
    headers: dict[str, str | None] = field(default_factory=dict)
    """Changes of the headers that the request should have; None leaves one out."""
    more: list[tuple[str, str]] = field(default_factory=list)
    method: str = "POST"
    pieces: int = 1

    @property
    def bytes(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def scope(self) -> Scope:
        headers: dict[str, str | None] = {
            "host": "127.0.0.1:8000",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            **self._routing(),
            **self.headers,
        }
        lines = [*((name, value) for name, value in headers.items() if value is not None), *self.more]
        return {
            "type": "http",
            "http_version": "1.1",
            "method": self.method,
            "path": "/mcp",
            "query_string": b"",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in lines],
        }

    def _routing(self) -> dict[str, str | None]:
        try:
            message = json.loads(self.bytes)
            params = message.get("params") or {}
            named = params.get("name", params.get("uri"))
            values = {"mcp-method": message.get("method"), "mcp-name": named}
            return {name: value for name, value in values.items() if isinstance(value, str)}
        except (ValueError, AttributeError, RecursionError):
            return {}


def call(name: Any = "echo", arguments: Any = None, *, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "_meta": {**META, **meta}}
    if arguments is not None:
        params["arguments"] = arguments
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": {**params, "_meta": META}}


def without(key: str) -> dict[str, Any]:
    return {**call(), "params": {"name": "echo", "_meta": {name: value for name, value in META.items() if name != key}}}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


OURS = [
    Sent("call", call()),
    Sent("call with arguments", call("echo", {"a": [1, None, "ü \u2028", {"b": True}]})),
    Sent("text id", call(request_id="")),
    Sent("large id", call(request_id=2**60)),
    Sent("list", request("tools/list")),
    Sent("resources", request("resources/list")),
    Sent("templates", request("resources/templates/list")),
    Sent("read", request("resources/read", uri="note://one")),
    Sent("unknown resource", request("resources/read", uri="note://two")),
    Sent("unserved", request("prompts/list")),
    Sent("task", request("tasks/get", taskId="1")),
    Sent("strange", call("strange")),
    Sent("list value", call("list-value")),
    Sent("null inside", call("nothing")),
    Sent("half a surrogate in the result", call("broken")),
    Sent("large", call("big", {"size": 300_000})),
    Sent("unknown tool", call("none")),
    Sent("timeout", call("fail", {"how": "timeout"})),
    Sent("refused", call("fail", {"how": "refused"})),
    Sent("expired", call("fail", {"how": "expired"})),
    Sent("bug", call("fail", {"how": "bug"})),
    Sent("no name", {**call(), "params": {"_meta": META}}),
    Sent("arguments are a list", call("echo", [1])),
    Sent("cursor is a number", request("tools/list", cursor=1)),
    Sent("progress", call("count", progressToken="t")),
    Sent("progress with a number as token", call("count", progressToken=7)),
    Sent("progress that nobody wants", call("count")),
    Sent("log", call("log", **{"io.modelcontextprotocol/logLevel": "info"})),
    Sent("log that nobody wants", call("log")),
    Sent("failure after progress", call("fail late", progressToken="t")),
    Sent("any type accepted", call(), {"accept": "*/*"}),
    Sent("types with parameters", call(), {"accept": "text/*;q=0.5, application/*"}),
    Sent("charset", call(), {"content-type": "application/json; charset=utf-8"}),
    Sent("name in base64", call("echo"), {"mcp-name": "=?base64?ZWNobw==?="}),
    Sent("origin", call(), {"origin": "http://localhost:3000"}),
    Sent("argument in a header", call("region", {"region": "eu"}), {"mcp-param-region": "eu"}),
    Sent("unknown argument header", call("echo", {"a": 1}), {"mcp-param-a": "2"}),
    Sent("argument header without its argument", call("region"), {"mcp-param-other": "eu"}),
    Sent("in pieces", call("echo", {"a": "x" * 5_000}), pieces=7),
    Sent("no client info", without("io.modelcontextprotocol/clientInfo")),
    Sent("capabilities of another type", call(**{CAPABILITIES: 5})),
    Sent("infinite by its exponent", json.dumps(call("echo", {"a": 0})).replace(": 0}", ": 1e999}").encode()),
    Sent("nested deeply", call("echo", {"a": deep(DEEPEST - 10)})),
    Sent("nested too deeply", call("echo", {"a": deep(DEEPEST + 10)})),
    Sent("the same member twice", b'{"id": 0, ' + json.dumps(call()).encode()[1:]),
    Sent("NaN", call("echo", {"a": float("nan"), "b": float("-inf")})),
    Sent("length that is not a number", call(), {"content-length": "some"}),
    Sent("other members", {**call(), "result": {}, "x": 1}),
]
"""Requests that are answered by the gateway itself."""

OF_THE_SDK = [
    Sent("GET", method="GET"),
    Sent("DELETE", method="DELETE"),
    Sent("nothing", b""),
    Sent("name is a number", call(5)),
    Sent("not JSON", b"{"),
    Sent("not UTF-8", json.dumps(call("echo", {"a": "?"})).encode().replace(b"?", b"\xff")),
    Sent("half a surrogate", call("echo", {"a": "\ud83d"})),
    Sent("digits", json.dumps(call("echo", {"a": 0})).replace(": 0}", f": {'9' * 5_000}}}").encode()),
    Sent("UTF-16", json.dumps(call()).encode("utf-16"), {"mcp-method": "tools/call", "mcp-name": "echo"}),
    Sent("byte order mark", b"\xef\xbb\xbf" + json.dumps(call()).encode()),
    Sent("nested beyond any parser", b'{"a":' + b"[" * 4_000 + b"]" * 4_000 + b"}"),
    Sent("batch", [call(), call()]),
    Sent("empty batch", []),
    Sent("number", 5),
    Sent("response", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    Sent("notification", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    Sent("malformed notification", {"jsonrpc": "2.0", "method": 5}),
    Sent("id is null", call(request_id=None)),
    Sent("id is true", call(request_id=True)),
    Sent("id is a fraction", call(request_id=1.5)),
    Sent("id is an object", call(request_id={})),
    Sent("no version of JSON-RPC", {key: value for key, value in call().items() if key != "jsonrpc"}),
    Sent("another version of JSON-RPC", {**call(), "jsonrpc": "1.0"}),
    Sent("method is a number", {**call(), "method": 5}, {"mcp-method": "5"}),
    Sent("no params", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    Sent("params are a list", {**call(), "params": []}),
    Sent("no meta", {**call(), "params": {"name": "echo"}}),
    Sent("meta is a list", {**call(), "params": {"name": "echo", "_meta": []}}),
    Sent("no revision in the meta", without(VERSION)),
    Sent("no capabilities", without(CAPABILITIES)),
    Sent("discover", request("server/discover")),
    Sent("ping", request("ping")),
    Sent("unknown method", request("tools/guess")),
    Sent("initialize", request("initialize")),
    Sent("unknown revision", call(**{VERSION: "2099-01-01"}), {"mcp-protocol-version": "2099-01-01"}),
    Sent("notification of an unknown revision", {"jsonrpc": "2.0", "method": "x"}, {"mcp-protocol-version": "2099"}),
    Sent("another revision in the header", call(**{VERSION: "2099-01-01"})),
    Sent("revision is a number", call(**{VERSION: 5})),
    Sent("no method header", call(), {"mcp-method": None}),
    Sent("another method header", call(), {"mcp-method": "tools/list"}),
    Sent("method header in capitals", call(), {"mcp-method": "TOOLS/CALL"}),
    Sent("no name header", call(), {"mcp-name": None}),
    Sent("another name header", call(), {"mcp-name": "wait"}),
    Sent("name header that is not base64", call(), {"mcp-name": "=?base64?*?="}),
    *(Sent(f"{name} twice", call(), more=[(name, value)]) for name, value in (
        ("mcp-method", "tools/call"), ("mcp-name", "echo"), ("mcp-protocol-version", "2026-07-28"))),
    Sent("no argument header", call("region", {"region": "eu"})),
    Sent("another argument header", call("region", {"region": "eu"}), {"mcp-param-region": "us"}),
    Sent("argument header twice", call("region", {"region": "eu"}), {"mcp-param-region": "eu"},
         more=[("mcp-param-region", "us")]),
    Sent("only the header of an argument", call("region"), {"mcp-param-region": "eu"}),
    Sent("nothing accepted", call(), {"accept": None}),
    Sent("only JSON accepted", call(), {"accept": "application/json"}),
    Sent("only events accepted", call(), {"accept": "text/event-stream"}),
    Sent("something else accepted", call(), {"accept": "text/html"}),
    Sent("no content type", call(), {"content-type": None}),
    Sent("another content type", call(), {"content-type": "text/plain"}),
    Sent("a page's form", call(), {"content-type": "multipart/form-data"}),
    Sent("foreign host", call(), {"host": "evil.example"}),
    Sent("no host", call(), {"host": None}),
    Sent("foreign origin", call(), {"origin": "http://evil.example"}),
    Sent("no origin at all", call(), {"origin": "null"}),
    Sent("too large", call("echo", {"a": "x" * MOST_BYTES})),
    Sent("too large in pieces", call("echo", {"a": "x" * MOST_BYTES}), pieces=9),
    Sent("declared too large", call(), {"content-length": str(MOST_BYTES + 1)}),
]  # fmt: skip
"""Requests that the SDK answers; most of them it refuses."""


@dataclass
class Got:
    """What a host gets: the messages in the body, whether they came as JSON or as events."""

    status: int
    headers: dict[str, str]
    messages: list[Any]


class Exchange:
    """One request and its answer, as an ASGI server has them."""

    def __init__(self, sent: Sent) -> None:
        self.scope = sent.scope()
        size = -(-len(sent.bytes) // sent.pieces) or 1
        parts = [sent.bytes[at : at + size] for at in range(0, len(sent.bytes), size)] or [b""]
        self._body: list[Message] = [
            {"type": "http.request", "body": part, "more_body": at < len(parts) - 1} for at, part in enumerate(parts)
        ]
        self.messages: list[Message] = []
        self.gone = anyio.Event()
        self._said = anyio.Event()

    async def receive(self) -> Message:
        if self._body:
            return self._body.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await anyio.lowlevel.checkpoint()
        self.messages.append(message)
        self._said.set()
        self._said = anyio.Event()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._said.wait()

    def break_off(self) -> None:
        """Disconnect before the last piece of the body."""
        self._body.pop()
        self.gone.set()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    def got(self) -> Got:
        start = self.messages[0]
        assert [message["type"] for message in self.messages[1:]] == ["http.response.body"] * (len(self.messages) - 1)
        assert [message.get("more_body", False) for message in self.messages[1:]].count(False) == 1
        assert not self.messages[-1].get("more_body", False)
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        if "content-length" in headers:
            assert int(headers["content-length"]) == len(self.body)
        kind = headers.get("content-type", "")
        return Got(
            start["status"],
            {name: headers[name] for name in MATTERING if name in headers},
            events_in(self.body) if kind == "text/event-stream" else [read(self.body, kind)],
        )


def read(body: bytes, kind: str) -> Any:
    return json.loads(body, parse_constant=str) if kind == "application/json" else body


def events_in(body: bytes) -> list[Any]:
    """The messages of an event stream, with comments as text; split as the most careless hosts do."""
    messages: list[Any] = []
    for event in body.decode().removesuffix("\r\n\r\n").split("\r\n\r\n"):
        if event.startswith(":"):
            messages.append(event)
        else:
            kind, data = event.splitlines()
            assert kind == "event: message"
            messages.append(json.loads(data.removeprefix("data: ")))
    return messages


class Served:
    """The two entries over one server. `asked_sdk` is whether ours has passed the last request on to the SDK's."""

    def __init__(self, service: Service, ping_seconds: float) -> None:
        security = for_sdk(allowed_by(HttpSettings()))
        self.downstream = downstream = Downstream(service, Identity("sample", "1.0"))
        self.asked_sdk = False

        async def entry(scope: Scope, receive: Receive, send: Send) -> None:
            await modern_of_sdk.handle_modern_request(downstream.server, security, False, None, scope, receive, send)

        async def passed_on(scope: Scope, receive: Receive, send: Send) -> None:
            self.asked_sdk = True
            await self.sdk(scope, receive, send)

        self.sdk: ASGIApp = RequestBodyLimitMiddleware(entry, MOST_BYTES)
        self.ours: ASGIApp = ModernEndpoint(downstream, security, MOST_BYTES, passed_on, ping_seconds=ping_seconds)
        # The SDK's entry alone does not know whose request it is; it has the schema all the same.
        downstream.server.get_tool_input_schema = lambda name: service.header_schema(name, Caller)


@asynccontextmanager
async def served(ping_seconds: float = 60.0) -> AsyncGenerator[tuple[Service, Served]]:
    service = Service()
    both = Served(service, ping_seconds)
    with anyio.fail_after(30):
        async with both.downstream.running():
            yield service, both


async def answer(app: ASGIApp, sent: Sent) -> Got:
    exchange = Exchange(sent)
    await app(exchange.scope, exchange.receive, exchange.send)
    return exchange.got()


def comparable(got: Got) -> Got:
    """The answer without the ids by which errors are found in the log."""
    for message in got.messages:
        if isinstance(message, dict) and "requestId" in ((message.get("error") or {}).get("data") or {}):
            message["error"]["data"] = "an id"
    return got


@pytest.mark.parametrize("sent", [*OURS, *OF_THE_SDK], ids=lambda sent: sent.name)
async def test_a_request_is_answered_as_the_sdk_answers_it(sent: Sent) -> None:
    async with served() as (_, both):
        theirs = comparable(await answer(both.sdk, sent))
        ours = comparable(await answer(both.ours, sent))
        assert both.asked_sdk == (sent in OF_THE_SDK)
    assert ours == theirs


async def test_a_list_that_was_written_before_is_the_same() -> None:
    listing = Sent("list", request("tools/list"))
    async with served() as (service, both):
        answers = [await answer(app, listing) for app in (both.ours, both.ours, both.sdk, both.ours)]
        assert all(each == answers[0] for each in answers)
        assert answers[0].messages[0]["result"]["tools"] == TOOLS
        service.change("tools")
        assert await answer(both.ours, listing) == answers[0]


@pytest.mark.parametrize("entry", ["sdk", "ours"])
async def test_a_silent_call_becomes_a_stream_with_comments(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modern_of_sdk, "_SSE_PING_INTERVAL", 0.01)
    async with served(ping_seconds=0.01) as (service, both), anyio.create_task_group() as tasks:
        exchange = Exchange(Sent("held", call("held")))
        tasks.start_soon(getattr(both, entry), exchange.scope, exchange.receive, exchange.send)
        await exchange.wait_for(lambda: exchange.body.count(b": ping") >= 3)
        service.go.set()
    got = exchange.got()
    assert got.status == 200
    assert got.headers["content-type"] == "text/event-stream"
    assert set(map(str, got.messages[:-1])) == {": ping"}
    assert got.messages[-1]["result"]["content"] == []


@pytest.mark.parametrize("entry", ["sdk", "ours"])
async def test_a_host_that_disconnects_cancels_its_call(entry: str) -> None:
    async with served() as (service, both), anyio.create_task_group() as tasks:
        exchange = Exchange(Sent("wait", call("wait")))
        tasks.start_soon(getattr(both, entry), exchange.scope, exchange.receive, exchange.send)
        await service.saw("waiting")
        exchange.gone.set()
        await service.saw("cancelled")
    assert exchange.messages == []


async def test_a_host_that_disconnects_within_its_body_is_not_served() -> None:
    """The one difference: the SDK raises an error, which the HTTP server logs with a traceback."""
    async with served() as (service, both):
        for app, expected in ((both.sdk, pytest.raises(ClientDisconnect)), (both.ours, nullcontext())):
            exchange = Exchange(Sent("wait", call("wait"), pieces=2))
            exchange.break_off()
            with expected:
                await app(exchange.scope, exchange.receive, exchange.send)
            assert exchange.messages == []
        assert service.events == []


async def test_what_comes_after_the_answer_is_dropped() -> None:
    """An upstream may go on to talk when its result is there already."""
    channel: list[Any] = []

    class Talkative(Service):
        async def respond(self, method: str, params: Mapping[str, Any], caller: Any, **others: Any) -> dict[str, Any]:
            channel.append(others["host"])
            return await super().respond(method, params, caller, **others)

    both = Served(Talkative(), 60.0)
    sent = Sent("log", call(**{"io.modelcontextprotocol/logLevel": "debug"}))
    exchange = Exchange(sent)
    await both.ours(exchange.scope, exchange.receive, exchange.send)
    before = exchange.got()
    await channel[0].tell("notifications/message", {"level": "error", "data": "late"})
    assert exchange.got() == before
