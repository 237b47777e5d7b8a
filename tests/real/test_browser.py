"""A real browser behind the gateway: its screenshots must reach models as pictures."""

import base64
import io
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from PIL import Image

from gateway.cli.demo.clients import DemoConnection, StreamableHttp, connected
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.seen import Seen, SeenDocument
from tests.content.media.points import colour_at

pytestmark = pytest.mark.anyio

PATIENCE = 90
RED, BLUE = (200, 30, 30), (20, 60, 220)
PAGE = (
    "<title>Flag</title><style>body{margin:0;height:%s;"
    "background:linear-gradient(90deg,rgb(200,30,30) 50%%,rgb(20,60,220) 50%%)}</style>"
)


def page(height: str) -> str:
    """The address of a page of that height: red on the left, blue on the right."""
    return "data:text/html," + quote(PAGE % height)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser puts what it saves, and what the paths are relative to that it tells."""
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def browser(node_modules: Path, chromium: str, output: Path) -> dict[str, Any]:
    """Playwright's server with a browser that keeps nothing, as an upstream. Root cannot have a sandbox."""
    options = ["--headless", "--isolated", "--no-sandbox", "--viewport-size", "800x600", "--caps", "pdf,vision"]
    places = ["--executable-path", chromium, "--output-dir", str(output)]
    command = str(node_modules / ".bin" / "playwright-mcp")
    return {"command": command, "args": [*options, *places], "cwd": str(output), "files": [str(output)]}


@pytest.fixture(scope="module")
def gateway(served: Any, browser: dict[str, Any]) -> Generator[str]:
    """The address of a gateway in front of the browser."""
    with served({"browser": browser}) as address:
        yield f"{address}/mcp"


async def call(connection: DemoConnection, name: str, **arguments: Any) -> Seen:
    """What the model of the host sees of a result."""
    tool = (await connection.tools())[name]
    return connection.host.see(await connection.call(name, arguments), tool)


def picture(seen: Seen) -> Image.Image:
    """The one picture that is seen; its left half is red and its right half is blue."""
    [shown] = seen.images
    image = Image.open(io.BytesIO(base64.b64decode(shown.data)))
    assert shown.media_type == f"image/{(image.format or '').lower()}"
    for x, colour in ((0.25, RED), (0.75, BLUE)):
        found = colour_at(image.convert("RGB"), int(x * image.width), image.height // 2)
        assert all(abs(a - b) <= 4 for a, b in zip(found, colour, strict=True)), (x, found)
    return image


@pytest.mark.parametrize("kind", ["png", "jpeg"])
@pytest.mark.parametrize("host", ["codex", "claude-code", "unknown"])
async def test_a_screenshot_is_seen_as_a_picture(gateway: str, host: str, kind: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(gateway), SIMULATORS[host]) as connection:
            assert "Flag" in (await call(connection, "browser__browser_navigate", url=page("100vh"))).text
            seen = await call(connection, "browser__browser_take_screenshot", type=kind)
    assert picture(seen).size == (800, 600)
    assert seen.base64_leak == 0
    assert "screenshot" in seen.text.lower()


@pytest.mark.parametrize("host", ["claude-code", "unknown"])
async def test_a_long_page_is_fitted_to_what_the_host_takes(gateway: str, host: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(gateway), SIMULATORS[host]) as connection:
            await call(connection, "browser__browser_navigate", url=page("4000px"))
            seen = await call(connection, "browser__browser_take_screenshot", type="png", fullPage=True)
    assert picture(seen).size == (400, 2000)


@pytest.mark.parametrize("host", ["gemini-cli", "codex"])
async def test_a_saved_document_is_shown_or_named_with_its_handle(gateway: str, output: Path, host: str) -> None:
    """The server tells only its path; the gateway may read the folder, so the host gets the document."""
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(gateway), SIMULATORS[host]) as connection:
            await call(connection, "browser__browser_navigate", url=page("100vh"))
            seen = await call(connection, "browser__browser_pdf_save", filename=f"{host}.pdf")
    assert f"[Page as pdf](./{host}.pdf)" in seen.text
    saved = (output / f"{host}.pdf").read_bytes()
    assert saved.startswith(b"%PDF-")
    shown = [base64.b64decode(part.data) for part in seen.parts if isinstance(part, SeenDocument)]
    assert shown == ([saved] if host == "gemini-cli" else [])
    assert ("handle" in seen.text) is (host == "codex")


def ended(handle: int) -> bool:
    """Whether the process of a pidfd ends in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        return bool(selector.select(PATIENCE))


def family(pid: int) -> set[int]:
    """A process and all that come from it."""
    found = {pid}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found |= family(int(child))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_of_the_browser_outlives_the_gateway(on_stdio: Any, browser: dict[str, Any]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(on_stdio({"browser": browser}), env=environment, text=True, **pipes) as process:

        def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            return next(answer for line in process.stdout if (answer := json.loads(line)).get("id") == number)

        try:
            client = {"name": "test", "version": "1"}
            ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
            ask(2, "tools/list")
            navigate = {"name": "browser__browser_navigate", "arguments": {"url": page("100vh")}}
            assert "Flag" in json.dumps(ask(3, "tools/call", **navigate)["result"])
            members = family(process.pid) - {process.pid}
            programs = " ".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in members)
            handles = {os.pidfd_open(pid): pid for pid in members}
            assert "playwright" in programs
            assert "--headless" in programs
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    left = [pid for handle, pid in handles.items() if not ended(handle)]
    for handle in handles:
        os.close(handle)
    assert left == []
