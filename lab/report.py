"""Propose changes of profiles that follow from runs: `python -m lab.report FILE ...`. No file is changed.

A FILE is what `mcp-gateway calibrate --export` has written, one of docs/matrix/runs, or a result of the lab in TOML.
The changes are printed as a diff, for `git apply` once it is reviewed; what a person has to look at goes to stderr.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.errors import ProfileError
from lab.diff import read_runs
from lab.diff_words import Run
from lab.findings import ProfileFindings, findings
from lab.frameworks import ROOT, LabError
from lab.matrix import age
from lab.profile_text import NewFact, with_fact

PROFILES = ROOT / "gateway" / "hosts" / "profiles"


def runs_in(files: Iterable[Path]) -> list[Run]:
    """Return each run in the files, by host, the oldest version first.

    Raises:
        LabError: a file cannot be read.
    """
    found: dict[tuple[str, ...], Run] = {}
    for path in files:
        for host, records in read_runs(path).items():
            for record in records:
                key = (str(path), host, record.version or "", record.evidence.level)
                found[key] = (*found.get(key, ()), record)
    return sorted(found.values(), key=lambda run: (run[0].title.casefold(), age(run)))


def proposed(runs: Iterable[Run]) -> tuple[dict[str, str], list[str]]:
    """Return the changed text of each profile's file, by the file's name, and remarks. A later run overrules.

    Raises:
        LabError: a profile's file cannot be changed.
    """
    profiles, texts, remarks = builtin_profiles(), dict[str, str](), list[str]()
    said: dict[tuple[str, str], str] = {}
    for run in runs:
        name_of_run = f"{run[0].title} {run[0].version or ''}".strip()
        for name, found in findings(run, profiles):
            remarks += _remarks(name_of_run, name, found)
            for fact in found.facts:
                _overruled(fact, name, name_of_run, said, remarks)
                file, variant = _file_of(name, profiles)
                text = texts.get(file) or (PROFILES / file).read_text("utf-8")
                texts[file] = with_fact(text, fact, variant)
    _check(texts)
    return texts, remarks


def _remarks(run: str, profile: str, found: ProfileFindings) -> list[str]:
    agreed = f"{found.agree} {'finding is' if found.agree == 1 else 'findings are'} as the profile {profile} says"
    return [f"{run}: {agreed}, {len(found.facts)} otherwise", *(f"{run}: {one}" for one in found.remarks)]


def _overruled(fact: NewFact, name: str, run: str, said: dict[tuple[str, str], str], remarks: list[str]) -> None:
    for path in fact.sets:
        if other := said.get((name, path)):
            remarks.append(f"{run}: {path} was also proposed from {other}: the later one is kept")
        said[name, path] = run


def _file_of(name: str, profiles: Mapping[str, Profile]) -> tuple[str, str | None]:
    """The file of a profile, and the variant in it."""
    host = next((host for host, profile in profiles.items() if name in profile.variants), None)
    return (f"{host}.toml", name.removeprefix(f"{host}-")) if host else (f"{name}.toml", None)


def _check(texts: Mapping[str, str]) -> None:
    changed = {Path(file).stem: ProfileSource.model_validate(tomllib.loads(text)) for file, text in texts.items()}
    try:
        resolve_profiles({**load_builtin(), **changed})
    except ProfileError as error:
        raise LabError(f"the changed profiles do not hold: {error}") from error


def difference(texts: Mapping[str, str]) -> str:
    """Return the changes as a diff that `git apply` takes."""
    lines: list[str] = []
    for file, text in sorted(texts.items()):
        path = PROFILES / file
        name = path.relative_to(ROOT).as_posix()
        before = path.read_text("utf-8").splitlines(keepends=True)
        lines += unified_diff(before, text.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the proposals; `arguments` are those of the command line unless given."""
    parser = argparse.ArgumentParser(prog="python -m lab.report", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    try:
        texts, remarks = proposed(runs_in(options.files))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    for remark in remarks:
        print(f"- {remark}", file=sys.stderr)
    print(difference(texts), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
