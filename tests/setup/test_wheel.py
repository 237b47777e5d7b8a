"""The wheel, installed alone in an empty environment: what it holds, and that its commands run from anywhere."""

import email
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import gateway

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, stdin: str | None = None) -> str:
    """What the command writes to stdout. It gets no more of the environment than a user's shell would give it."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, input=stdin, capture_output=True, encoding="utf-8", timeout=500, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> Path:
    """The wheel, built as `make build` does."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path, wheelhouse: Path) -> Path:
    """The folder of commands of an environment in which nothing but the wheel was asked for."""
    folder = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-qq", "--no-index", "-f", wheelhouse, wheel, cwd=folder)
    return folder / "bin"


def tracked(folder: str, *suffixes: str) -> set[str]:
    """The files under a folder of the project, without what Python and tools leave there."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths if not suffixes or path.suffix in suffixes}


def test_it_holds_the_package_the_profiles_the_examples_and_the_shipped_configuration(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    examples = {f"gateway_examples/{name.removeprefix('examples/')}" for name in tracked("examples")}
    assert names == tracked("gateway") | examples | {"gateway/cli/demo/mcp-gateway.toml"}
    assert tracked("gateway/hosts/profiles", ".toml") <= names


def test_it_says_who_it_is_and_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"mcp_multimodal_gateway-{gateway.__version__}.dist-info"
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        commands = archive.read(f"{info}/entry_points.txt").decode()
        licence = archive.read(f"{info}/licenses/LICENSE").decode()
    assert metadata["Name"] == "mcp-multimodal-gateway"
    assert metadata["Version"] == gateway.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("Provides-Extra") == ["audio", "code", "heic", "otel", "postgres", "redis"]
    assert "mcp-gateway = gateway.cli.main:main" in commands
    assert "mcp-multimodal-gateway = gateway.cli.main:main" in commands
    assert licence == (ROOT / "LICENSE").read_text("utf-8")


def test_it_runs_from_its_own_files(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import gateway; print(gateway.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(installed / "mcp-gateway", "--version", cwd=tmp_path) == f"mcp-gateway {gateway.__version__}\n"


@pytest.mark.parametrize("name", ["mcp-gateway", "mcp-multimodal-gateway"])
def test_uvx_runs_it_from_the_wheel_by_either_name_and_by_none(
    name: str, wheel: Path, wheelhouse: Path, tmp_path: Path
) -> None:
    uvx = [Path(sys.executable).parent / "uvx", "--no-config", "--cache-dir", tmp_path / "cache", "--offline"]
    only = ["--no-index", "--find-links", wheelhouse, "--python", sys.executable]
    for what in (["--from", wheel, name], [wheel]):
        assert run(*uvx, *only, *what, "--version", cwd=tmp_path) == f"mcp-gateway {gateway.__version__}\n"


def test_it_lists_the_profiles_that_are_its_data(installed: Path, tmp_path: Path) -> None:
    listed = run(installed / "mcp-gateway", "profiles", cwd=tmp_path)
    names = {Path(name).stem for name in tracked("gateway/hosts/profiles", ".toml")}
    assert {name for name in names if name in listed.split()} == names
    assert "claude-desktop" in names


def test_it_serves_a_bundled_example_over_stdio(installed: Path, tmp_path: Path) -> None:
    command = [installed / "mcp-gateway", "serve", "--", str(installed / "python"), "-m", "gateway_examples.charts"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(message), file=process.stdin, flush=True)
            while "id" not in (answer := json.loads(process.stdout.readline())):
                pass
            assert answer["id"] == number
            return answer["result"]

        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert request(1, "initialize", hello)["serverInfo"]["version"] == gateway.__version__
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=process.stdin, flush=True)
        names = [tool["name"] for tool in request(2, "tools/list", {})["tools"]]
        (tool,) = [name for name in names if name.endswith("draw_chart")]
        content = request(3, "tools/call", {"name": tool, "arguments": {}})["content"]
        assert [block["mimeType"] for block in content if block["type"] == "image"] == ["image/png"]
        process.stdin.close()
        assert process.wait(30) == 0


def test_its_demo_shows_every_image_that_a_host_over_http_and_one_over_stdio_can_show(
    installed: Path, tmp_path: Path
) -> None:
    # With every host, the same code is run by tests/cli/demo: what may differ here is where things are found.
    two = "demo_run.FIRST = demo_run.FIRST[:2]"
    begun = f"import sys; from gateway.cli.demo import demo_run; {two}; from gateway.cli.main import main"
    shown = run(installed / "python", "-c", f"{begun}; sys.exit(main(['demo']))", cwd=tmp_path)
    right, of = re.findall(r"^through the gateway: +(\d+) of (\d+)", shown, re.MULTILINE)[0]
    assert right == of == "36"
    report = (tmp_path / "demo-report.html").read_text("utf-8")
    assert "base64," in report
    assert all(host in report for host in ("Claude Code", "Claude Desktop"))
