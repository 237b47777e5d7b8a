"""Run real hosts over the cases, alone and with the gateway: `python -m lab.run_hosts [HOST ...]`.

Each host is installed, then run by a process of its own, in a network namespace that has only loopback where the system
allows one. What came of it is written to docs/matrix/hosts. The table is printed at the end; the exit code is 1 if a
cell through the gateway is neither right nor explained, or if a simulator says something else than the real host.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.cases import Case, cases
from lab.explain import faults
from lab.frameworks import ROOT, LabError, framework_files
from lab.host_run import SETTINGS, host_stage, run_host
from lab.hosts import FILES, Host, host_files, hosts, load_host, unavailable
from lab.isolate import isolated, raise_loopback
from lab.judge import Finding
from lab.lab_table import table
from lab.record import HOSTS_FOLDER, written
from lab.run import could_be_run
from lab.run import run_all as run_frameworks

Findings = dict[str, dict[str, dict[str, Finding]]]


def run_inside(path: Path, names: Sequence[str], apis: Sequence[str], dump: Path | None) -> Findings:
    """Run one host on this machine's loopback: its findings by API, by setting, by case."""
    host = load_host(path)
    chosen: Mapping[str, Case] = {name: cases()[name] for name in names or cases()}
    found: Findings = {}
    for api in host.apis:
        if apis and api.name not in apis:
            continue
        with host_stage(api, chosen) as on:
            try:
                found[api.name] = {setting: run_host(host, api, setting, on, chosen) for setting in SETTINGS}
            finally:
                if dump:
                    _dump(dump, (one.body for one in on.app.requests))
    return found


def _dump(folder: Path, bodies: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(bodies):
        (folder / f"{number:03}.json").write_bytes(body)


def run_apart(path: Path, *more: str) -> Findings:
    """Run one host in a process, and a network, of its own.

    Raises:
        LabError: it could not be run.
    """
    command = [sys.executable, "-m", "lab.run_hosts", "--inside", str(path), *more]
    apart = isolated([*command, "--own-network"])
    if apart is None:
        print("this system allows no network namespace: hosts can reach the internet", flush=True)
    done = subprocess.run(
        apart or command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise LabError(f"{path.stem} could not be run")
    data = json.loads(done.stdout.splitlines()[-1])
    return {
        api: {setting: {case: Finding(**cell) for case, cell in found.items()} for setting, found in settings.items()}
        for api, settings in data.items()
    }


def run_and_record(host: Host, folder: Path = HOSTS_FOLDER, files: Path = FILES) -> list[str]:
    """Install a host, run it, write what was found, and return what is wrong."""
    host.install()
    found = run_apart(files / f"{host.name}.toml")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{host.name}.toml").write_text(written(host, found), "utf-8")
    return [fault for api in host.apis for fault in faults(host, api, found[api.name], cases())]


def _run_all(chosen: Iterable[Host]) -> tuple[list[str], list[str]]:
    """What is wrong with those that were run, and those that could not be."""
    wrong: list[str] = []
    failed = [
        host.name
        for host in chosen
        if not could_be_run(host.name, lambda host=host: wrong.extend(run_and_record(host)))
    ]
    return wrong, failed


def main() -> int:
    """Run the hosts and frameworks that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m lab.run_hosts", description=__doc__)
    parser.add_argument("names", nargs="*", help="hosts or frameworks; all of both unless some are named")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--own-network", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cases", default="", help=argparse.SUPPRESS)
    parser.add_argument("--apis", default="", help=argparse.SUPPRESS)
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.inside:
            return _inside(options)
        return _chosen(" ".join(options.names).replace(",", " ").split())
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


def _inside(options: argparse.Namespace) -> int:
    if options.own_network:
        raise_loopback()
    found = run_inside(options.inside, options.cases.split(), options.apis.split(), options.dump)
    data: dict[str, Any] = {
        api: {setting: {case: asdict(one) for case, one in by_case.items()} for setting, by_case in settings.items()}
        for api, settings in found.items()
    }
    print(json.dumps(data))
    return 0


def _chosen(names: Sequence[str]) -> int:
    ours = [name for name in names if name in host_files()] if names else list(host_files())
    others = [name for name in names if name not in host_files()]
    _refuse_unknown(others)
    not_run = run_frameworks(others) if others or not names else []
    wrong, failed = _run_all(hosts(" ".join(ours))) if ours else ([], [])
    not_run += failed
    named = {*ours, *others} if names else {*ours, *framework_files()}
    print(table(named.difference(not_run)))  # whoever could not be run has a row of an earlier day
    for line in [f"{name} could not be run: see above" for name in not_run] + wrong:
        print(f"- {line}")
    return 1 if not_run or wrong else 0


def _refuse_unknown(others: Sequence[str]) -> None:
    for name in others:
        if name in framework_files():
            continue
        if (known := unavailable().get(name)) is not None:
            raise LabError(f"{name} cannot be run: {known['why']}")
        there = ", ".join(sorted([*host_files(), *framework_files()]))
        raise LabError(f"no host or framework is called {name}; there are {there}")


if __name__ == "__main__":
    sys.exit(main())
