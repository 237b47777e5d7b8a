"""A hostile upstream behind a real gateway process, met by hosts as they meet it: each attack costs only itself."""

import base64
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
HOSTILE = ROOT / "tests" / "servers" / "hostile_stdio.py"


class Trap:
    """A web server that must never be asked for anything."""

    def __init__(self) -> None:
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/schema.json"


class Host:
    """A host on stdio that speaks raw JSON-RPC."""

    def __init__(self, config: Path, name: str) -> None:
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        self.count = 0
        client = {"name": name, "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.tools = self._listed()

    def _listed(self) -> dict[str, Any]:
        """All tools, once the upstream is ready: a busy machine may need longer than a host waits."""
        while True:
            tools = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
            if "hostile__good" in tools:
                return tools
            time.sleep(0.1)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.count += 1
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self.count:
                return answer
        pytest.fail("the gateway ended")

    def call(self, tool: str) -> dict[str, Any]:
        return self.ask("tools/call", {"name": f"hostile__{tool}", "arguments": {}})["result"]

    def text(self, tool: str) -> str:
        return "\n".join(block.get("text", "") for block in self.call(tool)["content"])

    def close(self) -> int:
        assert self.process.stdin is not None
        with self.process:
            self.process.stdin.close()
            return self.process.wait(30)


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.server.shutdown()
    trap.server.server_close()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, trap: Trap) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    Image.new("RGB", (40, 40), (255, 0, 0)).save(folder / "secret.png")
    path = folder / "mcp-gateway.toml"
    path.write_text(
        f"""
        [media]
        timeout = 5
        [limits]
        result_bytes = 20_000_000
        [upstreams.hostile]
        command = {json.dumps(sys.executable)}
        args = [{json.dumps(str(HOSTILE))}]
        env = {{ SECRET_PICTURE = {json.dumps(str(folder / "secret.png"))}, TRAP = {json.dumps(trap.url)} }}
        """,
        "utf-8",
    )
    return path


@pytest.fixture(scope="module", params=["somebody-unknown", "codex-mcp-client", "cline"])
def host(request: pytest.FixtureRequest, config: Path) -> Iterator[Host]:
    host = Host(config, request.param)
    yield host
    assert host.close() == 0


@pytest.fixture
def images_shown(host: Host) -> bool:
    """Whether this host shows images at all."""
    return any(block["type"] == "image" for block in host.call("good")["content"])


@pytest.fixture(autouse=True)
def goes_on(host: Host) -> Iterator[None]:
    """After each attack, an ordinary call is answered as ever."""
    yield
    assert host.text("good").startswith("fine")


def pictures(result: dict[str, Any]) -> list[Image.Image]:
    shown = [block for block in result["content"] if block["type"] == "image"]
    return [Image.open(io.BytesIO(base64.b64decode(block["data"], validate=True))) for block in shown]


def test_a_result_over_the_limit_is_an_error_naming_the_size(host: Host) -> None:
    result = host.call("huge")
    assert result["isError"] is True
    assert "50" in result["content"][0]["text"]
    assert len(json.dumps(result)) < 2_000


def test_ten_megabytes_of_text_are_cut_and_can_be_read_on(host: Host) -> None:
    words = host.text("long_text")
    assert len(words) < 50_000
    handle = words.split('handle "', 1)[1].split('"', 1)[0]
    answer = host.ask("tools/call", {"name": "gateway_read", "arguments": {"handle": handle, "offset": 9_000_000}})
    assert "words" in answer["result"]["content"][0]["text"]


def test_an_unknown_block_costs_only_itself(host: Host) -> None:
    words = host.text("unknown_block")
    assert "block of type hologram" in words
    assert words.endswith("after")


@pytest.mark.parametrize("tool", ["no_type", "unpadded"])
def test_what_can_be_mended_is_shown(host: Host, tool: str, images_shown: bool) -> None:
    result = host.call(tool)
    if images_shown:
        assert [picture.size for picture in pictures(result)] == [(8, 8)]
    else:
        assert "[image 1: image/png, 8x8" in result["content"][0]["text"]


