"""MCP Apps through the gateway: pages of the extension's own example servers and of ours, in frames of a real browser.

The browser plays the host, with the extension's module for hosts (`apps/host.mjs`). Its requests go to the gateway over
Streamable HTTP, on a connection that is opened in the name of a real host. `clock` and `watch` are the same server, so
that two upstreams have the same tools and the same page.
"""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp.shared.exceptions import MCPError

from gateway.cli.demo.clients import StreamableHttp, connected
from gateway.hosts.simulators.hosts import SIMULATORS

PATIENCE = 120
APPS = Path(__file__).parent / "apps"
ROOT = Path(__file__).parents[2]
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
TYPES = {".html": "text/html", ".mjs": "text/javascript", ".js": "text/javascript"}


@dataclass(frozen=True)
class Shower:
    """A host that shows pages. `declares`: whether it says so; `only_listed`: pages call what is in its list alone."""

    client_name: str
    profile: str
    declares: bool = True
    only_listed: bool = False


HOSTS = {
    "cursor": Shower("cursor-vscode", "cursor", only_listed=True),
    "claude-ai": Shower("anthropic-claudeai", "claude-ai"),
    "claude-desktop": Shower("claude-ai", "claude-desktop"),
    "vscode": Shower("Visual Studio Code", "vscode-copilot", declares=False),
    "goose": Shower("goose-desktop", "goose"),
    "chatgpt": Shower("openai-mcp", "chatgpt", declares=False),
    "unknown": Shower("a-host-of-tomorrow", "default"),
}
"""Six kinds of hosts, and Claude's two programs: as they introduce themselves."""


class Bench:
    """Serves the host's page to the browser, and passes its requests on to the gateway; `told` gets what it found."""

    def __init__(self, node_modules: Path, connections: Any, portal: Any) -> None:
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self._roots = {"/node_modules/": node_modules, "/": APPS}
        self._connections, self._portal = connections, portal

    def get(self, path: str) -> tuple[str, bytes]:
        if path == "/hosts":
            hosts = [{"name": name, "onlyListed": host.only_listed} for name, host in HOSTS.items()]
            return "application/json", json.dumps(hosts).encode()
        prefix = next(prefix for prefix in self._roots if path.startswith(prefix))
        file = self._roots[prefix] / path.removeprefix(prefix)
        return TYPES[file.suffix], file.read_bytes()

    def post(self, path: str, body: Any) -> Any:
        if path == "/done":
            self.told.put(body)
            return {}
        try:
            result = self._portal.call(self._connections[body["host"]].request, body["method"], body["params"])
        except MCPError as error:
            return {"error": f"{error.error.code}: {error.error.message}"}
        return {"result": result}


