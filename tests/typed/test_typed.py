"""The package is typed for those who use it: mypy and pyright see its types, and a wrong choice."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The program as a project of its own, which only has the package installed."""
    shutil.copy(PROGRAM, tmp_path / "program.py")
    return tmp_path


def test_mypy_sees_the_types(project: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "program.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=240)
    assert "1 error in 1 file" in done.stdout, done.stdout + done.stderr
    assert 'Argument "on_unsupported" to "lower_turn_now" has incompatible type' in done.stdout, done.stdout


def test_pyright_sees_the_types(project: Path, node_modules: Path) -> None:
    settings = {"typeCheckingMode": "strict", "reportMissingModuleSource": False}
    (project / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = ["node", str(node_modules / "pyright" / "index.js"), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run([*command, "-p", "."], cwd=project, capture_output=True, text=True, check=False, timeout=240)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [one["rule"] for one in found] == ["reportArgumentType"], done.stdout
    assert "on_unsupported" in found[0]["message"]
