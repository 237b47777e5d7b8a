"""The instructions that a host's model receives first: the gateway's own, and those of its upstreams. Pure.

Standard library only: a host on stdio is answered before anything else is loaded.
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from gateway.core.model.grant import Grant
from gateway.core.profiles.client_names import normalise_client_name

LONGEST_PART = 64_000
"""Characters of one upstream's instructions beyond which they are cut, whatever the host accepts."""

LONGEST = 8_000
"""Characters for an unknown host: as in the profile `default`, which may not be loaded yet."""

HANDLES = (
    "Results name content by handles, such as img_7h3k2m9q4w8x. If an argument of a tool takes content, give its "
    "handle; the resource content://directory lists what there is."
)
"""Included for hosts whose profile wants it (`instructions.handles`)."""

_LEAST = 80
"""Characters below which an upstream's instructions would be cut too much to be useful."""

_HEADING = re.compile(r"^(#{1,2})(?=[ \t])", re.MULTILINE)


class Introductions(NamedTuple):
    """The instructions of the upstreams, in the order of the configuration, and how much of them hosts keep.

    `parts` are (upstream, its instructions); `limits` (glob on the normalised client name, characters), the closest
    first; `longest` is for all other clients. None means no limit. `handles` says in the same way which clients receive
    `HANDLES`.
    """

    parts: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, int | None], ...] = ()
    longest: int | None = LONGEST
    handles: tuple[tuple[str, bool], ...] = ()
    owners: tuple[tuple[str, str], ...] = ()
    """Upstreams whose instructions came with the login of one principal, who is the only one to receive them."""
    skilled: tuple[str, ...] | None = None
    """Upstreams that have skills, or of which that is not known yet; None before anything is known of any."""

    @property
    def may_have_skills(self) -> bool:
        """Whether skills are to be declared: unless it is known that no upstream has any."""
        return self.skilled is None or bool(self.skilled)

    def text_for(self, own: str | None, client: str | None) -> str | None:
        """Merge everything into one text for a client of this name, after `own`, the gateway's; None if it is empty."""
        first = "\n\n".join(text for text in (own, HANDLES if self._names_handles(client) else None) if text)
        return merge_instructions(first, self.parts, self._limit(client))

    def reached_by(self, grant: Grant, principal: str) -> "Introductions":
        """Return the introductions without those of upstreams that do not exist for a caller, or that are another's."""
        owners = dict(self.owners)
        mine = (each for each in self.parts if owners.get(each[0], principal) == principal)
        reached = self.only(lambda name: grant.reaches_content(name))
        return reached._replace(parts=tuple(each for each in mine if grant.reaches(each[0])))

    def only(self, is_meant: Callable[[str], bool]) -> "Introductions":
        """Return the introductions of some upstreams."""
        skilled = None if self.skilled is None else tuple(filter(is_meant, self.skilled))
        return self._replace(parts=tuple(each for each in self.parts if is_meant(each[0])), skilled=skilled)

    def _limit(self, client: str | None) -> int | None:
        name = normalise_client_name(client) if client is not None else None
        found = (limit for glob, limit in self.limits if name is not None and fnmatchcase(name, glob))
        return next(found, self.longest)

    def _names_handles(self, client: str | None) -> bool:
        name = normalise_client_name(client) if client is not None else ""
        return next((told for glob, told in self.handles if fnmatchcase(name, glob)), False)


def part(text: str | None) -> str:
    """Prepare an upstream's instructions for merging with others.

    Halves of surrogate pairs are replaced, control characters made visible. Headings at or above the level of the one
    with the upstream's name, which could speak in another's name, are moved below it. Of a text that is far too long,
    only the beginning is looked at.
    """
    from gateway.core.model.texts import cut, visible  # whose expressions take as long to compile as all else here

    whole = (text or "")[: 4 * LONGEST_PART].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    lines = visible(whole).replace("\r\n", "\n").replace("\r", "\n").strip()
    return cut(_HEADING.sub(r"##\1", lines), LONGEST_PART)


def merge_instructions(own: str | None, parts: Iterable[tuple[str, str]], longest: int | None) -> str | None:
    """Merge the gateway's own text and each upstream's under its name into at most `longest` characters.

    Long texts are cut evenly and take nothing from short ones. Texts that would get next to nothing are left out, the
    last first.
    """
    from gateway.core.model.texts import cut

    whole = [own.strip()] if own and own.strip() else []
    named = [(f"## {name}\n", text) for name, text in parts if text]
    if longest is None:
        return _joined(whole + [heading + text for heading, text in named])
    whole = [cut(text, longest) for text in whole]
    while named:
        room = longest - len("\n\n".join(whole)) - sum(len(heading) + len("\n\n") for heading, _ in named)
        share = _share([len(text) for _, text in named], room)
        if share >= _LEAST or share >= max(len(text) for _, text in named):
            break
        named.pop()
    else:
        share = 0
    return _joined(whole + [heading + cut(text, share) for heading, text in named])


def _share(lengths: list[int], room: int) -> int:
    """Return the maximum length for each text so that all together have at most `room` characters."""
    rest, left = room, len(lengths)
    for length in sorted(lengths):
        if length * left > rest:
            return max(rest // left, 0)
        rest, left = rest - length, left - 1
    return max(lengths)


def _joined(texts: list[str]) -> str | None:
    return "\n\n".join(texts) or None
