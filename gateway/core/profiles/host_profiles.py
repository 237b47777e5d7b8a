"""Resolving host profiles, and narrowing them to what a protocol revision supports. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import BaseModel

from gateway.core.model.revisions import at_least
from gateway.core.profiles.inheritance import Resolver, value_at
from gateway.core.profiles.profile import Evidence, Profile, ProfileSource, Variant
from gateway.errors import ProfileError

__all__ = [
    "NARROWINGS",
    "PATHS",
    "ROOT",
    "Narrowing",
    "narrow",
    "resolve_profiles",
    "set_paths",
    "value_at",
    "variant_name",
    "with_useful_handles",
    "with_variants",
]

ROOT = "passthrough"
"""The profile that extends nothing: its values are the defaults of `Profile`."""


def _parent(name: str, source: ProfileSource) -> str | None:
    if name == ROOT:
        return source.extends
    return source.extends or (ROOT if name == "default" else "default")


_RESOLVER = Resolver(Profile, _parent, "`mcp-gateway profiles show default` lists what there is")

PATHS: tuple[str, ...] = _RESOLVER.paths
"""Every value that a profile may set, as a dotted path. `tools.meta` is one value, whatever it contains."""


def resolve_profiles(sources: Mapping[str, ProfileSource]) -> Mapping[str, Profile]:
    """Resolve every source, each followed by its variants, by merging all that it extends, in the same order.

    A source that names no parent extends `default`; `default` extends `passthrough`, which extends nothing.

    Raises:
        ProfileError: an unknown parent, a circle, an unknown path, a value that does not fit, a bad pattern, or a
            variant whose name another profile has.
    """
    for name, source in sources.items():
        _check_patterns(name, source)
    resolved = _RESOLVER.resolve(with_variants(sources))
    for name, source in sources.items():
        variants = {variant_name(name, variant): variant.models for variant in source.variant}
        resolved[name] = resolved[name].model_copy(update={"variants": variants})
    return resolved


def with_variants(sources: Mapping[str, ProfileSource]) -> dict[str, ProfileSource]:
    """Return the sources, each followed by its variants as sources of their own.

    Raises:
        ProfileError: another profile has the name of a variant.
    """
    expanded: dict[str, ProfileSource] = {}
    for name, source in sources.items():
        expanded[name] = source
        for variant in source.variant:
            own = variant_name(name, variant)
            if own in sources or own in expanded:
                remedy = "give the variant another name"
                raise ProfileError(f"profile {name!r}: its variant {own!r} has the name of another", remedy=remedy)
            title = variant.title or f"{source.title or name}, {variant.name}"
            expanded[own] = ProfileSource(
                title=title, about=variant.about, extends=name, fact=variant.fact, sets=variant.sets
            )
    return expanded


def variant_name(host: str, variant: Variant) -> str:
    """Return the name of the profile that a host's variant becomes."""
    return f"{host}-{variant.name}"


def set_paths(name: str, source: ProfileSource) -> Mapping[str, Any]:
    """Return the values that the source itself sets, by dotted path; nested tables and dotted keys are equivalent.

    Raises:
        ProfileError: a path that does not exist, or one that is set twice.
    """
    return _RESOLVER.set_paths(name, source)


def _check_patterns(name: str, source: ProfileSource) -> None:
    for index, match in enumerate(source.match):
        if match.client_name is None and match.user_agent is None:
            raise ProfileError(
                f"profile {name!r}: match[{index}] matches every client",
                remedy="give client_name or user_agent; for every host, set gateway.profile",
            )
        if match.header is not None and match.client_name is None:
            raise ProfileError(
                f"profile {name!r}: match[{index}] has a header without a client_name",
                remedy="give the client_name too: any program can send a header of that name",
            )
        try:
            re.compile(match.user_agent or "")
        except re.error as error:
            raise ProfileError(f"profile {name!r}: match[{index}].user_agent is not a pattern: {error}") from None


@dataclass(frozen=True)
class Narrowing:
    """A value that hosts of revisions before `since` cannot receive: for them, `path` is set to `value`."""

    since: str
    path: str
    value: str
    source: str


_SPECIFICATION = "https://modelcontextprotocol.io/specification"
NARROWINGS = (
    Narrowing("2025-03-26", "audio.show", "line", f"{_SPECIFICATION}/2025-03-26/changelog (audio data)"),
    Narrowing("2025-06-18", "link.show", "line", f"{_SPECIFICATION}/2025-06-18/changelog (resource links)"),
    Narrowing("2025-06-18", "structured.send", "never", f"{_SPECIFICATION}/2025-06-18/changelog (structured output)"),
    Narrowing("2025-06-18", "unknown.show", "line", f"{_SPECIFICATION}/2025-03-26/server/tools#tool-result"),
)
"""The revisions in which values became possible.

The SDK checks every revision before 2026-07-28 against the schema of 2025-11-25, so it does not do this for us.
"""

_AS_IT_IS = ("native", "always")
"""Values that send something in its own form; any other value means another form, which every revision supports."""

_CHECKED = date(2026, 11, 20)


def narrow(profile: Profile, revision: str) -> Profile:
    """Return the profile without what `revision` does not support; an unknown revision counts as the oldest."""
    narrowed = profile
    for rule in NARROWINGS:
        if not at_least(revision, rule.since) and value_at(narrowed, rule.path) in _AS_IT_IS:
            narrowed = _with_rule(narrowed, rule)
    return narrowed


def _with_rule(profile: Profile, rule: Narrowing) -> Profile:
    section, field = rule.path.split(".")
    changed: BaseModel = getattr(profile, section)
    known = Evidence(level="source", source=rule.source, checked=_CHECKED)
    update = {
        section: changed.model_copy(update={field: rule.value}),
        "evidence": {**profile.evidence, rule.path: known},
    }
    return profile.model_copy(update=update)


def with_useful_handles(profile: Profile, *, takes_content: bool) -> Profile:
    """Return the profile for a host that is offered these tools: do they take content (`Catalogue.takes_content`)?

    `handles = "useful"` becomes `"always"` if one of them does.
    """
    if profile.handles != "useful" or not takes_content:
        return profile
    return profile.model_copy(update={"handles": "always"})
