"""Real servers and real clients, with a gateway between them that is a process of its own.

A client is a program `clients/with_<name>`. Its one argument is a job, as JSON:

    {"transport": "stdio" | "http" | "sse", "command": [...], "env": {...}, "url": "...",
     "mode": "auto" | "legacy" | "2026-07-28", "tool": "...", "arguments": {...}}

It connects to the gateway with the library that it is named after, lists the tools, calls that one, and prints what its
model (or its user, for a plain client) is given:

    {"revision": "2026-07-28" | null, "tools": ["..."], "texts": ["..."], "images": [["image/png", "<base64>"]]}
"""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import wave
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import anyio
import pytest
from PIL import Image

from gateway.cli.demo.clients import StreamableHttp, connected
from gateway.hosts.simulators.hosts import SIMULATORS

ROOT = Path(__file__).parents[2]
CLIENTS = Path(__file__).parent / "clients"
SECRET = "SECRET_OF_THE_GATEWAY"
PATIENCE = 90
COMMAND = [sys.executable, "-m", "gateway", "serve"]

NEEDED = {"PYTHONPATH": str(ROOT)}
"""What a gateway is told by a host that passes on next to nothing of its own environment."""

Missing: TypeAlias = Callable[[str, str], NoReturn]
OLD_CLIENTS = Path(sys.prefix) / "clients" / Path(sys.executable).relative_to(sys.prefix)
"""The Python of the clients that need an older SDK than the gateway's."""

PACKAGES = {"python_sdk": "mcp", "fastmcp": "fastmcp", "pydantic_ai": "pydantic_ai", "openai_agents": "agents"}
"""The clients that run beside the gateway's own version of the SDK, and what has to be installed for each."""

PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>endobj
trailer<</Root 1 0 R>>
"""


def environment(**more: str) -> dict[str, str]:
    """Of gateways and clients. Nothing here leaves the machine, so no proxy has any business with it."""
    return {**os.environ, **NEEDED, "NO_PROXY": "127.0.0.1", SECRET: "told", **more}


@dataclass(frozen=True)
class Outcome:
    """What a client made of its job."""

    revision: str | None
    tools: list[str]
    texts: list[str]
    images: list[tuple[str, str]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a picture of four colours, a sound, a document and a text."""
    made = tmp_path_factory.mktemp("files")
    picture = Image.new("RGB", (320, 200), (200, 30, 30))
    for colour, box in {(20, 60, 220): (160, 0, 320, 100), (30, 170, 60): (0, 100, 160, 200)}.items():
        picture.paste(colour, box)
    picture.save(made / "picture.png")
    with wave.open(str(made / "sound.wav"), "wb") as sound:
        sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(bytes(1_600))
    (made / "page.pdf").write_bytes(PDF)
    (made / "notes.txt").write_text("Twelve apples, three pears.\n", "utf-8")
    return made


@pytest.fixture(scope="session")
def files(node_modules: Path, folder: Path) -> dict[str, Any]:
    """The reference filesystem server, as an upstream."""
    return {"command": str(node_modules / ".bin" / "mcp-server-filesystem"), "args": [str(folder)]}


@pytest.fixture(scope="session")
def everything(node_modules: Path) -> dict[str, Any]:
    """The reference server that shows everything, as an upstream."""
    return {"command": str(node_modules / ".bin" / "mcp-server-everything"), "args": ["stdio"]}


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory, missing: Missing) -> Path:
    """A git repository with one commit."""
    if shutil.which("git") is None:
        missing("git", "install it; on Debian: apt install git")
    made = tmp_path_factory.mktemp("repository")
    (made / "pears.txt").write_text("three\n", "utf-8")
    author = {f"GIT_{who}_{what}": "Ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Count the pears"]):
        subprocess.run(["git", *arguments], cwd=made, env={**os.environ, **author}, check=True, timeout=60)
    return made


@pytest.fixture(scope="session")
def python_server(installed: Callable[[str], None]) -> Callable[..., dict[str, Any]]:
    """A reference server in Python, as an upstream: its module, and its arguments."""

    def server(module: str, *arguments: str) -> dict[str, Any]:
        installed(module)
        return {"command": sys.executable, "args": ["-m", module, *arguments]}

    return server


