"""The bundle for Claude Desktop: that a host can read it, and that what it holds serves."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import jsonschema
import pytest
from packaging.requirements import Requirement

import gateway

ROOT = Path(__file__).parents[2]

# Version 0.4 of the specification, as far as the manifest uses it; a field that it does not know is refused.
TEXT = {"type": "string", "minLength": 1}
FIELDS = {
    "manifest_version": {"const": "0.4"},
    "name": {"type": "string", "pattern": "^[a-z0-9-]+$"},
    "display_name": TEXT,
    "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    "description": TEXT,
    "long_description": TEXT,
    "author": {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "additionalProperties": False},
    "license": TEXT,
    "keywords": {"type": "array", "items": TEXT},
    "tools_generated": {"type": "boolean"},
    "server": {
        "type": "object",
        "properties": {
            "type": {"const": "uv"},
            "entry_point": TEXT,
            "mcp_config": {
                "type": "object",
                "properties": {"command": TEXT, "args": {"type": "array", "items": TEXT}},
                "required": ["command"],
                "additionalProperties": False,
            },
        },
        "required": ["type", "entry_point"],
        "additionalProperties": False,
    },
    "user_config": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "type": {"enum": ["string", "number", "boolean", "directory", "file"]},
                "title": TEXT,
                "description": TEXT,
                "required": {"type": "boolean"},
            },
            "required": ["type", "title", "description"],
            "additionalProperties": False,
        },
    },
    "compatibility": {
        "type": "object",
        "properties": {
            "platforms": {"type": "array", "items": {"enum": ["darwin", "win32", "linux"]}},
            "runtimes": {"type": "object", "properties": {"python": TEXT}, "additionalProperties": False},
        },
        "additionalProperties": False,
    },
}
SPECIFIED = {
    "type": "object",
    "properties": FIELDS,
    "required": ["manifest_version", "name", "version", "description", "author", "server"],
    "additionalProperties": False,
}


def build(folder: Path) -> Path:
    """The bundle, built as `make build` does."""
    command = [sys.executable, ROOT / "bundle" / "mcpb.py", folder]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bundle") / "dist")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Path:
    folder = tmp_path_factory.mktemp("an extension")
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def manifest(unpacked: Path) -> dict:
    return json.loads((unpacked / "manifest.json").read_text("utf-8"))


def test_its_manifest_follows_the_specification(manifest: dict) -> None:
    assert [error.message for error in jsonschema.Draft202012Validator(SPECIFIED).iter_errors(manifest)] == []


def test_its_manifest_says_what_the_package_says_of_itself(manifest: dict, bundle: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (manifest["name"], manifest["version"]) == ("mcp-gateway", gateway.__version__)
    assert (manifest["description"], manifest["license"]) == (project["description"], "MIT")
    assert manifest["compatibility"]["runtimes"] == {"python": ">=3.11"}
    assert bundle.name == f"mcp-gateway-{gateway.__version__}.mcpb"


def test_it_asks_for_the_configuration_and_starts_the_gateway_with_it(manifest: dict, unpacked: Path) -> None:
    config = manifest["user_config"]["config"]
    assert (config["type"], config["required"]) == ("file", True)
    launched = manifest["server"]["mcp_config"]
    assert launched["command"] == "uv"
    assert launched["args"][:3] == ["run", "--project", "${__dirname}"]
    assert launched["args"][3:] == ["mcp-gateway", "serve", "--config", "${user_config.config}"]
    assert (unpacked / manifest["server"]["entry_point"]).is_file()


def test_it_holds_every_file_of_the_package_and_no_other_code(bundle: Path) -> None:
    paths = (path for path in (ROOT / "gateway").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    packaged = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    packaged["gateway/cli/demo/mcp-gateway.toml"] = (ROOT / "mcp-gateway.toml").read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert held.keys() == packaged.keys() | {"manifest.json", "pyproject.toml", "LICENSE"}
    assert {name: held[name] for name in packaged} == packaged


def test_uv_gets_the_dependencies_at_their_locked_versions(unpacked: Path) -> None:
    read = tomllib.loads((unpacked / "pyproject.toml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert read["project"]["dependencies"] == project["dependencies"]
    assert read["project"]["scripts"] == project["scripts"]
    locked = [Requirement(line) for line in read["tool"]["uv"]["constraint-dependencies"]]
    lines = re.findall(r"^[a-z0-9]\S*==", (ROOT / "requirements" / "runtime.txt").read_text("utf-8"), re.MULTILINE)
    assert [f"{one.name}==" for one in locked] == lines
    assert {Requirement(line).name for line in project["dependencies"]} <= {one.name for one in locked}
    assert "hatchling" in {Requirement(line).name for line in read["tool"]["uv"]["build-constraint-dependencies"]}


def test_the_same_files_give_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "again").read_bytes() == bundle.read_bytes()


def test_what_it_holds_answers_a_host_over_stdio(unpacked: Path, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text("")
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-ai", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "serve", "--config", config],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        input=json.dumps(hello) + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (answer,) = [json.loads(line) for line in done.stdout.splitlines() if '"id":1' in line.replace(" ", "")]
    assert answer["result"]["serverInfo"]["version"] == gateway.__version__


def test_python_finds_the_package_in_the_unpacked_bundle(unpacked: Path, tmp_path: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import gateway; print(gateway.__file__)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    ).stdout
    assert Path(where.strip()).is_relative_to(unpacked)