def test_broken_base64_is_named(host: Host) -> None:
    assert "[image 1: its data is not base64]" in host.text("broken")


def test_a_pixel_bomb_is_refused_from_its_header(host: Host, images_shown: bool) -> None:
    words = host.text("pixel_bomb")
    assert "30000x30000" in words
    assert words.endswith("after")
    assert ("30,000 x 30,000 pixels" in words) is images_shown


def test_an_animation_bomb_shows_its_first_frame_or_is_named(host: Host, images_shown: bool) -> None:
    result = host.call("animation_bomb")
    assert all(max(picture.size) <= 3_000 for picture in pictures(result))
    assert pictures(result) or "image/gif" in result["content"][0]["text"]


def test_an_svg_of_nested_uses_is_stopped(host: Host) -> None:
    words = host.text("nested_use")
    assert "image/svg+xml" in words
    assert words.endswith("after")


def test_an_svg_reads_no_file_of_this_machine(host: Host, images_shown: bool) -> None:
    shown = pictures(host.call("reaching_svg"))
    assert len(shown) == (1 if images_shown else 0)
    for picture in shown:
        colours: Any = picture.convert("RGB").getcolors(1_000)
        assert colours is not None
        assert (0, 255, 0) in [colour for _, colour in colours]
        assert not any(red > 200 and green < 100 for _, (red, green, _) in colours)


@pytest.mark.parametrize("tool", ["nothing", "wrong_shapes", "deep"])
def test_a_malformed_result_is_answered_all_the_same(host: Host, tool: str) -> None:
    result = host.call(tool)
    assert result["content"]
    assert all(block["type"] == "text" and block["text"] for block in result["content"])


def test_garbage_on_stdout_is_passed_over(host: Host) -> None:
    assert host.text("garbage") == "after garbage"


def test_an_upstream_that_dies_mid_call_is_named_and_comes_back(host: Host) -> None:
    result = host.call("die")
    assert result["isError"] is True
    assert "hostile" in result["content"][0]["text"]
    assert "9" in result["content"][0]["text"]


def test_tool_names_are_legal_unique_and_short_enough(host: Host) -> None:
    names = list(host.tools)
    assert len(names) == len(set(names))
    assert all(len(name) <= 64 and all(char.isalnum() or char in "_-." for char in name) for name in names)
    assert sum(name.startswith("hostile__good") for name in names) == 1
    assert not any("no_schema" in name for name in names)
    assert "\x1b" not in json.dumps(list(host.tools.values()))


def test_tools_with_odd_names_can_be_called(host: Host) -> None:
    long_name = next(name for name in host.tools if "nnnn" in name)
    odd_name = next(name for name in host.tools if "esc" in name)
    for name, real in ((long_name, "n" * 200), (odd_name, "esc")):
        answer = host.ask("tools/call", {"name": name, "arguments": {}})["result"]
        assert f"called {real}" in answer["content"][0]["text"]


def test_references_in_schemas_that_lead_outside_are_opened_and_never_fetched(host: Host, trap: Trap) -> None:
    # Passed on, they would cost some hosts the tool, and have others fetch them.
    for name in ("hostile__refers", "hostile__refers_web"):
        written = json.dumps(host.tools[name]["inputSchema"])
        assert "file:" not in written
        assert trap.url not in written
    assert "description" in host.tools["hostile__refers_web"]["inputSchema"]["properties"]["a"]
    host.ask("tools/call", {"name": "hostile__refers_web", "arguments": {"a": 1}})
    assert trap.asked == []


def test_a_tool_that_is_gone_is_an_error_that_names_the_nearest(host: Host) -> None:
    answer = host.ask("tools/call", {"name": "hostile__goood", "arguments": {}})
    assert answer["error"]["code"] == -32602
    assert "hostile__good" in answer["error"]["message"]
