"""Judging what the model of a host got to see of an upstream's own result."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.originals import OriginalImage, expected_images, original_images
from gateway.hosts.simulators.pictures import Picture
from gateway.hosts.simulators.readable_text import named_images, openings, pages_lost, read_again, read_by, unnamed
from gateway.hosts.simulators.results import VECTOR, is_error
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenText

SAME_COLOURS = 16.0
"""Maximum difference of two pictures of the same thing: scaled, as JPEG, or on white instead of transparent.

It is an average over a coarse grid, from 0 to 255.
"""
SAME_SHAPE = 0.03
READ_AGAIN = "read more than once"
"""The beginning of the problem that a text has arrived more often than the tool wrote it."""
_ERROR = re.compile(r"\b(?:error|failed|failure)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a result at one host.

    `shown` of `expected` images reach the model as pictures; `named` is the number of those that the host cannot show
    but that are named in a line of text, out of `to_name`. `unnamed` are the places of sound, documents and other bytes
    of which the model learns nothing. `leak` counts characters of base64 as text. `lost` are the beginnings of texts,
    structured values, and links that do not arrive, `again` those that arrive more often than the tool wrote them.
    `is_silent`: the tool failed, and the model does not learn of it.
    `problems` says in words what is wrong; empty means that all is well.
    """

    shown: int
    expected: int
    named: int
    to_name: int
    unnamed: tuple[str, ...]
    leak: int
    lost: tuple[str, ...]
    again: tuple[str, ...]
    is_silent: bool
    error: str | None
    is_empty: bool
    problems: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong.

        Every image that the host can show is seen; other images, sound and documents are shown or named; texts,
        structured values and links arrive, and only once; an error is reported, nothing is base64, the host did not
        fail and its model got something.
        """
        return not self.problems

    @property
    def lacks_only_media(self) -> bool:
        """Whether the only fault is that the model learns nothing of sound, documents and other bytes."""
        return bool(self.unnamed) and len(self.problems) == len(self.unnamed)

    @property
    def is_only_repeated(self) -> bool:
        """Whether the only fault is that the model reads something more than once: nothing is missing."""
        return bool(self.again) and len(self.problems) == len(self.again)

    @property
    def problems_in_short(self) -> tuple[str, ...]:
        """The problems, with everything that is not read as one, or without it if nothing arrives at all."""
        unread = {_not_read(opening) for opening in self.lost}
        others = tuple(problem for problem in self.problems if problem not in unread)
        first = next(iter(self.lost), None)
        if first is None or self.is_empty:
            return others
        more = f", and {len(self.lost) - 1} more" if len(self.lost) > 1 else ""
        return (f'not read: what begins with "{first}"{more}', *others)


def judge_seen(original: Mapping[str, Any], seen: Seen, host: SimulatedHost) -> Verdict:
    """Judge what `host` showed its model (`seen`) of a tool's own result (`original`)."""
    expected = expected_images(original, host)
    missing = unseen_images(expected, seen, host)
    to_name = 0 if host.shows_images else len(original_images(original))
    named = min(to_name, named_images(seen)) if to_name else 0
    leak = seen.base64_leak
    without_name = unnamed(original, seen)
    read = read_by(seen)
    missed = (opening for opening in openings(original) if opening not in read)
    lost = tuple(dict.fromkeys([*missed, *pages_lost(original, seen)]))
    is_silent = is_error(original) and not (seen.flagged or _ERROR.search(seen.text))
    is_empty = _is_empty(seen)
    problems: list[str] = []
    if seen.error is not None:
        problems.append(f"the host failed: {seen.error}")
    problems += [f"not seen: {image.media_type} from {image.place}" for image in missing]
    if named < to_name:
        images = "image" if to_name == 1 else "images"
        problems.append(f"neither shown nor named: {to_name - named} of {to_name} {images}")
    if leak:
        problems.append(f"{leak:,} characters of base64 as text")
    problems += [f"neither shown nor named: {place}" for place in without_name]
    problems += map(_not_read, lost)
    again = () if host.writes_twice or host.for_people else read_again(original, seen)
    problems += [f"{READ_AGAIN}: {opening}" for opening in again]
    if is_silent:
        problems.append("the model is not told that the call failed")
    if is_empty and _has_content(original):
        problems.append("nothing arrives")
    return Verdict(
        shown=len(expected) - len(missing),
        expected=len(expected),
        named=named,
        to_name=to_name,
        unnamed=without_name,
        leak=leak,
        lost=lost,
        again=again,
        is_silent=is_silent,
        error=seen.error,
        is_empty=is_empty,
        problems=tuple(problems),
    )


def _not_read(opening: str) -> str:
    return f"not read: {opening}"


def unseen_images(expected: tuple[OriginalImage, ...], seen: Seen, host: SimulatedHost) -> tuple[OriginalImage, ...]:
    """Return the expected images that no picture for the model shows."""
    if host.can_show(VECTOR):
        vectors = {image.data for image in seen.images if image.media_type == VECTOR}
        expected = tuple(image for image in expected if image.picture or image.data not in vectors)
    pictures = [picture for image in seen.images if (picture := image.picture)]
    missing: list[OriginalImage] = []
    # Vector images come last: they are recognised by shape only, and must not take another image's picture.
    for image in sorted(expected, key=lambda one: one.picture is None):
        match = min(
            (picture for picture in pictures if _shows(picture, image)),
            key=lambda picture: image.picture.difference(picture) if image.picture else 0.0,
            default=None,
        )
        if match is None:
            missing.append(image)
        else:
            pictures.remove(match)
    return tuple(missing)


def _shows(picture: Picture, image: OriginalImage) -> bool:
    # A picture of a few pixels cannot keep its shape exactly when it is scaled.
    slack = SAME_SHAPE + 1 / min(picture.pixels)
    if abs(picture.aspect / image.aspect - 1) > slack:
        return False
    if image.picture is None:
        return not picture.is_blank
    return image.picture.difference(picture) <= SAME_COLOURS


def _is_empty(seen: Seen) -> bool:
    return not any(
        isinstance(part, SeenAudio | SeenDocument)
        or (isinstance(part, SeenText) and part.form not in ("frame", "placeholder") and part.text.strip())
        for part in seen.parts
    ) and not any(image.picture or image.media_type == VECTOR for image in seen.images)


def _has_content(result: Mapping[str, Any]) -> bool:
    return bool(result.get("content")) or result.get("structuredContent") is not None
