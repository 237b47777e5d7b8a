"""What the tests of telemetry share: a real gateway as a process, and what it writes to stderr."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.loopback import open_url

SERVERS = Path(__file__).parents[1] / "servers"
PATIENCE = 60
META = "io.modelcontextprotocol/"


class Serving:
    """`mcp-gateway serve --http` on a free port; `lines` is all that it has written to stderr so far."""

    def __init__(self, config: Path, *options: str, **environ: str) -> None:
        self.config = config
        root = SERVERS.parent.parent
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "MCP_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0", "--config", str(config), *options],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            cwd=config.parent,
            env={**inherited, "PYTHONPATH": str(root), "HOME": str(config.parent), **environ},
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            said = self.line_with("listening on ").partition("listening on ")[2]
        except AssertionError:  # nobody else could end it
            self.process.kill()
            raise
        self.url = said[: said.index("/mcp ")]

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self.lines.append("(ended)")
            self._news.notify_all()

    def line_with(self, text: str) -> str:
        """The first line that holds the text, waited for."""
        with self._news:
            found = self._news.wait_for(lambda: [line for line in self.lines if text in line], PATIENCE)
        assert found, self.lines
        return found[0]

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers of a GET."""
        return self._answer(urllib.request.Request(self.url + path, headers=headers))

    def call(
        self, tool: str, arguments: Any = None, *, token: str = "", path: str = "/mcp", **meta: Any
    ) -> dict[str, Any]:
        """Call a tool as a stateless host; the whole answer."""
        about = {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientCapabilities": {},
            f"{META}clientInfo": {"name": "tester", "version": "9"},
        }
        params = {"name": tool, "arguments": arguments or {}, "_meta": {**about, **meta}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(message).encode(), headers)
        _, body, _ = self._answer(request)
        if body.startswith(("event:", "data:", ":", "id:")):
            body = next(line for line in body.splitlines() if line.startswith("data: {")).removeprefix("data: ")
        return json.loads(body)

    def open_session(self) -> None:
        """Open a session as a host of the handshake era, and leave it open."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        request = urllib.request.Request(f"{self.url}/mcp", json.dumps(opening).encode(), headers)
        _, _, answered = self._answer(request)
        headers |= {"Mcp-Session-Id": answered["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
        for message in ({"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}):
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
            self._answer(urllib.request.Request(f"{self.url}/mcp", body, headers))

    def end(self) -> int:
        """Ask it to end, and wait until it has, with all that it wrote."""
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.line_with("(ended)")
        return code

    def _answer(self, request: urllib.request.Request) -> tuple[int, str, dict[str, str]]:
        try:
            with open_url(request, PATIENCE) as response:
                return response.status, response.read().decode(), dict(response.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), dict(error.headers)


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    """A configuration with the server of pictures, and one that is not there; more lines may be added."""

    def write(more: str = "") -> Path:
        path = tmp_path / "gateway.toml"
        path.write_text(
            f"[upstreams.pics]\ncommand = {json.dumps(sys.executable)}\n"
            f"args = [{json.dumps(str(SERVERS / 'pictures_stdio.py'))}]\n"
            'env = { API_TOKEN = "env-secret-1" }\n'
            '[upstreams.gone]\nurl = "http://127.0.0.1:9/mcp?key=query-secret-2"\n'
            'headers = { Authorization = "Bearer header-secret-3" }\n' + more
        )
        return path

    return write


@pytest.fixture
def serving(config: Callable[[str], Path]) -> Generator[Callable[..., Serving]]:
    """Starts gateways; none outlives the test."""
    started: list[Serving] = []

    def start(*options: str, more: str = "", whole: str | None = None, **environ: str) -> Serving:
        path = config(more)
        if whole is not None:
            path.write_text(whole, "utf-8")
        started.append(Serving(path, *options, **environ))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
