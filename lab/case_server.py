"""An MCP server whose tools return one case each, byte for byte: from the standard library alone.

No SDK stands between a case and the wire, so that a result that an SDK would mend arrives as it is written. It serves
Streamable HTTP, or stdio: `python -m lab.case_server RESULTS CALLS`, a file with the results by the names of the tools,
and one that every tool that is called is written to.
"""

import json
import os
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
LIMIT = 30


@contextmanager
def case_server(results: Mapping[str, Mapping[str, Any]]) -> Generator[str]:
    """The url of a server with one tool for each result, while the block runs."""
    with _Server(("127.0.0.1", 0), _handler(results)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join(LIMIT)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that left early: programs under test do, and lose only what they asked for."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(results: Mapping[str, Mapping[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message or "method" not in message:
                self._reply(202, b"")
                return
            answer = _answer(message["method"], message.get("params") or {}, results)
            self._reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode())

        def do_GET(self) -> None:
            self._reply(405, b"")

        def do_DELETE(self) -> None:
            self._reply(405, b"")

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _answer(method: str, params: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            revision = wanted if wanted in REVISIONS else REVISIONS[0]
            server = {"name": "cases", "version": "1"}
            return {"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": [_tool(name) for name in results]}}
        case "tools/call" if params.get("name") in results:
            return {"result": results[params["name"]]}
        case _:
            return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def _tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"Returns the case {name}.",
        "inputSchema": {"type": "object", "properties": {}},
    }


def main(path: str, calls: str) -> None:
    """Serve the results in a file over stdio, until stdin ends."""
    results = json.loads(Path(path).read_text("utf-8"))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            if message["method"] == "tools/call":
                with Path(calls).open("a", encoding="utf-8") as called:
                    print(message["params"].get("name"), file=called)
            answer = _answer(message["method"], message.get("params") or {}, results)
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except BrokenPipeError:
        os._exit(0)  # the host left before its answer: Python would write about stdout once more as it ends
