"""What a run says of a profile: the values that should be others, and what a person has to look at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from gateway.core.model.caller import Caller
from gateway.core.profiles.calibrate_profile import conclusions
from gateway.core.profiles.export_calibration import sight_of
from gateway.core.profiles.host_profiles import value_at
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.profiles.matrix import CaseRecord, Cell
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import NAMELESS, value_words
from gateway.hosts.simulators.verdict import READ_AGAIN
from lab.case_rules import RULES, CaseRule
from lab.explain import notes_of
from lab.profile_text import NewFact

_TELLS = ("seen", "named", "lost")
"""Verdicts that say what a host does with content. What an API refuses, or a program that ends, may be about either."""


@dataclass
class ProfileFindings:
    """What runs say of one profile."""

    facts: list[NewFact] = field(default_factory=list[NewFact])
    remarks: list[str] = field(default_factory=list[str])
    agree: int = 0
    """Cases, or conclusions, that the profile says already."""


def findings(run: Sequence[CaseRecord], profiles: Mapping[str, Profile]) -> Iterator[tuple[str, ProfileFindings]]:
    """Yield each profile that a run of one host is about, with what it says of it."""
    calibrated = [record for record in run if record.evidence.level == "calibrated"]
    if calibrated:
        name = _matching(calibrated[0], profiles)
        yield name, _of_calibration(calibrated, profiles[name])
    by_profile: dict[str, list[CaseRecord]] = {}
    for record in run:
        if record.evidence.level == "run" and record.profile and record.profile in profiles:
            by_profile.setdefault(record.profile, []).append(record)
    for name, records in by_profile.items():
        yield name, _of_run(records, profiles[name])


def _matching(record: CaseRecord, profiles: Mapping[str, Profile]) -> str:
    """The profile of a host that was calibrated: the file has the name that the host gives itself."""
    caller = Caller(client_name=record.title, client_version=record.version)
    return choose_profile(profiles, caller, None).profile.name


def _of_calibration(records: Sequence[CaseRecord], profile: Profile) -> ProfileFindings:
    first, found = records[0], ProfileFindings()
    model = f", model {first.model}" if first.model else ""
    for words, sets in conclusions(sight_of(records), profile):
        changed = {path: value for path, value in sets.items() if not _is_same(value_at(profile, path), value)}
        found.agree += not changed
        if changed:
            source = f"{first.evidence.reference}, codes read by the model{model}: {words}"
            found.facts.append(NewFact(source, first.version, first.date, changed))
    if profile.variants:
        found.remarks.append(f"the profile has variants ({', '.join(profile.variants)}): is it about one of them?")
    return _checked(found, profile, first)


def _of_run(records: Sequence[CaseRecord], profile: Profile) -> ProfileFindings:
    found, notes = ProfileFindings(), notes_of(records[0].host, records[0].kind)
    for case, rule in RULES.items():
        by_api = {one.model_api or "": one.directly for one in _usable(records, case, rule) if one.directly}
        wrong = {api: cell for api, cell in by_api.items() if _contradicts(rule, profile, cell)}
        found.agree += bool(by_api) and not wrong
        if not wrong:
            continue
        first = next(one for one in records if one.case == case)
        what = f"{first.returns}: {_words(wrong)}"
        if why := [notes[api].reviewed[case] for api in wrong if api in notes and case in notes[api].reviewed]:
            found.remarks.append(f"{what}; the profile stays as it is: {why[0]}")
            continue
        values = [rule.values(profile, cell) for cell in wrong.values()]
        if len(wrong) < len(by_api) or any(one != values[0] for one in values) or not values[0]:
            others = sorted(by_api.keys() - wrong)
            rest = f", but on {' and '.join(others)} as the profile says" if others else ""
            said = value_words(value_at(profile, rule.path))
            found.remarks.append(f"{what}{rest}; the profile says {rule.path} = {said}")
            continue
        source = f"{first.evidence.reference}: {what}"
        found.facts.append(NewFact(source, first.version, first.date, values[0]))
        profile = _with(profile, values[0])
    return _checked(found, profile, records[0])


def _usable(records: Iterable[CaseRecord], case: str, rule: CaseRule) -> Iterator[CaseRecord]:
    """The records of a case that say something of the host."""
    told = [one for one in records if one.directly and one.directly.verdict in _TELLS]
    charts = {one.model_api for one in told if one.case == "chart" and one.directly and one.directly.verdict == "seen"}
    for one in told:
        if one.case == case and (one.model_api in charts or not rule.needs_pictures):
            yield one


def _contradicts(rule: CaseRule, profile: Profile, cell: Cell) -> bool:
    if profile.structured.host in ("beside", "dumped") and cell.why.startswith(READ_AGAIN):
        return rule.case != "structured_chart"
    shows = rule.shows(profile)
    return shows is not None and shows != (cell.verdict == "seen")


def _words(cells: Mapping[str, Cell]) -> str:
    return ", ".join(
        f"{cell.verdict}{f' ({cell.why})' if cell.why else ''}{f' on {api}' if api else ''}"
        for api, cell in cells.items()
    )


def _checked(found: ProfileFindings, profile: Profile, first: CaseRecord) -> ProfileFindings:
    """A host without a profile of its own gets none changed: others have the same."""
    if profile.name not in NAMELESS:
        return found
    values = {path: value for fact in found.facts for path, value in fact.sets.items()}
    remark = f"{first.title} has no profile of its own: `make new-host NAME={first.host}` writes one"
    would = [f"it would have {path} = {value_words(value)}" for path, value in values.items()]
    return ProfileFindings([], [remark, *would, *found.remarks], found.agree)


def _with(profile: Profile, values: Mapping[str, Any]) -> Profile:
    for path, value in values.items():
        section, _, name = path.rpartition(".")
        part: BaseModel = value_at(profile, section)
        kept = tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        profile = profile.model_copy(update={section: part.model_copy(update={name: kept})})
    return profile


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, list):
        return set(one) == set(other)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return bool(one == other)
