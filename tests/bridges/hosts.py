"""Hosts that speak raw JSON-RPC, of either era and over every transport. They keep everything that they get.

A host waits in the test's own thread, and never longer than it is told to; what comes is read by threads of its own.
What it is asked, it answers from `answers`: a server's request in the handshake era, an `input_required` result in the
modern one.
"""

import base64
import http.client
import itertools
import json
import os
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
PATIENCE = 60.0
ROUNDS = 30

CAPABILITIES = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
}

PERSON = {"action": "accept", "content": {"name": "Änne ☃", "age": 41}}
ROOTS = {"roots": [{"uri": "file:///home/änne", "name": "Home", "_meta": {"example.org/root": 1}}]}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "a pixel ☃", "_meta": {"example.org/said": True}},
    "model": "claude-sonnet-9-20270101",
    "stopReason": "endTurn",
}

NEVER = object()
"""An answer that never comes."""

LIST_FIELDS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}


class Refused(Exception):
    """A JSON-RPC error: as an answer that a host gets, and as one that it gives."""

    def __init__(self, code: int, message: str, data: Any = None, status: int | None = None) -> None:
        super().__init__(f"{code}: {message} {data!r}")
        self.code, self.message, self.data, self.status = code, message, data, status


class Lost(Exception):
    """No answer came: in time, or because the connection ended."""


