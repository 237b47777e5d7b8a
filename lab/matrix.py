"""The matrix: what the lab's runs and the evidence of profiles say, as the records that docs/matrix has in JSON.

`runs/HOST/VERSION.json` has a host's last run with that version, and stays when the host is run with another;
`profiles.json` has what is known of hosts that are not run.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from gateway.core.profiles.matrix import CaseEvidence, CaseRecord, Cell, matrix_text, read_matrix
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import NAMELESS, own_evidence
from lab.case_rules import RULES
from lab.cases import cases
from lab.explain import explained, notes_of
from lab.frameworks import ROOT
from lab.judge import Finding
from lab.lab_table import through
from lab.record import FOLDER, HOSTS_FOLDER, Record, records

MATRIX = ROOT / "docs" / "matrix"
RUNS = MATRIX / "runs"
PROFILES = MATRIX / "profiles.json"
_LEVELS = ("measured", "source", "maintainer", "user_report")


def run_records(run: Record) -> Iterator[CaseRecord]:
    """What one run of a host or a framework says."""
    command = "make frameworks" if run.program else "make lab"
    evidence = CaseEvidence(level="run", reference=f"{command}, {run.package} {run.version}")
    apis = notes_of(run.name, "framework" if run.program else "host")
    for api, settings in run.findings.items():
        gateway = through(settings)
        for case, found in settings["alone"].items():
            yield CaseRecord(
                host=run.name,
                title=run.title,
                kind="framework" if run.program else "host",
                version=run.version,
                model_api=api,
                model=run.models[api],
                profile=run.profiles[api],
                case=case,
                returns=cases()[case].title if case in cases() else case,
                directly=_cell(found),
                gateway=_cell(gateway[case], explained(apis.get(api), case, gateway[case])),
                evidence=evidence,
                date=date.fromisoformat(run.date),
            )


def _cell(found: Finding, because: str = "") -> Cell:
    counts = {"shown": found.shown, "of": found.images} if found.images else {}
    return Cell(verdict=found.word, why=found.why, because=because, **counts)


def profile_records(profiles: Mapping[str, Profile]) -> Iterator[CaseRecord]:
    """What profiles say of hosts that are not run, with the evidence of the profile."""
    run = {profile for record in last_runs() for profile in record.profiles.values()}
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    for name, profile in sorted(profiles.items()):
        if name not in NAMELESS and name not in variants and run.isdisjoint((name, *profile.variants)):
            yield from _of_profile(profile, profiles)


def _of_profile(profile: Profile, profiles: Mapping[str, Profile]) -> Iterator[CaseRecord]:
    known = own_evidence(profile, profiles)
    for case, rule in RULES.items():
        fact, shows = known.get(rule.path), rule.shows(profile)
        if fact is None or fact.level not in _LEVELS or shows is None:
            continue
        yield CaseRecord(
            host=profile.name,
            title=profile.title,
            version=fact.host_version,
            profile=profile.name,
            case=case,
            returns=cases()[case].title,
            directly=Cell(verdict="seen" if shows else "lost"),
            evidence=CaseEvidence(level=fact.level, reference=fact.source),
            date=fact.checked,
        )


def last_runs() -> tuple[Record, ...]:
    """The last run of each host and framework, as the lab has written it."""
    return (*records(HOSTS_FOLDER), *records(FOLDER))


def matrix_files(profiles: Mapping[str, Profile]) -> dict[Path, str]:
    """Return the files that come from the last runs and the profiles. Earlier versions have others."""
    runs = {RUNS / run.name / f"{file_name(run.version)}.json": matrix_text(run_records(run)) for run in last_runs()}
    return {**runs, PROFILES: matrix_text(profile_records(profiles))}


def file_name(version: str) -> str:
    """A version as the name of a file."""
    return re.sub(r"[^A-Za-z0-9._+-]", "-", version).lstrip(".") or "unknown"


def kept_runs(folder: Path = RUNS) -> dict[str, list[tuple[CaseRecord, ...]]]:
    """Return every run that is kept, by host, the oldest first."""
    found: dict[str, list[tuple[CaseRecord, ...]]] = {}
    for path in sorted(folder.glob("*/*.json")):
        found.setdefault(path.parent.name, []).append(read_matrix(path.read_bytes(), path.name))
    return {host: sorted(runs, key=age) for host, runs in found.items()}


def age(run: Iterable[CaseRecord]) -> tuple[list[int], date]:
    """Return what orders the runs of a host: the numbers of the version, then the day."""
    first = next(iter(run))
    return [int(number) for number in re.findall(r"\d{1,9}", first.version or "")], first.date


def known_from_profiles() -> tuple[CaseRecord, ...]:
    """What `profiles.json` says."""
    return read_matrix(PROFILES.read_bytes(), PROFILES.name)
