"""What a host's model is told first: the gateway's own instructions, and those of its upstreams. Pure.

Standard library only: a host on stdio is answered before anything else is loaded.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from gateway.core.model.texts import cut, visible
from gateway.core.profiles.client_names import normalise_client_name

LONGEST_PART = 64_000
"""Characters of one upstream's instructions beyond which they are cut, whatever the host takes."""

LONGEST = 8_000
"""Characters for a host of which nothing is known: as in the profile `default`, which may not be loaded yet."""

HANDLES = (
    "Results name content by handles, as img_7h3k2m9q4w8x. Where an argument of a tool takes content, give its handle; "
    "the resource content://directory lists what there is."
)
"""Told to hosts whose profile says so (`instructions.handles`)."""

_LEAST = 80
"""Characters of an upstream's instructions below which there is no use in telling them."""

_HEADING = re.compile(r"^(#{1,2})(?=[ \t])", re.MULTILINE)


class Introductions(NamedTuple):
    """What the upstreams say, in the order of the configuration, and how much hosts keep.

    `parts` are (upstream, its instructions); `limits` (glob on the normalised client name, characters), the closest
    first; `longest` is for all other clients. None is no limit. `handles` says in the same way who is told about them.
    """

    parts: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, int | None], ...] = ()
    longest: int | None = LONGEST
    handles: tuple[tuple[str, bool], ...] = ()

    def told(self, own: str | None, client: str | None) -> str | None:
        """All of it as one text for a client of this name, `own` being the gateway's; None when there is nothing."""
        first = "\n\n".join(text for text in (own, HANDLES if self._names_handles(client) else None) if text)
        return merge_instructions(first, self.parts, self._limit(client))

    def _limit(self, client: str | None) -> int | None:
        name = normalise_client_name(client) if client is not None else None
        found = (limit for glob, limit in self.limits if name is not None and fnmatchcase(name, glob))
        return next(found, self.longest)

    def _names_handles(self, client: str | None) -> bool:
        name = normalise_client_name(client) if client is not None else ""
        return next((told for glob, told in self.handles if fnmatchcase(name, glob)), False)


def part(text: str | None) -> str:
    """An upstream's instructions as they may stand among others.

    Halves of surrogate pairs replaced, control characters made visible; headings that would stand beside or above the
    one with the upstream's name, and so could speak in another's name, moved below it.
    """
    whole = (text or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    lines = visible(whole).replace("\r\n", "\n").replace("\r", "\n").strip()
    return cut(_HEADING.sub(r"##\1", lines), LONGEST_PART)


def merge_instructions(own: str | None, parts: Iterable[tuple[str, str]], longest: int | None) -> str | None:
    """The gateway's own text, then each upstream's under its name, at most `longest` characters.

    What is too long is cut, evenly: a long one takes nothing from short ones. Those that would get next to nothing are
    left out, the last first.
    """
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
    """The most characters that each may have, so that all together have at most `room`."""
    rest, left = room, len(lengths)
    for length in sorted(lengths):
        if length * left > rest:
            return max(rest // left, 0)
        rest, left = rest - length, left - 1
    return max(lengths)


def _joined(texts: list[str]) -> str | None:
    return "\n\n".join(texts) or None
