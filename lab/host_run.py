"""One host over the cases: alone, and with the gateway before the same server.

It is started in a home of its own, with the environment that its file gives and nothing else, once for many cases. What
it shows its model is read from the requests that reach the stand-ins of the model APIs.
"""

import json
import os
import shlex
import signal
import string
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from gateway.hosts.simulators.originals import original_images
from gateway.testing.model_apis.server import ModelServer, model_server
from lab.case_model import PREFIX, CaseModel, prompt
from lab.cases import Case
from lab.frameworks import ROOT, LabError
from lab.host_models import body_of, host_models
from lab.hosts import NODE, Host, HostApi
from lab.judge import Finding, in_short
from lab.judge_session import judge_session
from lab.serve_models import serve_models

SETTINGS = ("alone", "gateway")
ALONE = ("photo", "many")
"""Cases that get a session of their own: what is large weighs on all that follows."""
CALLS = "calls"
"""The file with the tools that were called in a session."""
_CONFIG = """[upstreams.cases]
command = {command}

[profiles.lab]
extends = "{profile}"
sets.wait.tools_list = "60s"
"""
"""A busy machine may take longer to start the gateway and its upstream than a host's user would wait."""
_ENDS_WITHIN = 10.0


@dataclass(frozen=True)
class HostStage:
    """What hosts run against: the stand-ins with their record, and the two programs that serve the cases."""

    models: str
    app: ModelServer
    servers: Mapping[str, Path]
    folder: Path
    marks: "count[int]" = field(default_factory=lambda: count(1))


@contextmanager
def host_stage(api: HostApi, cases: Mapping[str, Case]) -> Generator[HostStage]:
    """The stage for one host on one model API."""
    app = model_server(CaseModel({name: tuple(case.results) for name, case in cases.items()}))
    with tempfile.TemporaryDirectory() as name, serve_models(host_models(app, (api.model,))) as models:
        folder = Path(name)
        results = {PREFIX + tool: result for case in cases.values() for tool, result in case.results.items()}
        (folder / "results.json").write_text(json.dumps(results), "utf-8")
        config = folder / "mcp-gateway.toml"
        served = [sys.executable, "-m", "lab.case_server", str(folder / "results.json"), str(folder / CALLS)]
        alone = write_program(folder / "cases", served)
        config.write_text(_CONFIG.format(command=json.dumps(str(alone)), profile=api.profile), "utf-8")
        serve = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--profile", "lab"]
        yield HostStage(models, app, {"alone": alone, "gateway": write_program(folder / "gateway", serve)}, folder)


def write_program(path: Path, command: Sequence[str]) -> Path:
    """A program that runs this command, as hosts are given one: they may pass on no environment."""
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.join(command)}\n", "utf-8")
    path.chmod(0o755)
    return path


def run_host(host: Host, api: HostApi, setting: str, on: HostStage, cases: Mapping[str, Case]) -> dict[str, Finding]:
    """What became of every case.

    A case that fails or is refused after others is run again in a session that it begins.

    Raises:
        LabError: not one request of the host reached the model API.
    """
    together = [name for name in cases if name not in ALONE]
    waiting = [together, *([name] for name in cases if name in ALONE)]
    waiting = [session for session in waiting if session]
    found: dict[str, Finding] = {}
    while waiting:
        session = waiting.pop(0)
        wanted = {name: cases[name] for name in session}
        seen, ended = _session(host, api, setting, on, wanted)
        if not seen and not _called(on):  # it may have begun before its servers were there
            seen, ended = _session(host, api, setting, on, wanted)
        for at, name in enumerate(session):
            finding = seen.get(name)
            if (finding is None or finding.word == "refused") and at:
                waiting.insert(0, session[at:])
                break
            images = len(original_images(cases[name].whole))
            found[name] = finding or Finding("failed", 0, images, in_short(ended[-150:]))
            if finding is None or finding.word == "refused":
                waiting[:0] = [session[1:]] if session[1:] else []
                break
    return {name: found[name] for name in cases}


def _session(
    host: Host, api: HostApi, setting: str, on: HostStage, cases: Mapping[str, Case]
) -> tuple[dict[str, Finding], str]:
    mark = f"lab-{host.name}-{setting}-{next(on.marks)}"
    before = len(on.app.requests)
    (on.folder / CALLS).unlink(missing_ok=True)
    ended = start_host(host, api, setting, on, prompt(mark, list(cases)))
    requests = on.app.requests[before:]
    bodies = [body for one in requests if mark.encode() in one.body and (body := body_of(one.body, api.model))]
    if not bodies:
        raise LabError(f"{host.name}, {api.name}, {setting}: its model was not asked; it said:\n{ended}")
    called = _called(on)
    found = judge_session(api.name, bodies, cases)
    # What no server was asked for is no result, whatever the host told its model.
    return {name: found[name] for name in found if called >= {PREFIX + tool for tool in cases[name].results}}, ended


def _called(on: HostStage) -> set[str]:
    calls = on.folder / CALLS
    return set(calls.read_text("utf-8").split()) if calls.exists() else set()


def start_host(host: Host, api: HostApi, setting: str, on: HostStage, asked: str) -> str:
    """Run the host once, in an empty home; return the end of what it said."""
    with tempfile.TemporaryDirectory(dir=on.folder) as name:
        home, work = Path(name) / "home", Path(name) / "work"
        work.mkdir(parents=True)
        values = {
            "command": str(on.servers[setting]),
            "models": on.models,
            "model": api.model,
            "prompt": asked,
            "home": str(home),
            "work": str(work),
            "installed": str(host.home),
            "python": sys.executable,
            "root": str(ROOT),
        }
        for path, text in api.files.items():
            file = home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(text, values), "utf-8")
        home.mkdir(exist_ok=True)
        command = [_filled(part, values) for part in api.start]
        given = {name: _filled(value, values) for name, value in api.environment.items()}
        return _run(command, work, {**_environment(host, home), **given}, host.seconds)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return string.Template(text).safe_substitute(values)


def _environment(host: Host, home: Path) -> dict[str, str]:
    path = [str(host.programs), str(NODE / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    own = {"HOME": str(home), "PATH": os.pathsep.join(path), "TMPDIR": str(home.parent), "LANG": "C.UTF-8"}
    return {**nowhere, **own, "TERM": "dumb", "CI": "1", "NO_COLOR": "1", "DO_NOT_TRACK": "1"}


def _run(command: Sequence[str], work: Path, variables: Mapping[str, str], seconds: float) -> str:
    with (work.parent / "said").open("w+b") as said:
        process = subprocess.Popen(
            command,
            cwd=work,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
            end = f"[ended with {process.returncode}]"
        except subprocess.TimeoutExpired:
            end = f"[did not end within {seconds:.0f} s]"
        finally:
            _end(process)
        said.seek(0)
        return said.read().decode("utf-8", "replace")[-4_000:] + end


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a host and everything that it started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(_ENDS_WITHIN)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
