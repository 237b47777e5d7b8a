"""The console in a real browser: every screen, with real servers and with hostile ones; nothing is amiss.

`CONSOLE_SCREENSHOTS=FOLDER pytest tests/real/test_console.py` leaves its pictures in a folder.
"""

import base64
import io
import json
import math
import os
import struct
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

from tests.servers.registry_server import Registry, running_registry
from tests.serving.console.browser import with_hosts_of
from tests.telemetry.conftest import Serving

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "tests" / "servers"
PATIENCE = 600
EVIL = "<script>alert(1)</script>\x1b[31m\u202e'\"><img src=x onerror=alert(1)>"


def sound() -> str:
    """Two seconds of a fading tone."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        samples = (int(20_000 * math.exp(-n / 9_000) * math.sin(n / 6)) for n in range(32_000))
        file.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return base64.b64encode(buffer.getvalue()).decode()


def script(folder: Path) -> Path:
    """A server whose results are a sound, a table, and what a hostile one would try."""
    vector = b"<svg xmlns='http://www.w3.org/2000/svg' width='90' height='60'><script>alert(1)</script></svg>"
    table = [{"city": name, "mean": mean} for name, mean in (("Reykjavik", 5.4), ("Singapore", 27.8))]
    results = {
        "listen": [{"type": "audio", "data": sound(), "mimeType": "audio/wav"}],
        "table": [{"type": "text", "text": json.dumps(table)}],
        "evil": [
            {"type": "text", "text": EVIL},
            {"type": "image", "data": base64.b64encode(vector).decode(), "mimeType": "image/svg+xml"},
            {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html", "text": EVIL}},
            {"type": "resource_link", "uri": "javascript:alert(1)", "name": EVIL},
        ],
    }
    path = folder / "script.json"
    described = [{"name": name, "description": f"{name} {EVIL}", "inputSchema": {"type": "object"}} for name in results]
    answers = {name: {"content": content} for name, content in results.items()}
    answers["table"]["structuredContent"] = {"rows": table}
    path.write_text(json.dumps({"tools": described, "results": answers}))
    return path


@pytest.fixture
def registry() -> Any:
    with running_registry() as one:
        secret = {"name": "API_KEY", "description": EVIL, "isRequired": True, "isSecret": True}
        units = {"type": "named", "name": "--units", "choices": ["metric", "imperial"], "isRequired": True}
        folders = {"type": "positional", "valueHint": "folder", "isRepeated": True, "description": "To be read."}
        package = {"registryType": "npm", "identifier": "@acme/weather", "version": "1.2.0"}
        one.add(
            "io.github.acme/weather",
            "1.2.0",
            title="Weather",
            description="Weather for any place, as maps and diagrams",
            packages=[
                {**package, "packageArguments": [units, folders], "environmentVariables": [secret]},
                {**package, "registryType": "mcpb"},
            ],
            remotes=[{"type": "sse", "url": "http://weather.example/sse"}],
        )
        one.add("com.example/weather-evil", title=EVIL, description=EVIL * 20, remotes=[])
        yield one


@pytest.fixture
def console(tmp_path: Path, registry: Registry) -> Any:
    python, here = json.dumps(sys.executable), json.dumps(str(ROOT))
    config = tmp_path / "gateway.toml"
    config.write_text(
        f"[gateway]\nname = 'Weather desk'\n[registry]\nurl = '{registry.base}'\n"
        f"[upstreams.charts]\ncommand = {python}\nargs = ['-m', 'examples.charts']\ncwd = {here}\n"
        f"[upstreams.paper]\ncommand = {python}\nargs = ['-m', 'tests.servers.kinds_stdio']\ncwd = {here}\n"
        f"[upstreams.odd]\ncommand = {python}\n"
        f"args = [{json.dumps(str(SERVERS / 'scripted_stdio.py'))}, {json.dumps(str(script(tmp_path)))}]\n"
        f"[upstreams.trial]\ncommand = {python}\nargs = [{json.dumps(str(SERVERS / 'trial_stdio.py'))}]\n"
        "# A profile of one's own.\n[profiles.mine]\nextends = 'claude-code' # as measured\n"
        "sets = { 'image.max_edge' = 1600 } # pixels\n"
        "[[policy.rules]]\nname = 'look-first'\neffect = 'approve'\ntools = ['trial__shapes']\n"
        "[toolsets.work]\nupstreams = ['odd', 'paper']\nexclude = ['odd__table']\n"
        "[toolsets.a-toolset-of-a-long-name]\ntools = ['charts__*']\n"
        "[upstreams.gone]\nurl = 'http://127.0.0.1:9/mcp'\n"
    )
    gateway = Serving(config, "--console")
    yield gateway
    gateway.process.kill()
    gateway.process.wait()


CALLS = (
    ("odd__listen", {}),
    ("odd__table", {}),
    ("odd__evil", {EVIL: EVIL, "password": "hunter22"}),
    ("odd__missing", {}),
    ("charts__compare", {}),
)


ACTS = {
    f"act-{name}"
    for name in (
        *("add", "registry", "restart", "tools", "disable", "answer", "again", "file", "cancel", "compare", "approve"),
        *("edit", "calibrate", "toolset", "toolset-away", "take-away", "remove"),
    )
}


def dropped(folder: Path) -> Path:
    """A picture on somebody's disk."""
    path = folder / "dropped.png"
    Image.new("RGB", (40, 30), "teal").save(path)
    return path


