"""The commands of the Makefile, as far as they can be tried without the network."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run make without what an outer make has left in the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_setting_up_a_second_time_does_nothing(node_modules: Path, wheelhouse: Path) -> None:
    assert make("--question", "setup").returncode == 0, "something changed since: make setup"


def test_help_is_the_default_and_lists_every_command() -> None:
    phony = re.search(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)
    assert phony is not None
    documented = {target for target in phony[1].split() if not target.startswith("check-")}
    listed = re.findall(r"^  make (\S+) +\S", make().stdout, re.MULTILINE)
    assert set(listed) == documented
    assert make("help").stdout == make().stdout


def test_the_hooks_of_pre_commit_are_the_checks_of_make_and_fetch_nothing() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    checks = re.search(r"^check: (.*?) ##", MAKEFILE, re.MULTILINE)
    assert checks is not None
    assert re.findall(r"entry: make (\S+)", hooks) == checks[1].split()
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]


def test_a_python_that_is_too_old_is_refused_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 || exit 1\n')
    old.chmod(0o755)
    done = make(f"PYTHON={old}", f"VENV={tmp_path / 'venv'}", "setup")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == (
        f"Python 3.11 or newer is needed, and {old} is Python 3.9.2; choose another: make PYTHON=python3.12 setup"
    )
    assert not (tmp_path / "venv").exists()


def test_a_python_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = make("PYTHON=python3.99", f"VENV={tmp_path / 'venv'}", "setup")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr.splitlines()[0]
    assert "python3.99" in done.stderr.splitlines()[0]
