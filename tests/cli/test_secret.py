"""`mcp-gateway secret`: the keyring as the configuration reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gateway(tmp_path):
    """Runs the command with a keyring of its own."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHON_KEYRING_BACKEND": "tests.keyring_file.FileKeyring",
        "KEYRING_FILE": str(tmp_path / "ring.json"),
    }

    def run(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway", *arguments]
        return subprocess.run(
            command, input=typed, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def test_a_secret_is_stored_used_and_removed(gateway, tmp_path):
    (tmp_path / "mcp-gateway.toml").write_text("[gateway]\nname = '${keyring:name}'\n", "utf-8")
    absent = gateway("config", "check")
    assert absent.returncode == 2
    assert "`mcp-gateway secret set name` stores it" in absent.stderr + absent.stdout

    stored = gateway("secret", "set", "name", typed="s3cr3t\n")
    assert (stored.returncode, stored.stdout) == (0, "stored; write ${keyring:name} where the configuration needs it\n")
    assert gateway("config", "check").returncode == 0

    assert gateway("secret", "rm", "name").returncode == 0
    again = gateway("secret", "rm", "name")
    assert (again.returncode, "the keyring has no entry name" in again.stderr) == (2, True)


@pytest.mark.parametrize(("name", "typed"), [("name", ""), ("name", " \n"), ("", "x"), ("a}", "x")])
def test_nothing_is_stored_of_nothing(gateway, tmp_path, name, typed):
    assert gateway("secret", "set", name, typed=typed).returncode == 2
    assert not (tmp_path / "ring.json").exists()
