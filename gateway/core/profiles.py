"""Profiles put together: what each extends merged under it; narrowed to what a protocol revision can carry. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from gateway.core.model.caller import at_least
from gateway.core.model.profile import Evidence, Profile, ProfileSource
from gateway.errors import ProfileError

ROOT = "passthrough"
"""The profile that extends nothing: its values are the defaults of `Profile`."""

_IDENTITY = frozenset({"name", "title", "about", "match", "lineage", "evidence"})
"""The fields of `Profile` that are no values to set."""


def _paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if not prefix and name in _IDENTITY:
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _paths(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


PATHS: tuple[str, ...] = tuple(_paths(Profile))
"""Every value that a profile may set, as a dotted path. `tools.meta` is one value, whatever stands in it."""


def resolve_profiles(sources: Mapping[str, ProfileSource]) -> Mapping[str, Profile]:
    """Every source with everything that it extends merged under it, in the same order.

    What a source does not name it extends: `default`; `default` extends `passthrough`, which extends nothing. Evidence
    is filed under the dotted path that it is for; a value set without evidence drops its parent's.

    Raises:
        ProfileError: an unknown parent, a circle, an unknown path, a value that does not fit, or a bad pattern.
    """
    resolved: dict[str, Profile] = {}
    for name in sources:
        for ancestor in reversed(_lineage(name, sources)):
            if ancestor not in resolved:
                resolved[ancestor] = _resolve(ancestor, sources[ancestor], resolved)
    return {name: resolved[name] for name in sources}


def value_at(profile: Profile, path: str) -> Any:
    """The value under a dotted path of `PATHS`."""
    value: Any = profile
    for part in path.split("."):
        value = getattr(value, part)
    return value


def set_paths(name: str, source: ProfileSource) -> Mapping[str, Any]:
    """What the source itself sets, by dotted path; nested tables and dotted keys are the same.

    Raises:
        ProfileError: a path that does not exist, or one that is set twice.
    """
    found: dict[str, Any] = {}
    for sets in (*(fact.sets for fact in source.fact), source.sets):
        for path, value in _flatten(name, sets):
            if path in found:
                raise ProfileError(f"profile {name!r}: {path} is set twice", remedy="leave one of the two")
            found[path] = value
    return found


def _lineage(name: str, sources: Mapping[str, ProfileSource]) -> list[str]:
    """The profile and all that it extends, nearest first."""
    lineage = [name]
    while (parent := _parent(lineage[-1], sources[lineage[-1]])) is not None:
        if parent in lineage:
            circle = " -> ".join([*lineage, parent])
            raise ProfileError(f"profile {name!r} extends itself: {circle}", remedy="change one `extends`")
        if parent not in sources:
            near = get_close_matches(parent, sources, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(sources))}"
            raise ProfileError(f"profile {lineage[-1]!r} extends {parent!r}, which does not exist", remedy=remedy)
        lineage.append(parent)
    return lineage


def _parent(name: str, source: ProfileSource) -> str | None:
    if name == ROOT:
        return source.extends
    return source.extends or (ROOT if name == "default" else "default")


def _resolve(name: str, source: ProfileSource, resolved: Mapping[str, Profile]) -> Profile:
    _check_patterns(name, source)
    parent = resolved.get(_parent(name, source) or "")
    values: dict[str, Any] = {path: value_at(parent, path) for path in PATHS} if parent else {}
    evidence = dict(parent.evidence) if parent else {}
    for path, value in set_paths(name, source).items():
        values[path] = value
        evidence.pop(path, None)
    for fact in source.fact:
        known = Evidence.model_validate(fact.model_dump(exclude={"sets"}))
        evidence.update({path: known for path, _ in _flatten(name, fact.sets)})
    identity = {
        "name": name,
        "title": source.title or name,
        "about": source.about or "",
        "match": source.match,
        "lineage": (parent.name, *parent.lineage) if parent else (),
        "evidence": evidence,
    }
    try:
        return Profile.model_validate({**identity, **_nest(values)})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in problem["loc"])
        raise ProfileError(f"profile {name!r}: {path}: {_lower(problem['msg'])}") from None


def _check_patterns(name: str, source: ProfileSource) -> None:
    for index, match in enumerate(source.match):
        if match.client_name is None and match.user_agent is None:
            raise ProfileError(
                f"profile {name!r}: match[{index}] matches every client",
                remedy="give client_name or user_agent; for every host, set gateway.profile",
            )
        try:
            re.compile(match.user_agent or "")
        except re.error as error:
            raise ProfileError(f"profile {name!r}: match[{index}].user_agent is no pattern: {error}") from None


def _flatten(name: str, sets: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a `sets` table by dotted path."""
    for key, value in sets.items():
        path = f"{prefix}{key}"
        if path in PATHS:
            yield path, value
        elif isinstance(value, Mapping) and any(known.startswith(f"{path}.") for known in PATHS):
            yield from _flatten(name, value, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            raise ProfileError(f"profile {name!r}: {path!r} is nothing that a profile sets", remedy=_hint(path))


def _hint(path: str) -> str:
    below = [known for known in PATHS if known.startswith(f"{path}.")]
    near = below or get_close_matches(path, PATHS, n=1)
    if not near:
        near = [known for known in PATHS if known.rsplit(".", 1)[-1] == path.rsplit(".", 1)[-1]]
    if not near:
        return "`mcp-gateway profiles show default` lists what there is"
    return f"did you mean {' or '.join(repr(known) for known in near)}?"


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *tables, leaf = path.split(".")
        table = nested
        for part in tables:
            table = table.setdefault(part, {})
        table[leaf] = value
    return nested


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


@dataclass(frozen=True)
class Narrowing:
    """Hosts of revisions before `since` cannot be sent what `path` would allow: there it is `value`."""

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
"""What came into tool results with which revision. The SDK checks every revision before 2026-07-28 against the schema
of 2025-11-25, so this is not done for us."""

_CHECKED = date(2026, 11, 20)


def narrow(profile: Profile, revision: str) -> Profile:
    """The profile without what `revision` cannot carry; an unknown revision counts as the oldest."""
    narrowed = profile
    for rule in NARROWINGS:
        if not at_least(revision, rule.since) and value_at(narrowed, rule.path) != rule.value:
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