@pytest.fixture(scope="session")
def installed(missing: Missing) -> Callable[[str], None]:
    """Ask for a Python package, by the name that it is imported under."""

    def ask(module: str) -> None:
        if importlib.util.find_spec(module) is None:
            missing(module, "run `make setup`, and the tests with .venv/bin/python")

    return ask


@pytest.fixture(scope="session")
def configure(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a configuration with these upstreams, further tables, and a profile `patient` that waits for them all."""

    def write(
        upstreams: Mapping[str, Mapping[str, Any]], *, profile: str | None = None, **more: Mapping[str, Any]
    ) -> Path:
        tables = {
            "gateway": {"profile": profile} if profile else {},
            "profiles.patient": {"extends": "default"},
            "profiles.patient.sets": {"wait.tools_list": 60},
            **{f"upstreams.{name}": upstream for name, upstream in upstreams.items()},
            **more,
        }
        lines: list[str] = []
        for name, table in tables.items():
            # Texts, numbers and lists of texts are written in TOML as in JSON.
            lines += [f"[{name}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items())]
        path = tmp_path_factory.mktemp("config") / "mcp-gateway.toml"
        path.write_text("\n".join(lines), "utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def served(configure: Callable[..., Path]) -> Callable[..., AbstractContextManager[str]]:
    """Serve these upstreams over HTTP, in a process of its own; gives its address, without a path, when all are there.

    For fixtures: it runs an event loop.
    """

    @contextmanager
    def serve(upstreams: Mapping[str, Any]) -> Generator[str]:
        command = [*COMMAND, "--config", str(configure(upstreams)), "--http", "--port", "0"]
        with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said: list[str] = []
            try:
                for line in process.stderr:
                    said.append(line)
                    if line.startswith("listening on "):
                        break
                else:
                    pytest.fail("the gateway did not start:\n" + "".join(said), pytrace=False)
                address = said[-1].split()[2].removesuffix("/mcp")
                rest = threading.Thread(target=lambda stderr=process.stderr: said.extend(stderr), daemon=True)
                rest.start()
                anyio.run(offered, f"{address}/mcp/patient")
                yield address
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0, "".join(said)
                rest.join(PATIENCE)
            finally:
                process.kill()

    return serve


async def offered(url: str) -> None:
    """Wait until every upstream is there."""
    with anyio.fail_after(PATIENCE):
        async with connected(StreamableHttp(url), SIMULATORS["unknown"]) as connection:
            await connection.tools()


@pytest.fixture(scope="session")
def on_stdio(configure: Callable[..., Path]) -> Callable[[Mapping[str, Any]], list[str]]:
    """How to start a gateway on stdio, in front of these upstreams."""
    return lambda upstreams: [*COMMAND, "--config", str(configure(upstreams, profile="patient"))]


@pytest.fixture(scope="session")
def programs(missing: Missing, installed: Callable[[str], None], node_modules: Path) -> Callable[[str], list[str]]:
    """How to start a client, by its name."""

    def command(client: str) -> list[str]:
        if (script := CLIENTS / f"with_{client}.mjs").exists():
            return ["node", str(script)]
        if client in PACKAGES:
            installed(PACKAGES[client])
            return [sys.executable, str(CLIENTS / f"with_{client}.py")]
        if not OLD_CLIENTS.exists():
            missing(f"the environment of {client}", "run `make setup`, and the tests with .venv/bin/python")
        return [str(OLD_CLIENTS), str(CLIENTS / f"with_{client}.py")]

    return command


@pytest.fixture
def run(programs: Callable[[str], list[str]], tmp_path: Path) -> Callable[..., Outcome]:
    """Let a client do a job (the fields that it needs) in an empty home."""

    def do(client: str, **job: Any) -> Outcome:
        done = subprocess.run(
            [*programs(client), json.dumps({"mode": "auto", "env": NEEDED, **job})],
            cwd=tmp_path,
            env=environment(HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        told = json.loads(done.stdout)
        images = [(media_type, data) for media_type, data in told["images"]]
        return Outcome(told["revision"], told["tools"], told["texts"], images)

    return do