class StdioWire:
    """A server that the host has started itself."""

    def __init__(self, command: list[str], *, env: dict[str, str] | None = None, stderr: Any = None) -> None:
        self._command, self._env, self._stderr = command, env, stderr

    def open(self, host: "Host") -> None:
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr or subprocess.DEVNULL,
            env={**os.environ, **(self._env or {})},
        )
        self._thread = start(self._read, host)

    def initialized(self, host: "Host") -> None:
        pass

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            self._process.stdin.flush()

    def cancel(self, request_id: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(10)

    def _read(self, host: "Host") -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                host.deliver(json.loads(line), "stdio")
        host.lost()


class HttpWire:
    """Streamable HTTP of both eras: every message a POST."""

    def __init__(self, url: str, headers: dict[str, str] | None = None, *, standing: bool = True) -> None:
        self.url = url
        self.headers = headers or {}
        self.overrides: dict[str, str] = {}
        """Headers that take the place of the right ones."""
        self._standing = standing
        self._sockets: dict[Any, socket.socket] = {}

    def open(self, host: "Host") -> None:
        self._host = host
        self._session: dict[str, str] = {}
        self._threads: list[threading.Thread] = []

    def initialized(self, host: "Host") -> None:
        if host.era == "handshake" and self._standing:
            opened = threading.Event()
            self._threads.append(start(self._exchange, "GET", None, "standing", opened))
            assert opened.wait(PATIENCE)

    def send(self, message: dict[str, Any]) -> None:
        if "id" in message and "method" in message:
            self._threads.append(start(self._exchange, "POST", message, f"call {message['id']}", None))
        else:
            self._exchange("POST", message, "beside", None)

    def cancel(self, request_id: Any) -> None:
        """Closing the stream is what cancels in the modern era; earlier it takes a message."""
        if self._host.era == "handshake":
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
            self.send(note)
        else:
            self.hang_up(f"call {request_id}")

    def hang_up(self, stream: str) -> None:
        with suppress(OSError, KeyError):
            self._sockets[stream].shutdown(socket.SHUT_RDWR)

    def close(self, *, goodbye: bool = True) -> None:
        if self._session and goodbye:
            with suppress(OSError, http.client.HTTPException):
                self._exchange("DELETE", None, "goodbye", None)
        for stream in list(self._sockets):
            self.hang_up(stream)
        for thread in self._threads:
            thread.join(10)

    def _headers(self, message: dict[str, Any] | None) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", **self.headers, **self._session}
        if message is not None:
            headers["content-type"] = "application/json"
        if self._host.era == "modern" and message is not None:
            headers |= modern_headers(message)
        elif self._host.agreed is not None:
            headers["mcp-protocol-version"] = self._host.agreed
        return {name: value for name, value in (headers | self.overrides).items() if value is not None}

    def _exchange(self, verb: str, message: dict[str, Any] | None, stream: str, opened: threading.Event | None) -> None:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        response = connected = None
        try:
            connection.connect()
            connected = self._sockets[stream] = connection.sock
            body = None if message is None else json.dumps(message, ensure_ascii=False).encode()
            connection.request(verb, parts.path, body, self._headers(message))
            response = connection.getresponse()
            if message is not None and message.get("method") == "initialize":
                session = response.headers.get("mcp-session-id")
                self._session = {"mcp-session-id": session} if session else {}
            if opened is not None:
                connected.settimeout(None)  # it is silent for as long as there is no news
                opened.set()
            self._take(response, message, stream)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # the other side hung up, or this one did: what is missing then is reported below
        finally:
            if opened is not None:
                opened.set()
            if self._sockets.get(stream) is connected:  # or the host has opened the stream again
                self._sockets.pop(stream, None)
            if response is not None:
                response.close()
            connection.close()
            if message is not None and "id" in message and "method" in message:
                self._host.ended(message["id"])

    def _take(self, response: http.client.HTTPResponse, message: dict[str, Any] | None, stream: str) -> None:
        request_id = None if message is None else message.get("id")
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            for event in events(response):
                if event["data"]:
                    self._host.deliver(json.loads(event["data"]), stream, response.status)
            return
        body = response.read()
        if not kind.startswith("application/json") or message is None or "method" not in message:
            if request_id is not None and response.status >= 400:
                error = {"code": -response.status, "message": body.decode(errors="replace")}
                self._host.deliver({"id": request_id, "error": error}, stream, response.status)
            return
        answer = json.loads(body)
        if "error" in answer and answer.get("id") is None:
            answer["id"] = request_id  # a refusal of the transport, which has not read the message
        if request_id is not None:
            self._host.deliver(answer, stream, response.status)


class SseWire(HttpWire):
    """HTTP+SSE of 2024-11-05: one stream for everything that comes, POSTs beside it."""

    def open(self, host: "Host") -> None:
        super().open(host)
        self._endpoint: queue.Queue[str] = queue.Queue()
        self._stream_url = self.url
        self._threads.append(start(self._listen))
        parts = urlsplit(self._stream_url)
        self.url = f"{parts.scheme}://{parts.netloc}{self._endpoint.get(timeout=PATIENCE)}"

    def initialized(self, host: "Host") -> None:
        pass

    def send(self, message: dict[str, Any]) -> None:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            body = json.dumps(message, ensure_ascii=False).encode()
            connection.request("POST", target, body, {"content-type": "application/json", **self.headers})
            response = connection.getresponse()
            said = response.read()
            if response.status >= 400 and "id" in message:
                error = {"code": -response.status, "message": said.decode(errors="replace")}
                self._host.deliver({"id": message["id"], "error": error}, "refusal", response.status)
        finally:
            connection.close()

    def _listen(self) -> None:
        parts = urlsplit(self._stream_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        response = None
        try:
            connection.connect()
            self._sockets["stream"] = connection.sock
            connection.request("GET", parts.path, None, {"accept": "text/event-stream", **self.headers})
            response = connection.getresponse()
            self._sockets["stream"].settimeout(None)
            for event in events(response):
                if event["event"] == "endpoint":
                    found = urlsplit(event["data"])
                    self._endpoint.put(f"{found.path}?{found.query}")
                else:
                    self._host.deliver(json.loads(event["data"]), "stream")
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # hung up, by one side or the other
        finally:
            self._sockets.pop("stream", None)
            if response is not None:
                response.close()
            connection.close()
            self._host.lost()


class Exchange:
    """One request under way. `beside` keeps the notifications of its stream; on stdio and SSE, its progress."""

    def __init__(self, host: "Host", request_id: Any, token: Any) -> None:
        self.id, self.token = request_id, token
        self._host = host
        self._answer: queue.Queue[tuple[dict[str, Any] | None, int | None]] = queue.Queue()

    def put(self, message: dict[str, Any] | None, status: int | None = None) -> None:
        self._answer.put((message, status))

    def wait(self, seconds: float = PATIENCE) -> dict[str, Any]:
        """Its result. Raises Refused with the error, Lost when none came."""
        try:
            message, status = self._answer.get(timeout=seconds)
        except queue.Empty:
            self._host.in_trouble = True
            raise Lost(f"no answer to request {self.id} within {seconds} s") from None
        if message is None:
            raise Lost(f"the connection ended before request {self.id} was answered")
        if "error" in message:
            error = message["error"]
            raise Refused(error["code"], error["message"], error.get("data"), status)
        return message["result"]

    def cancel(self) -> None:
        self._host.wire.cancel(self.id)

    @property
    def progress(self) -> list[dict[str, Any]]:
        told = self._host.told("notifications/progress")
        return [
            {k: v for k, v in one.items() if k != "progressToken"} for one in told if one["progressToken"] == self.token
        ]


class Host:
    """A host over a wire. `era` is what it speaks; `revision` what it asks for in the handshake."""

    def __init__(
        self,
        wire: StdioWire | HttpWire,
        era: str,
        *,
        revision: str = "2025-11-25",
        name: str = "bridge-host",
        capabilities: dict[str, Any] | None = None,
        answers: dict[str, Any] | None = None,
    ) -> None:
        self.wire, self.era, self.revision = wire, era, MODERN if era == "modern" else revision
        self.info = {"name": name, "version": "9.1", "title": "A host"}
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self.answers: dict[str, Any] = {
            "elicitation/create": lambda params: {"action": "accept"} if params.get("mode") == "url" else PERSON,
            "sampling/createMessage": lambda params: SAMPLED,
            "roots/list": lambda params: ROOTS,
            "ping": lambda params: {},
        } | (answers or {})
        self.heard: list[tuple[dict[str, Any], str]] = []
        """Everything that came, with the stream that it came on."""
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        """What it was asked: method, params, and the stream of it."""
        self.agreed: str | None = None
        self.server: dict[str, Any] = {}
        self.in_trouble = False
        self._ids = itertools.count(1)
        self._exchanges: dict[Any, Exchange] = {}
        self._news = threading.Condition()
        self._log_level: str | None = None
        self._listening: Exchange | None = None

    # --------------------------------------------------------------------------------------------- being connected

    def open(self) -> "Host":
        self.wire.open(self)
        if self.era == "modern":
            self.server = self.request("server/discover")
            return self
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": self.info}
        self.server = self.request("initialize", params)
        self.agreed = self.server["protocolVersion"]
        self.notify("notifications/initialized")
        self.wire.initialized(self)
        return self

    def close(self) -> None:
        self.wire.close()

    def __enter__(self) -> "Host":
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def deliver(self, message: dict[str, Any], stream: str, status: int | None = None) -> None:
        with self._news:
            self.heard.append((message, stream))
            if "method" in message and "id" in message:
                self.asked.append((message["method"], message.get("params") or {}, stream))
            self._news.notify_all()
        if "method" not in message:
            exchange = self._exchanges.get(message.get("id"))
            if exchange is not None:
                exchange.put(message, status)
        elif "id" in message:
            start(self._answer, message)

    def ended(self, request_id: Any) -> None:
        """The stream of a request has ended: no answer comes any more."""
        self._exchanges[request_id].put(None)

    def lost(self) -> None:
        for exchange in list(self._exchanges.values()):
            exchange.put(None)
        self.in_trouble = True

    # ------------------------------------------------------------------------------------------------------- asking

    def once(
        self, method: str, params: dict[str, Any] | None = None, *, meta: dict[str, Any] | None = None
    ) -> Exchange:
        """Send one request, and answer nothing that its result may ask."""
        request_id = f"{self.info['name']}-{next(self._ids)}"
        token = f"token {request_id}"
        exchange = self._exchanges[request_id] = Exchange(self, request_id, token)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        sent = {"progressToken": token, **(self._envelope() if self.era == "modern" else {}), **(meta or {})}
        if method == "initialize":
            sent = {}
        params = dict(params or {}) | ({"_meta": sent} if sent else {})
        self.wire.send(message | ({"params": params} if params else {}))
        return exchange

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        meta: dict[str, Any] | None = None,
        seconds: float = PATIENCE,
    ) -> dict[str, Any]:
        """The final result: in the modern era, what it asks for is answered, round by round."""
        params = dict(params or {})
        for _ in range(ROUNDS):
            result = self.once(method, params, meta=meta).wait(seconds)
            if result.get("resultType") != "input_required":
                return result
            params = self.retried(params, result)
        raise Lost(f"{method} asked {ROUNDS} times and more")

    def retried(self, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """The params of the next try: with what an `input_required` result has asked for."""
        responses = {}
        for key, question in result["inputRequests"].items():
            with self._news:
                self.asked.append((question["method"], question.get("params") or {}, "result"))
                self._news.notify_all()
            responses[key] = self.answers[question["method"]](question.get("params") or {})
        rest = {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return rest | {"inputResponses": responses} | state

    def call(self, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments}, meta=meta)

    def begin(self, tool: str, /, **arguments: Any) -> Exchange:
        return self.once("tools/call", {"name": tool, "arguments": arguments})

    def everything(self, kind: str) -> list[dict[str, Any]]:
        """A whole list, page by page."""
        return self.pages(kind)[0]

    def pages(self, kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """A whole list, and its pages without their entries."""
        method, field = LIST_FIELDS[kind]
        found: list[dict[str, Any]] = []
        pages: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while len(pages) < 50:
            result = self.request(method, cursor)
            found += result.pop(field)
            pages.append(result)
            if "nextCursor" not in result:
                return found, pages
            cursor = {"cursor": result["nextCursor"]}
        raise Lost(f"{method} has more pages than anybody reads")

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.wire.send({"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {}))

    def log_from(self, level: str | None) -> None:
        """Ask for log messages from a level on."""
        if self.era == "modern":
            self._log_level = level
        else:
            self.request("logging/setLevel", {"level": level or "emergency"})

    def listen(self, *uris: str) -> None:
        """Ask to be told of changes: of the lists, and of these resources. Ends what was asked before."""
        if self.era == "handshake":
            for uri in uris:
                self.request("resources/subscribe", {"uri": uri})
            return
        self.listen_no_more()
        kinds = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
        wanted = {"notifications": kinds | ({"resourceSubscriptions": list(uris)} if uris else {})}
        self._listening = self.once("subscriptions/listen", wanted)
        number = self._listening.id
        acknowledged = self.hears(
            "notifications/subscriptions/acknowledged",
            lambda params: params["_meta"][META + "subscriptionId"] == number,
        )
        assert acknowledged["notifications"] == wanted["notifications"]

    def listen_no_more(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    # ------------------------------------------------------------------------------------------------------ hearing

    def told(self, method: str, since: int = 0) -> list[dict[str, Any]]:
        """The params of the notifications of a kind, in order."""
        with self._news:
            return [one.get("params") or {} for one, _ in self.heard[since:] if one.get("method") == method]

    def hears(
        self,
        method: str,
        condition: Callable[[dict[str, Any]], bool] = lambda params: True,
        *,
        since: int = 0,
        seconds: float = PATIENCE,
    ) -> dict[str, Any]:
        """Wait for a notification of a kind; its params."""
        return self.until(lambda: next(filter(condition, self.told(method, since)), None), f"{method}", seconds)

    def is_asked(self, method: str, *, since: int = 0, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait until it is asked something; the params."""
        return self.until(
            lambda: next((params for one, params, _ in self.asked[since:] if one == method), None), method, seconds
        )

    def until(self, look: Callable[[], Any], what: str, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        with self._news:
            while (found := look()) is None:
                if not self._news.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise Lost(f"{what} did not come within {seconds} s")
            return found

    def _envelope(self) -> dict[str, Any]:
        level = {} if self._log_level is None else {META + "logLevel": self._log_level}
        return {
            META + "protocolVersion": MODERN,
            META + "clientInfo": self.info,
            META + "clientCapabilities": self.capabilities,
        } | level

    def _answer(self, message: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = self.answers[message["method"]](message.get("params") or {})
        except Refused as refused:
            self.wire.send(answer | {"error": {"code": refused.code, "message": refused.message}})
        except KeyError:
            self.wire.send(answer | {"error": {"code": -32601, "message": "Method not found"}})
        else:
            if result is not NEVER:
                with suppress(OSError, ValueError):  # the connection has ended meanwhile
                    self.wire.send(answer | {"result": result})


def start(run: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=run, args=arguments, daemon=True)
    thread.start()
    return thread


def events(response: http.client.HTTPResponse) -> Any:
    """The events of a stream as they come."""
    event = {"event": "message", "data": ""}
    for line in iter(response.readline, b""):
        text = line.decode().rstrip("\r\n")
        if text:
            name, _, value = text.partition(":")
            if name in event:
                event[name] = value.removeprefix(" ")
        elif event != {"event": "message", "data": ""}:
            yield event
            event = {"event": "message", "data": ""}


def modern_headers(message: dict[str, Any]) -> dict[str, str]:
    params = message.get("params") or {}
    headers = {"mcp-method": message["method"], "mcp-protocol-version": MODERN}
    key = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message["method"])
    if key is not None and key in params:
        headers["mcp-name"] = encoded(params[key])
    if params.get("name") == "region" and "region" in params.get("arguments", {}):
        headers["mcp-param-region"] = encoded(params["arguments"]["region"])
    return headers


def encoded(value: str) -> str:
    if value.isascii() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
