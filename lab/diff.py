"""Say in words what changed between two runs: `python -m lab.diff OLD [NEW]`, each a file or a revision of git.

A file is one of docs/matrix, one that `mcp-gateway calibrate --export` has written, or a result of the lab in TOML. A
revision stands for all results of the lab in it. NEW is the working tree unless it is given.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from gateway.core.profiles.matrix import CaseRecord, read_matrix
from gateway.errors import GatewayError
from lab.diff_words import Run, compared
from lab.frameworks import ROOT, LabError
from lab.matrix import last_runs, run_records
from lab.record import FOLDER, HOSTS_FOLDER, Record, read_record

_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^@{}-]*")
_NO_RESULT = (KeyError, TypeError, ValueError, AttributeError)


def by_host(records: Iterable[CaseRecord]) -> dict[str, Run]:
    """Return the records of each host."""
    found: dict[str, list[CaseRecord]] = {}
    for record in records:
        found.setdefault(record.host, []).append(record)
    return {host: tuple(run) for host, run in found.items()}


def read_runs(path: Path) -> Mapping[str, Run]:
    """Return what a file has, by host.

    Raises:
        LabError: it cannot be read, or is neither a result of the lab nor a file of the matrix.
    """
    try:
        if path.suffix == ".toml":
            return by_host(run_records(_lab_result(path.name, path.read_text("utf-8"))))
        return by_host(read_matrix(path.read_bytes(), path.name))
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    except GatewayError as error:
        raise LabError(str(error)) from error


def _lab_result(name: str, text: str) -> Record:
    try:
        return read_record(PurePosixPath(name).stem, text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{name} is not TOML: {error}") from error
    except _NO_RESULT as error:
        raise LabError(f"{name} is not a result of the lab: {type(error).__name__}: {error}") from error


def at_revision(revision: str, root: Path = ROOT) -> Mapping[str, Run]:
    """Return the results of the lab in a revision, by host.

    Raises:
        LabError: there is no such revision, or it has no results.
    """
    if not _REVISION.fullmatch(revision):
        raise LabError(f"{revision} is neither a file nor a revision")
    folders = [folder.relative_to(ROOT).as_posix() for folder in (HOSTS_FOLDER, FOLDER)]
    names = _git(root, "ls-tree", "-r", "--name-only", revision, "--", *folders).split()
    texts = ((name, _git(root, "show", f"{revision}:{name}")) for name in names if name.endswith(".toml"))
    found = [record for name, text in texts for record in run_records(_lab_result(name, text))]
    if not found:
        raise LabError(f"{revision} has no results of the lab")
    return by_host(found)


def _git(root: Path, *arguments: str) -> str:
    command = [shutil.which("git") or "git", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise LabError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def differences(old: str, new: str) -> list[str]:
    """Return the sentences on what changed, as lines of Markdown; empty if nothing did. `new` may be "".

    Between a file and a revision, only the hosts of the file are compared.

    Raises:
        LabError: one of the two cannot be read.
    """
    files = [bool(name) and Path(name).is_file() for name in (old, new)]
    before, now = (_side(name, is_file) for name, is_file in zip((old, new), files, strict=True))
    if any(files):
        wanted = {host for side, is_file in zip((before, now), files, strict=True) if is_file for host in side}
        before, now = ({host: run for host, run in side.items() if host in wanted} for side in (before, now))
    lines: list[str] = []
    for title, sentences in compared(before, now):
        if sentences:
            lines += [f"## {title}", "", *(f"- {sentence}" for sentence in sentences), ""]
    return lines


def _side(name: str, is_file: bool) -> Mapping[str, Run]:
    if is_file:
        return read_runs(Path(name))
    return at_revision(name) if name else by_host(record for run in last_runs() for record in run_records(run))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the differences; `arguments` are those of the command line unless given."""
    parser = argparse.ArgumentParser(prog="python -m lab.diff", description=__doc__)
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW", nargs="?", default="")
    options = parser.parse_args(arguments)
    try:
        lines = differences(options.old, options.new)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines).rstrip() if lines else "Nothing changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