def test_every_screen_in_a_browser(console: Serving, chromium: str, node_modules: Path, tmp_path: Path) -> None:
    paper = console.call("paper__document")
    assert "result" in paper, paper
    numbers = {tool: number for number, (tool, _) in enumerate(CALLS, start=2)}
    for tool, arguments in CALLS:
        console.call(tool, arguments)
    for words in ("yes, please", "rather not"):
        assert "approval" in json.dumps(console.call("trial__shapes", {"text": words}))
    entrance = console.line_with("console at ").removeprefix("console at ")
    screens = [
        {"name": "home", "path": "/console/"},
        {"name": "calls", "path": "/console/calls"},
        {"name": "nothing-found", "path": "/console/calls?text=nowhere"},
        {"name": "pictures", "path": f"/console/calls/{numbers['charts__compare']}"},
        {"name": "enlarged", "path": f"/console/calls/{numbers['charts__compare']}", "open": [".original [data-zoom]"]},
        {"name": "document", "path": "/console/calls/1"},
        {"name": "sound", "path": f"/console/calls/{numbers['odd__listen']}"},
        {"name": "table", "path": f"/console/calls/{numbers['odd__table']}"},
        {"name": "hostile", "path": f"/console/calls/{numbers['odd__evil']}"},
        {"name": "failed", "path": f"/console/calls/{numbers['odd__missing']}"},
        {"name": "try", "path": "/console/try"},
        {"name": "form", "path": "/console/try/tools/trial__shapes"},
        {"name": "hosts", "path": "/console/hosts"},
        {"name": "toolsets", "path": "/console/toolsets", "open": ["main details:nth-of-type(1) summary"]},
        {"name": "toolset", "path": "/console/toolsets", "open": ["section:nth-of-type(1) .editing > summary"]},
        {"name": "profile", "path": "/console/hosts/claude-code"},
        {"name": "edit", "path": "/console/edit/claude-code"},
        {"name": "servers", "path": "/console/servers"},
        {"name": "server", "path": "/console/servers/odd"},
        {"name": "failed-server", "path": "/console/servers/gone"},
        {"name": "registry", "path": "/console/registry?words=weather"},
        {"name": "registry-server", "path": "/console/registry/server?name=io.github.acme/weather"},
        {"name": "approvals", "path": "/console/approvals"},
        {"name": "access", "path": "/console/access"},
        {"name": "store", "path": "/console/store"},
    ]
    task = {
        "executablePath": chromium,
        "entrance": entrance,
        "axe": str(node_modules / "axe-core" / "axe.min.js"),
        "folder": pictures_folder(),
        "screens": screens,
        "live": "/console/calls",
        "acts": {
            "command": f"{sys.executable} {SERVERS / 'media_stdio.py'}",
            "file": str(dropped(tmp_path)),
            "pictures": f"/console/calls/{numbers['charts__compare']}",
            "shownOn": str(numbers["charts__compare"]),
        },
    }
    found = walk(task, lambda: console.call("odd__table"))
    assert len(found) == 4 * len(screens) + len(ACTS) + 1
    assert {name for name in found if name.startswith("act-")} == ACTS
    assert {name: faults for name, faults in found.items() if faults} == {}
    # What was clicked is so: the approved call is made, and the file has the value, its comments, and nothing else new.
    assert "look-first" not in json.dumps(console.call("trial__shapes", {"text": "yes, please"}))
    written = (tmp_path / "gateway.toml").read_text()
    assert 'sets = { "image.max_edge" = 320 } # pixels' in written.replace("'", '"')
    assert "# A profile of one's own.\n[profiles.mine]\nextends = 'claude-code' # as measured\n" in written
    assert "upstreams.added" not in written
    assert "toolsets.clicked" not in written


