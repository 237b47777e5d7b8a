"""A registry of MCP servers on the loopback: it answers as the official one does (API v0.1).

`GET /v0.1/servers` with search, version, limit and cursor, and `GET /v0.1/servers/{name}/versions/{version}`; each
entry below `server`, what the registry says of it below `_meta`. It can be away, slow or wrong.
"""

import hashlib
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

OFFICIAL = "io.modelcontextprotocol.registry/official"


class Registry:
    """What it has, and what it was asked. `answer`: a response that it gives instead, whatever is asked."""

    def __init__(self) -> None:
        self.base = ""
        self.entries: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.not_modified = 0
        self.answer: Response | None = None
        self.seconds = 0.0
        self.most = 100

    def add(self, name: str, version: str = "1.0.0", status: str = "active", **server: Any) -> dict[str, Any]:
        """Publish a version of a server, the latest from now on."""
        for entry in self.entries:
            if entry["server"]["name"] == name:
                entry["_meta"][OFFICIAL]["isLatest"] = False
        about = {"description": f"The server {name}", **server}
        meta = {"status": status, "publishedAt": "2026-11-01T10:00:00Z", "isLatest": True}
        entry = {"server": {"name": name, "version": version, **about}, "_meta": {OFFICIAL: meta}}
        self.entries.append(entry)
        return entry

    def status(self, status: int, body: str = '{"error": "no"}', **headers: str) -> None:
        """Answer everything with this status from now on."""
        self.answer = Response(body, status, headers, "application/json")

    def app(self) -> Starlette:
        """Its routes."""
        return Starlette(
            routes=[
                Route("/v0.1/servers", self._list),
                Route("/v0.1/servers/{name:path}/versions/{version}", self._version),
            ]
        )

    def _list(self, request: Request) -> Response:
        query = request.query_params
        found = [
            entry
            for entry in self.entries
            if query.get("search", "").lower() in f"{entry['server']['name']} {entry['server']['description']}".lower()
            and (query.get("version") != "latest" or entry["_meta"][OFFICIAL]["isLatest"])
        ]
        start, size = int(query.get("cursor", 0)), min(int(query.get("limit", 30)), self.most)
        page = found[start : start + size]
        more = {"nextCursor": str(start + size)} if start + size < len(found) else {}
        return self._answered(request, {"servers": page, "metadata": {"count": len(page), **more}})

    def _version(self, request: Request) -> Response:
        name, version = unquote(request.path_params["name"]), unquote(request.path_params["version"])
        for entry in self.entries:
            known = entry["server"]
            if known["name"] == name and (
                known["version"] == version or (version == "latest" and entry["_meta"][OFFICIAL]["isLatest"])
            ):
                return self._answered(request, entry)
        return self._answered(request, {"error": "Server not found"}, 404)

    def _answered(self, request: Request, value: Any, status: int = 200) -> Response:
        self.asked.append(f"{request.url.path}?{request.url.query}")
        time.sleep(self.seconds)
        if self.answer is not None:
            return self.answer
        tag = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
        if request.headers.get("if-none-match") == f'"{tag}"':
            self.not_modified += 1
            return Response(status_code=304)
        return JSONResponse(value, status, {"etag": f'"{tag}"'})


def endless() -> StreamingResponse:
    """An answer that never ends."""

    def chunks() -> Generator[bytes]:
        while True:
            yield b'{"servers": [' + b" " * 1_000_000

    return StreamingResponse(chunks(), media_type="application/json")


@contextmanager
def running_registry() -> Generator[Registry]:
    """Run a registry in a thread."""
    registry = Registry()
    config = uvicorn.Config(registry.app(), host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    (port,) = {address.getsockname()[1] for one in server.servers for address in one.sockets}
    registry.base = f"http://127.0.0.1:{port}"
    try:
        yield registry
    finally:
        server.should_exit = True
        thread.join(10)
