"""Run frameworks over the cases in every setting, and write what came of it: `python -m lab.run [FRAMEWORK ...]`.

One case server, one gateway before it and one set of stand-ins of the model APIs serve all runs. The word that a cell
gets comes from the requests that reached the stand-ins, not from what the framework says.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.testing.model_apis.server import Recorded, model_server
from lab.case_server import case_server
from lab.cases import Case, cases
from lab.frameworks import ROOT, Api, Framework, LabError, frameworks
from lab.judge import Finding, find
from lab.record import FOLDER, written
from lab.serve_models import serve_models

SECONDS = 180
"""How long a program may take for one case before it counts as hanging: the first one may import half a framework."""
DRIVER = Path(__file__).parent / "drive.py"
UPSTREAM = "cases"
SETTINGS = ("alone", "gateway", "profile", "proxy")
Findings = Mapping[str, Mapping[str, Mapping[str, Finding]]]
"""By API, by setting, by case."""


@dataclass(frozen=True)
class Stage:
    """The addresses that programs are given, and what the stand-ins were asked."""

    cases: str
    gateway: str
    models: str
    proxy: str
    requests: list[Recorded]
    folder: str
    """Where programs may write."""

    def server(self, setting: str, profile: str) -> str:
        """The MCP server of a program."""
        if setting == "alone":
            return self.cases
        return f"{self.gateway}/mcp" if setting == "gateway" else f"{self.gateway}/mcp/{profile}"

    def model(self, setting: str) -> str:
        """The model API of a program."""
        return self.proxy if setting == "proxy" else self.models


@contextmanager
def stage(chosen: Mapping[str, Case]) -> Generator[Stage]:
    """Everything that programs run against."""
    results = {name: result for case in chosen.values() for name, result in case.results.items()}
    app = model_server()
    with tempfile.TemporaryDirectory() as folder, case_server(results) as upstream, serve_models(app) as models:
        config = Path(folder) / "mcp-gateway.toml"
        config.write_text(
            f'[upstreams.{UPSTREAM}]\nurl = "{upstream}"\n[model_proxy]\nto = "{models}"\nport = 0\n', "utf-8"
        )
        with _gateway(config) as (gateway, proxy):
            yield Stage(upstream, gateway, models, proxy, app.requests, folder)


@contextmanager
def _gateway(config: Path) -> Generator[tuple[str, str]]:
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--http", "--port", "0"]
    wanted = (r"listening on (http://[\d.:]+)/mcp", r"(http://127\.0\.0\.1:\d+)\s+Anthropic")
    with subprocess.Popen(command, cwd=config.parent, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                said += line
                found = [match[1] for pattern in wanted if (match := re.search(pattern, said))]
                if len(found) == len(wanted):
                    break
            else:
                raise LabError(f"the gateway did not start:\n{said}")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield found[0], found[1]
        finally:
            process.terminate()
            process.wait(SECONDS)


def environment(**more: str) -> dict[str, str]:
    """Of every process: nothing leaves the machine."""
    nowhere = {
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
        "NEMO_TELEMETRY_ENABLED": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
    }
    return {**os.environ, "PYTHONPATH": str(ROOT), **nowhere, **more}


def run(framework: Framework, on: Stage, chosen: Mapping[str, Case], settings: Iterable[str] = SETTINGS) -> Findings:
    """One framework over the cases, in every setting and on every API."""
    return {
        api.name: {setting: _run(framework, api, setting, on, chosen) for setting in settings} for api in framework.apis
    }


def _run(framework: Framework, api: Api, setting: str, on: Stage, chosen: Mapping[str, Case]) -> Mapping[str, Finding]:
    marks = {name: f"{framework.name} {api.name} {setting} {name}." for name in chosen}
    asked = prompts(framework, setting, chosen, marks)
    ended = _driven(framework, api, asked, on, setting)
    found = {
        name: find(api.name, api.model, case.whole, _of(on.requests, marks[name]), ended.get(name))
        for name, case in chosen.items()
    }
    _tell(f"{framework.name}, {api.name}, {setting}", found)
    return found


def prompts(
    framework: Framework, setting: str, chosen: Mapping[str, Case], marks: Mapping[str, str]
) -> Mapping[str, str]:
    """What is asked, by case: its mark, and the calls that the stand-in's model makes of it."""
    prefix = framework.prefix + ("" if setting == "alone" else f"{UPSTREAM}{framework.separator}")
    return {
        name: "\n".join([f"This is {marks[name]}", *(f"call {prefix}{tool} {{}}" for tool in case.results)])
        for name, case in chosen.items()
    }


def _driven(
    framework: Framework, api: Api, asked: Mapping[str, str], on: Stage, setting: str
) -> Mapping[str, str | None]:
    """Why the program failed, by case."""
    model = on.model(setting)
    variables = environment(
        HOME=on.folder,
        GATEWAY_URL=on.server(setting, api.profile),
        API=api.name,
        MODEL=api.model,
        OPENAI_BASE_URL=f"{model}/v1",
        ANTHROPIC_BASE_URL=model,
        GOOGLE_GEMINI_BASE_URL=model,
        **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key"),
    )
    done = subprocess.run(
        [str(framework.python), str(DRIVER), str(framework.program), str(SECONDS)],
        cwd=on.folder,
        env=variables,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS * (2 + len(asked)),
        check=False,
    )
    if done.returncode:
        raise LabError(f"{framework.program.name} does not load:\n{done.stderr[-3_000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    return {line["name"]: line["failed"] for line in lines}


def _of(requests: Iterable[Recorded], mark: str) -> list[Recorded]:
    return [request for request in requests if mark.encode() in request.body]


def _tell(what: str, found: Mapping[str, Finding]) -> None:
    words = [f"{name} {one.word}{f' ({one.why})' if one.why else ''}" for name, one in found.items()]
    print(f"{what}: {sum(one.word == 'seen' for one in found.values())} of {len(found)} seen", flush=True)
    for line in words:
        print(f"    {line}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the frameworks that are named, or all; `arguments` are those of the command line unless given."""
    parser = argparse.ArgumentParser(prog="python -m lab.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="all of lab/frameworks unless some are named")
    options = parser.parse_args(arguments)
    try:
        return 1 if run_all(options.names) else 0
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


def run_all(names: Sequence[str]) -> list[str]:
    """Run the frameworks that are named, or all, and record what was found. Returns those that could not be run.

    Raises:
        LabError: a name is unknown, or there is nothing to run them against.
    """
    chosen = frameworks(" ".join(names))
    with stage(cases()) as on:
        return [one.name for one in chosen if not could_be_run(one.name, partial(_run_and_record, one, on))]


def could_be_run(name: str, work: Callable[[], None]) -> bool:
    """Do what runs one program. One that cannot be run, for whatever reason, costs only itself."""
    try:
        work()
    except Exception as error:
        if not isinstance(error, LabError | subprocess.TimeoutExpired):
            traceback.print_exc()
        print(f"{name} could not be run: {error}", file=sys.stderr, flush=True)
        return False
    return True


def _run_and_record(framework: Framework, on: Stage) -> None:
    framework.install()
    path = FOLDER / f"{framework.name}.toml"
    text = written(framework, run(framework, on, cases()))
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    print(f"written: {path.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
