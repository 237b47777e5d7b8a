"""A host as its file in `hosts/` describes it, and where it is installed: a program of its vendor, from npm or PyPI."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.api_notes import NOTES, ApiNotes, notes_in
from lab.frameworks import MODELS, LabError, run_command

FILES = Path(__file__).parent / "hosts"
UNAVAILABLE = FILES / "unavailable.toml"
INSTALLED = Path(sys.prefix) / "lab"
NODE = Path(sys.prefix) / "node"
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


@dataclass(frozen=True)
class HostApi(ApiNotes):
    """A model API that a host speaks, and how the host is set up for it.

    `files` are written into its home, by their path in it. They and `start` and `environment` may have placeholders:
    `lab.host_run` says which.
    """

    name: str
    model: str
    profile: str
    start: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Host:
    """One host. `requirement` is what npm or pip installs: one package with its exact version."""

    name: str
    title: str
    installer: str
    requirement: str
    apis: tuple[HostApi, ...]
    scripts: bool = False
    """Whether the packages' own install scripts have to run."""
    beside: tuple[str, ...] = ()
    """Further packages that it needs."""
    seconds: float = 120
    """How long one session may take."""
    python: str = ""
    """The version of Python that it needs, such as `3.12`, if the lab's own may be too old."""

    @property
    def home(self) -> Path:
        """The folder that it is installed in."""
        return INSTALLED / self.name

    @property
    def programs(self) -> Path:
        """The folder with its commands."""
        return self.home / ("node_modules/.bin" if self.installer == "npm" else Path(sys.executable).parent.name)

    @property
    def package(self) -> str:
        """The name of its package."""
        return self.requirement.rpartition("@" if self.installer == "npm" else "==")[0].rstrip("=")

    def version(self) -> str:
        """The version of its package."""
        return self.requirement.rpartition("@" if self.installer == "npm" else "==")[2]

    def install(self) -> None:
        """Install it, unless this very version is there.

        Raises:
            LabError: it cannot be installed.
        """
        mark = self.home / "installed.json"
        wanted = json.dumps([self.requirement, *self.beside])
        if self.installer == "none" or (mark.exists() and mark.read_text("utf-8") == wanted):
            return
        print(f"installing {self.requirement} into {self.home} ...", flush=True)
        self.home.mkdir(parents=True, exist_ok=True)
        if self.installer == "npm":
            self._install_with_npm()
        else:
            self._install_with_pip()
        mark.write_text(wanted, "utf-8")

    def _install_with_npm(self) -> None:
        (self.home / "package.json").write_text('{"private": true}\n', "utf-8")
        npm = [str(NODE / "bin" / "node"), str(NPM), "install", "--no-audit", "--no-fund", "--save-exact"]
        scripts = "--foreground-scripts" if self.scripts else "--ignore-scripts"
        run_command([*npm, scripts, self.requirement, *self.beside], cwd=self.home, path=NODE / "bin")

    def _install_with_pip(self) -> None:
        python = self.home / Path(sys.executable).relative_to(sys.prefix)
        run_command([self._interpreter(), "-m", "venv", "--clear", "--without-pip", str(self.home)])
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--no-input", "--python", str(python)]
        run_command([*pip, "install", "--no-compile", self.requirement, *self.beside])

    def _interpreter(self) -> str:
        if not self.python:
            return sys.executable
        name = f"python{self.python}"
        for folder in os.get_exec_path():
            # A version manager may have one there that only says which versions it could start.
            if (found := shutil.which(name, path=folder)) and _starts(found):
                return found
        raise LabError(f"{self.title} needs Python {self.python}: no {name} is on PATH that starts")


def _starts(interpreter: str) -> bool:
    return not subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode


def hosts(names: str = "", folder: Path = FILES) -> tuple[Host, ...]:
    """Those that are named, separated by blanks or commas; all of them when none is.

    Raises:
        LabError: a name is unknown, or a file is not as it should be.
    """
    known = host_files(folder)
    wanted = names.replace(",", " ").split() or list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise LabError(f"no host is called {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(load_host(known[name]) for name in wanted)


def host_files(folder: Path = FILES) -> Mapping[str, Path]:
    """The file of every host by the host's name."""
    return {path.stem: path for path in sorted(folder.glob("*.toml")) if path.name != UNAVAILABLE.name}


def unavailable() -> Mapping[str, Mapping[str, str]]:
    """The hosts that cannot be run here: `title`, and `why`, by name."""
    return tomllib.loads(UNAVAILABLE.read_text("utf-8"))


def load_host(path: Path) -> Host:
    """Read a host's file.

    Raises:
        LabError: it is not as it should be.
    """
    data = tomllib.loads(path.read_text("utf-8"))
    try:
        return _host(path.stem, data)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path}: {type(error).__name__}: {error}") from error


def _host(name: str, data: Mapping[str, Any]) -> Host:
    known = {"title", "npm", "pypi", "program", "profile", "start", "files", "environment", "apis"}
    if unknown := set(data) - known - {*("simulator", "scripts", "beside", "seconds", "python"), *NOTES}:
        raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
    installer = next((kind for kind in ("npm", "pypi") if kind in data), "none")
    apis = tuple(_api(api, data, values) for api, values in data["apis"].items())
    return Host(
        name,
        data["title"],
        installer,
        data.get(installer, ""),
        apis,
        data.get("scripts", False),
        tuple(data.get("beside", ())),
        data.get("seconds", 120),
        data.get("python", ""),
    )


def _api(name: str, host: Mapping[str, Any], own: Mapping[str, Any]) -> HostApi:
    return HostApi(
        name,
        own.get("model") or MODELS[name],
        own.get("profile") or host["profile"],
        own.get("start") or host["start"],
        {**host.get("files", {}), **own.get("files", {})},
        {**host.get("environment", {}), **own.get("environment", {})},
        **notes_in(host, own),
    )
