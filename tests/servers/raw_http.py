"""A raw MCP server on loopback HTTP: `python raw_http.py [--port N] [FLAG ...]`; prints its port on a line.

Flags beside those of raw_mcp: sse-answers (Streamable HTTP answers as event streams), sessions (issues session ids and
insists on them; with bad-request it turns unknown ones down as the official TypeScript example does), get-stream
(offers the standing stream). Paths: /mcp is Streamable HTTP, /sse the legacy transport, /sse-elsewhere names an
endpoint on another origin, /redirect leads to another origin, /moved to /mcp, /status/N answers N, /login/N answers 401
as one that wants a login (N: oauth) or a token (N: bearer), /huge never stops
answering, /declared-huge says so before it begins, /squeezed answers compressed, /html is a page. GET /forget forgets
all sessions, GET /calls counts the calls of each tool.
"""

import itertools
import json
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from raw_mcp import Server

flags = {flag for flag in sys.argv[1:] if not flag.startswith("--") and not flag.isdigit()}
port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
server = Server(flags)
sessions = set()
streams = {}
counter = itertools.count(1)
CHALLENGES = {
    "/login/oauth": 'Bearer resource_metadata="https://mcp.example.org/.well-known/oauth-protected-resource/mcp"',
    "/login/bearer": 'Basic realm="x", Bearer error="invalid_token"',
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        parts = urlsplit(self.path)
        match parts.path:
            case "/mcp":
                self.streamable(json.loads(body))
            case "/messages":
                stream = streams.get(parse_qs(parts.query)["session"][0])
                if stream is None:
                    self.reply(404, b"Could not find session", "text/plain")
                    return
                self.reply(202, b"Accepted", "text/plain")
                message = json.loads(body)
                threading.Thread(target=server.handle, args=(message, stream.put), daemon=True).start()
            case "/redirect":
                self.reply(307, b"", "text/plain", location="http://127.0.0.1:1/mcp")
            case "/moved":
                self.reply(308, b"", "text/plain", location="/mcp")
            case "/huge":
                self.huge(json.loads(body))
            case "/declared-huge":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(500_000_000))
                self.end_headers()
                self.pour(500_000_000)
            case "/squeezed":
                self.reply(200, b"\x1f\x8b", "application/json", **{"content-encoding": "gzip"})
            case "/html":
                self.reply(200, b"<html>hello</html>", "text/html")
            case path if path.startswith("/status/"):
                self.reply(int(path.rpartition("/")[2]), b"no", "text/plain")
            case path if path in CHALLENGES:
                self.reply(401, b"no", "text/plain", **{"www-authenticate": CHALLENGES[path]})
            case _:
                self.reply(405, b"Method Not Allowed", "text/plain")

    def do_GET(self):
        path = urlsplit(self.path).path
        if path in CHALLENGES:
            self.reply(401, b"no", "text/plain", **{"www-authenticate": CHALLENGES[path]})
            return
        if path in ("/sse", "/sse-elsewhere"):
            self.legacy_stream("http://evil.invalid" if path != "/sse" else "")
        elif path == "/mcp" and "get-stream" in flags:
            outbox = queue.Queue()
            server.listeners.append(outbox.put)
            self.stream(outbox)
        elif path == "/forget":
            sessions.clear()
            streams.clear()
            self.reply(200, b"", "text/plain")
        elif path == "/calls":
            self.reply_json(200, server.calls)
        else:
            self.reply(405, b"Method Not Allowed", "text/plain")

    def do_DELETE(self):
        sessions.discard(self.headers.get("mcp-session-id"))
        self.reply(200, b"", "text/plain")

    def streamable(self, message):
        session = self.headers.get("mcp-session-id")
        extra = {}
        params = message.get("params") or {}
        if params.get("name") == "forget":
            sessions.clear()
        if "sessions" in flags:
            if message.get("method") == "initialize":
                session = f"session-{next(counter)}"
                sessions.add(session)
                extra["mcp-session-id"] = session
            elif session not in sessions and "bad-request" in flags:
                error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
                self.reply_json(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
                return
            elif session not in sessions:
                error = {"code": -32600, "message": "Session not found"}
                self.reply_json(404, {"jsonrpc": "2.0", "id": None, "error": error})
                return
        if params.get("name") == "headers":
            result = {"content": [], "structuredContent": {name.lower(): value for name, value in self.headers.items()}}
            self.reply_json(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
            return
        if "id" not in message:
            self.reply(202, b"", "text/plain")
            return
        outbox = queue.Queue()

        def run():
            server.handle(message, outbox.put)
            if message["method"] != "subscriptions/listen" and params.get("name") != "hang":
                outbox.put(None)

        threading.Thread(target=run, daemon=True).start()
        if "sse-answers" in flags or message["method"] == "subscriptions/listen" or params.get("name") == "tick":
            self.stream(outbox, extra)
            return
        while "method" in (answer := outbox.get()):
            pass  # one JSON answer has no room for what the server says beside it
        status = 400 if "error" in answer and "modern" in flags else 200
        self.reply_json(status, answer, extra)

    def huge(self, message):
        if message.get("method") != "tools/call":
            self.streamable(message)
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            while True:
                self.wfile.write(chunk)
        except OSError:
            self.close_connection = True

    def pour(self, size):
        try:
            for _ in range(size // 65536):
                self.wfile.write(b" " * 65536)
        except OSError:
            self.close_connection = True

    def legacy_stream(self, origin):
        session = str(next(counter))
        streams[session] = outbox = queue.Queue()
        self.start_stream()
        self.wfile.write(f"event: endpoint\ndata: {origin}/messages?session={session}\n\n".encode())
        self.write_events(outbox)

    def stream(self, outbox, extra=None):
        self.start_stream(extra)
        self.write_events(outbox)

    def start_stream(self, extra=None):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def write_events(self, outbox):
        try:
            while (message := outbox.get()) is not None:
                data = json.dumps(message).encode()
                self.wfile.write(b": ping\r\nevent: message\r\ndata: " + data + b"\r\n\r\n")
                self.wfile.flush()
        except OSError:
            pass

    def reply_json(self, status, value, extra=None):
        self.reply(status, json.dumps(value).encode(), "application/json", **(extra or {}))

    def reply(self, status, body, content_type, **headers):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_):
        pass  # a client that hangs up in the middle is what some tests are about


listening = LoopbackServer(("127.0.0.1", port), Handler)
print(listening.server_address[1], flush=True)
listening.serve_forever()