def pictures_folder() -> str | None:
    """The folder for pictures of the screens, if somebody wants them."""
    if folder := os.environ.get("CONSOLE_SCREENSHOTS"):
        Path(folder).mkdir(exist_ok=True, parents=True)
    return folder or None


def walk(task: dict[str, Any], call: Callable[[], Any]) -> dict[str, list[str]]:
    """Let a browser walk; `call` is made when it is ready to see one happen. What was amiss, by screen."""
    command = ["node", str(ROOT / "tests" / "real" / "console" / "walk.mjs"), json.dumps(task)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = ""
        for line in process.stdout:
            said = line
            if line == "ready\n":
                call()
        assert process.wait(PATIENCE) == 0, process.stderr.read()
    return json.loads(said)


def test_a_first_run_in_a_browser_ends_on_what_hosts_see(chromium: str, node_modules: Path, tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(SERVERS / "media_stdio.py")]}
    with_hosts_of(tmp_path, {"pictures": server})
    config = tmp_path / "gateway.toml"
    config.write_text("# nothing yet\n")
    gateway = Serving(config, "--console")
    try:
        entrance = gateway.line_with("console at ").removeprefix("console at ")
        task = {
            "executablePath": chromium,
            "entrance": entrance,
            "folder": pictures_folder(),
            "tool": "pictures__picture",
        }
        command = ["node", str(ROOT / "tests" / "real" / "console" / "first_run.mjs"), json.dumps(task)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    finally:
        gateway.process.kill()
        gateway.process.wait()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["faults"] == []
    assert [name.strip() for name in seen["offered"]] == ["pictures"]
    assert {"Claude Code", "Codex"} & {name.partition(" (")[0] for name in seen["hosts"]}, seen["hosts"]
    assert len(seen["hosts"]) == 3
    assert config.read_text().startswith("# nothing yet\n")


def test_somebody_enters_with_a_token_in_a_browser(chromium: str, tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text("[gateway]\nname = 'Weather desk'\n[http]\ntoken = 'correct horse battery staple'\n")
    gateway = Serving(config, "--console")
    try:
        entrance = urlsplit(gateway.line_with("console at ").removeprefix("console at "))
        address = f"{entrance.scheme}://{entrance.netloc}/console/"
        task = {"executablePath": chromium, "address": address, "token": "correct horse battery staple"}
        command = ["node", str(ROOT / "tests" / "real" / "console" / "enter.mjs"), json.dumps(task)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    finally:
        gateway.process.kill()
        gateway.process.wait()
    assert done.returncode == 0, done.stderr
    assert "Weather desk" in done.stdout
