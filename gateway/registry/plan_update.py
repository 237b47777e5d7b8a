"""Updating upstreams that came from a registry: which have a newer version, and what that changes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.core.model.json_values import as_list, as_text
from gateway.core.registry.entry import RegistryEntry, split_reference
from gateway.core.registry.inputs import Answers, Question, UnusableEntry, defaults
from gateway.core.registry.merge import Merged, marks, merge
from gateway.core.registry.ways import URL, Way, ways_of
from gateway.errors import ConfigError, InvalidRequest
from gateway.registry.client import RegistryClient


@dataclass(frozen=True)
class UpdatePlan:
    """An upstream that has a newer version. `questions` are those that only the new one asks."""

    name: str
    before: RegistryEntry
    after: RegistryEntry
    mine: Mapping[str, Any]
    old_way: Way
    new_way: Way

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions that the old version did not ask."""
        known = {one.name for one in self.old_way.questions}
        return tuple(one for one in self.new_way.questions if one.name not in known)

    @property
    def asking(self) -> Way:
        """The new way, with only those questions."""
        return replace(self.new_way, questions=self.questions)

    def merged(self, answers: Answers) -> Merged:
        """Return the upstream of the new version with the user's own changes; `answers` are to the new questions."""
        same = marks(one.name for one in self.old_way.questions)
        old = _table(self.old_way, same, self.before)
        new = _table(self.new_way, {**defaults(self.questions), **answers, **same}, self.after)
        return merge(old, new, self.mine)


def _table(way: Way, answers: Answers, entry: RegistryEntry) -> dict[str, Any]:
    try:
        return way.upstream(answers, entry.reference)
    except UnusableEntry:
        # An answer in the place of the address's host or port is not part of a URL while it is a mark.
        raise ConfigError("cannot be updated: its address depends on values", where=entry.reference) from None


def registered(upstreams: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the upstreams that came from a registry, with `NAME@VERSION` of each."""
    return {name: reference for name, one in upstreams.items() if (reference := as_text(one.get("registry")))}


async def plan_update(client: RegistryClient, name: str, mine: Mapping[str, Any]) -> UpdatePlan | None:
    """Return the update of an upstream to the latest version; None if it has that.

    Raises:
        RegistryUnavailable: the registry does not answer.
        InvalidRequest: the registry has no entry of it any more, or none that could be brought over.
    """
    reference = as_text(mine.get("registry")) or ""
    server, version = split_reference(reference)
    after = (await client.entry(server)).entry
    if after.version == version:
        return None
    if not after.is_active:
        raise InvalidRequest(f"{after.reference} is {after.status}, so {name} stays as it is")
    before = (await client.entry(server, version)).entry
    old_way = _way_now(before, mine)
    new_way = next((way for way in ways_of(after) if _is_same(way, old_way) and way.obstacle is None), None)
    if new_way is None:
        kinds = f"{old_way.kind} {old_way.identifier}"
        remedy = f"`mcp-gateway add {server} --as {name} --replace` chooses another way"
        raise InvalidRequest(f"{after.reference} does not offer {kinds} any more", remedy=remedy)
    return UpdatePlan(name, before, after, mine, old_way, new_way)


def _way_now(entry: RegistryEntry, mine: Mapping[str, Any]) -> Way:
    """Return the way in which an upstream runs now: the one whose package or address is in its table."""
    words = [word for word in as_list(mine.get("args")) if isinstance(word, str)]
    for way in ways_of(entry):
        if way.obstacle is not None:
            continue
        if way.kind == URL and "url" in mine and mine.get("transport", way.transport) == way.transport:
            return way
        # Not by the program, in whose place its user may have another (podman), or its path.
        if way.kind != URL and "command" in mine and any(_untagged(way.identifier) in word for word in words):
            return way
    remedy = "change `registry` in its table, or add it again"
    raise InvalidRequest(f"nothing in this upstream is from {entry.reference}", remedy=remedy)


def _is_same(way: Way, other: Way) -> bool:
    if way.kind == URL:
        return other.kind == URL and way.transport == other.transport
    return (way.kind, _untagged(way.identifier)) == (other.kind, _untagged(other.identifier))


def _untagged(identifier: str) -> str:
    """Return an image without its tag and digest, which may change from version to version; a package as it is."""
    plain = identifier.partition("@sha256:")[0]
    head, colon, tag = plain.rpartition(":")
    return head if colon and "/" not in tag else plain
