"""The evidence for a profile's values, as tables grouped by fact."""

import json
from collections.abc import Mapping, Sequence

from gateway.core.profiles.host_profiles import value_at
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.profiles.profile import Evidence, Profile


def facts(profile: Profile | ModelProfile, profiles: Mapping[str, Profile] | Mapping[str, ModelProfile]) -> list[str]:
    """Return the table of the values that the profile sets itself; empty if it sets none."""
    by_fact: dict[str, list[str]] = {}
    for path, fact in own_evidence(profile, profile.lineage, profiles).items():
        by_fact.setdefault(known_words_of(fact), []).append(path)
    lines = ["| values | how they are known |", "|---|---|"]
    for known, paths in by_fact.items():
        values = [f"`{path} = {json.dumps(value_at(profile, path), default=list)}`" for path in paths]
        lines.append(f"| {'<br>'.join(values)} | {known} |")
    return [*lines, ""] if by_fact else []


def own_evidence(
    profile: Profile | ModelProfile,
    lineage: Sequence[str],
    profiles: Mapping[str, Profile] | Mapping[str, ModelProfile],
) -> dict[str, Evidence]:
    """Return the evidence that is not inherited, by dotted path."""
    return {
        path: fact
        for path, fact in profile.evidence.items()
        if all(profiles[parent].evidence.get(path) != fact for parent in lineage)
    }


def known_words_of(fact: Evidence) -> str:
    """How a fact is known: the level, the day, the source, and the version of the host."""
    version = f" ({fact.host_version})" if fact.host_version and fact.host_version not in fact.source else ""
    source = fact.source.replace("|", "\\|")
    return f"**{fact.level.replace('_', ' ')}**, {fact.checked}: {source}{version}"
