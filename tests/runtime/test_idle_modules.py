"""What a gateway must not have imported: before its first answer, and after serving plain calls.

The time to the first answer, and idle memory, are mostly imports.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.calls.driver import HttpClient
from benchmarks.calls.upstream import HttpServer
from benchmarks.calls.wire import Era

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="it is ended by SIGTERM")]

UNUSED = {
    "PIL",
    "cryptography",
    "gateway.cli.commands.doctor",
    "gateway.content.describe.models",
    "gateway.content.links.file_transfers",
    "gateway.hosts.config_files",
    "gateway.routing.code_mode",
    "gateway.upstream.recording",
    "jsonschema",
    "mcp.client.session",
    "mcp.server.mcpserver",
    "obstore",
    "prometheus_client",
    "psutil",
    "rich",
    "tomlkit",
    "websockets",
}
"""What only other commands need, other settings, or nobody."""

SERVE = """
import atexit, sys
from gateway.cli.main import main
atexit.register(lambda: print("imported:", *sys.modules))
sys.exit(main(["serve", "--http", "--port", "0", "--upstream", sys.argv[1]]))
"""


async def test_a_gateway_has_imported_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    raw = await asyncio.get_running_loop().create_server(HttpServer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{raw.sockets[0].getsockname()[1]}/{Era.STATELESS}/10"
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "MCP_GATEWAY_CACHE": str(tmp_path / "cache")}
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, url, cwd=root, env=environ, stdout=-1, stderr=-1
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with raw, asyncio.timeout(120):
        try:
            port = re.search(rb"listening on http://127.0.0.1:(\d+)/", await process.stderr.readuntil(b"/mcp"))
            assert port is not None
            client = HttpClient(Era.STATELESS, int(port[1]), "/mcp")
            await client.open()
            await client.call("text")
            await client.close()
        finally:
            process.send_signal(signal.SIGTERM)
        out, _ = await process.communicate()
    imported = set(out.decode().partition("imported: ")[2].split())
    assert "gateway.routing.router" in imported, "what is looked at is not what serves"
    assert imported & UNUSED == set()


def test_the_first_message_is_answered_before_anything_slow_is_imported() -> None:
    slow = {"asyncio", "dataclasses", "gateway.core.model.texts", "inspect", "mcp", "pydantic", "typer"}
    early = "gateway.cli.main, gateway.config.early_config, gateway.serving.mcp.early_stdio"
    code = f"import sys, {early}; print(*sorted({slow} & set(sys.modules)))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=root)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