def handler(bench: Bench) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                kind, content = bench.get(self.path)
            except (OSError, KeyError):
                self.send_error(404)
                return
            self.reply(kind, content)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply("application/json", json.dumps(bench.post(self.path, body)).encode())

        def reply(self, kind: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def gateway(served: Any, node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a gateway in front of the example servers."""
    programs = node_modules / ".bin"
    clock = {"command": str(programs / "mcp-server-basic-vanillajs"), "args": ["--stdio"]}
    log = tmp_path_factory.mktemp("debug") / "debug.log"
    debug = {"command": str(programs / "mcp-server-debug"), "args": ["--stdio", f"--log-file={log}"]}
    daylight = {"command": sys.executable, "args": ["-m", "examples.daylight"], "cwd": str(ROOT)}
    with served({"clock": clock, "watch": clock, "debug": debug, "daylight": daylight}) as address:
        yield f"{address}/mcp"


@pytest.fixture(scope="module")
def shown(
    gateway: str, chromium: str, node_modules: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[dict[str, Any]]:
    """What the browser found, host by host."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        connections: dict[str, Any] = {}
        for name, shower in HOSTS.items():
            info = {"name": shower.client_name, "version": "1"}
            host = replace(
                SIMULATORS["unknown"],
                client_info=info,
                revision="2025-11-25",
                capabilities=UI if shower.declares else {},
            )
            opened = portal.wrap_async_context_manager(connected(StreamableHttp(gateway), host))
            connections[name] = stack.enter_context(opened)
        bench = Bench(node_modules, connections, portal)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler(bench))
        stack.callback(server.server_close)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        home = tmp_path_factory.mktemp("chromium")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        address = f"http://127.0.0.1:{server.server_address[1]}/host.html"
        command = [
            chromium,
            *options,
            "--no-proxy-server",
            f"--user-data-dir={home}",
            "--remote-debugging-port=0",
            address,
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                told = bench.told.get(timeout=PATIENCE)
                assert "failed" not in told, told["failed"]
                yield told
            finally:
                browser.kill()


@pytest.mark.parametrize("name", HOSTS)
def test_every_page_shows_its_data_and_its_button_works(shown: dict[str, Any], name: str) -> None:
    told = shown[name]
    assert "error" not in told, told.get("error")
    pages = told["pages"]
    assert set(pages) == {"clock__get-time", "watch__get-time", "debug__debug-tool", "daylight__daylight"}
    for tool in ("clock__get-time", "watch__get-time"):
        page = pages[tool]
        assert page["before"] == page["result"]["structuredContent"]["time"]
        [call] = page["calls"]
        assert call["name"] == "get-time"
        assert page["after"] == call["answer"]["structuredContent"]["time"] != page["before"]
    [call] = pages["daylight__daylight"]["calls"]
    assert call["answer"]["structuredContent"]["month"] == "February"
    assert "28. " in pages["daylight__daylight"]["after"]
    [call] = [call for call in pages["debug__debug-tool"]["calls"] if call["name"] == "debug-refresh"]
    assert set(call["answer"]["structuredContent"]) == {"timestamp", "counter"}
    assert call["answer"]["content"] == [
        {"type": "text", "text": f"Server timestamp: {call['answer']['structuredContent']['timestamp']}"}
    ]


@pytest.mark.parametrize("name", HOSTS)
def test_the_model_still_gets_what_it_gets_of_a_tool_without_a_page(shown: dict[str, Any], name: str) -> None:
    """The content stands for itself: some clients declare the extension, and show nothing (Mastra)."""
    result = shown[name]["pages"]["clock__get-time"]["result"]
    assert any(result["structuredContent"]["time"] in block.get("text", "") for block in result["content"])


@pytest.mark.parametrize("name", HOSTS)
def test_each_tool_names_the_page_of_its_own_server(shown: dict[str, Any], name: str) -> None:
    tools = {tool["name"]: tool for tool in shown[name]["tools"]}
    for upstream in ("clock", "watch"):
        meta = tools[f"{upstream}__get-time"]["_meta"]
        assert meta["ui"]["resourceUri"] == meta["ui/resourceUri"] == f"ui://{upstream}/get-time/mcp-app.html"
    assert tools["clock__get-time"]["outputSchema"]["required"] == ["time"]
    for_pages = {tool: listed for tool, listed in tools.items() if tool.endswith("debug-refresh")}
    assert list(for_pages) == ["debug-refresh" if HOSTS[name].only_listed else "debug__debug-refresh"]
    assert all(tool["_meta"]["ui"]["visibility"] == ["app"] for tool in for_pages.values())


def test_a_host_without_pages_is_not_told_of_tools_that_only_pages_call(gateway: str) -> None:
    async def listed() -> dict[str, Any]:
        async with connected(StreamableHttp(gateway), SIMULATORS["codex"]) as connection:
            return await connection.tools()

    with start_blocking_portal() as portal:
        tools = portal.call(listed)
    assert "debug__debug-tool" in tools
    assert "daylight__daylight" in tools
    assert not [name for name in tools if "refresh" in name or "log" in name or "days" in name]
