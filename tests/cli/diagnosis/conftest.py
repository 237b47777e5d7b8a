"""Servers with planted faults, and examinations of them."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from gateway.cli.diagnosis.doctor import diagnose
from gateway.cli.diagnosis.findings import CheckResult, Diagnosis

SERVERS = Path(__file__).parents[2] / "servers"


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch) -> Path:
    """A home of one's own: what the hosts of this machine have is not examined."""
    folder = tmp_path_factory.mktemp("home")
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    for variable in ("XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(folder / ".config"))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "CLINE_DIR", "CLINE_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("CLINE_MCP_SETTINGS_PATH", raising=False)
    return folder


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., str]:
    """The lines of an upstream's table, for a server with these tools."""

    def write(*tools: object, **more: object) -> str:
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"tools": tools, "results": {}, **more}))
        arguments = json.dumps([str(SERVERS / "scripted_stdio.py"), str(path)])
        return f"command = {json.dumps(sys.executable)}\nargs = {arguments}\n"

    return write


@pytest.fixture
def examine(tmp_path: Path):
    """Examine a configuration, given as text; the environment is this process's unless one is given."""

    async def run(text: str, *, name: str = "mcp-gateway.toml", environ=None, **more) -> Diagnosis:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        with anyio.fail_after(60):
            given = os.environ if environ is None else {"MCP_GATEWAY_CACHE": "", **environ}
            return await diagnose(path, given, **more)

    return run


@pytest.fixture
def found():
    """The one finding whose text holds these words."""

    def find(diagnosis: Diagnosis, words: str) -> CheckResult:
        matching = [finding for finding in diagnosis.findings if words in finding.text]
        assert len(matching) == 1, [f"{one.level} {one.about}: {one.text}" for one in diagnosis.findings]
        return matching[0]

    return find
