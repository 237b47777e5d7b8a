"""A framework as its file in `frameworks/` describes it, and where it is installed."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.api_notes import ApiNotes, notes_in

ROOT = Path(__file__).resolve().parent.parent
FILES = Path(__file__).parent / "frameworks"
PROGRAMS = ROOT / "examples" / "agents"
INSTALLED = Path(sys.prefix) / "frameworks"
PYTHON = Path(sys.executable).relative_to(sys.prefix)
SHARED = {
    "development": Path(sys.prefix),
    "clients": Path(sys.prefix) / "clients",
    "data-designer": Path(sys.prefix) / "data-designer",
}
"""Environments that `make setup` makes."""
MODELS = {
    "openai_chat": "gpt-5.5",
    "openai_responses": "gpt-5.5",
    "anthropic_messages": "claude-sonnet-5",
    "gemini": "gemini-3-pro",
}
"""The model that is asked for, by API."""


class LabError(Exception):
    """The lab cannot go on; the message says why."""


@dataclass(frozen=True)
class Api(ApiNotes):
    """A model API that a framework speaks: the model it asks for, and the profile to name for it at the gateway."""

    name: str
    model: str
    profile: str


@dataclass(frozen=True)
class Framework:
    """One framework. `environment` is one of `SHARED`, or None for one of its own."""

    name: str
    title: str
    package: str
    program: Path
    environment: str | None
    apis: tuple[Api, ...]
    separator: str = "__"
    """What its tools have between the server and the tool, where it writes the gateway's names anew."""
    prefix: str = ""
    """What it puts before the name of every tool."""

    @property
    def home(self) -> Path:
        """The environment's folder."""
        return SHARED[self.environment] if self.environment else INSTALLED / self.name

    @property
    def python(self) -> Path:
        """The interpreter that has the framework."""
        return self.home / PYTHON

    @property
    def requirements(self) -> Path:
        """What to install, where it has an environment of its own."""
        return PROGRAMS / "requirements" / f"{self.name}.in"

    def version(self) -> str:
        """The installed version of its package."""
        asked = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        return run_command([str(self.python), "-c", asked]).strip()

    def install(self) -> None:
        """Make its environment, unless it is there with these very requirements."""
        if self.environment is not None:
            if not self.python.exists():
                raise LabError(f"{self.home} is missing: run `make setup`")
            return
        mark = self.home / "installed.json"
        digest = hashlib.sha256(self.requirements.read_bytes()).hexdigest()
        if mark.exists() and json.loads(mark.read_text("utf-8")) == digest:
            return
        print(f"installing {self.name} into {self.home} ...", flush=True)
        run_command([sys.executable, "-m", "venv", "--clear", "--without-pip", str(self.home)])
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--no-input"]
        run_command([*pip, "--python", str(self.python), "install", "--no-compile", "-r", str(self.requirements)])
        mark.write_text(json.dumps(digest), "utf-8")


def frameworks(names: str = "") -> tuple[Framework, ...]:
    """Those that are named, separated by blanks or commas; all of them when none is.

    Raises:
        LabError: a name is unknown.
    """
    known = framework_files()
    wanted = names.replace(",", " ").split() or list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise LabError(f"no framework is called {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(_framework(name, tomllib.loads(known[name].read_text("utf-8"))) for name in wanted)


def framework_files() -> Mapping[str, Path]:
    """The file of every framework by the framework's name."""
    return {path.stem: path for path in sorted(FILES.glob("*.toml"))}


def _framework(name: str, data: Mapping[str, Any]) -> Framework:
    apis = (
        Api(api, values.get("model") or MODELS[api], values.get("profile", "default"), **notes_in(data, values))
        for api, values in data["apis"].items()
    )
    program = PROGRAMS / data.get("program", f"with_{name.replace('-', '_')}.py")
    return Framework(
        name,
        data["title"],
        data["package"],
        program,
        data.get("environment"),
        tuple(apis),
        data.get("separator", "__"),
        data.get("prefix", ""),
    )


def run_command(command: Sequence[str], cwd: Path | None = None, path: Path | None = None) -> str:
    """What a command prints. `path` is a folder that comes first among those of commands.

    Raises:
        LabError: it failed.
    """
    variables = {**os.environ, **({"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} if path else {})}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=variables, cwd=cwd, check=False
    )
    if done.returncode:
        raise LabError(f"{' '.join(command[:4])} ... ended with {done.returncode}:\n{done.stderr[-2_000:]}")
    return done.stdout
