"""The desk at which one result is decided: what is known, what is wanted, what has been noted."""

from collections.abc import Mapping
from typing import Any

from gateway.core import wording
from gateway.core.deciding.fates import AsImage, AsLine, Fate
from gateway.core.model import media_types
from gateway.core.model.blocks import Found
from gateway.core.model.effects import Effect, Failed, FitImage, Fitted, ImageTarget, Keep, Kept, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note, NoteKind
from gateway.core.model.profile import Profile

_ANY_IMAGE = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What an image is fitted to where the profile takes every type."""


class Desk:
    """One run over one result. `images` counts those that are to be shown, whether or not they then can be."""

    def __init__(self, envelope: Envelope, profile: Profile, outcomes: Mapping[str, Outcome]) -> None:
        self.envelope = envelope
        self.profile = profile
        self.outcomes = outcomes
        self.wanted: dict[str, Effect] = {}
        self.notes: list[Note] = []
        self.images = 0

    def note(self, kind: NoteKind, text: str, block: int | None) -> None:
        self.notes.append(Note(kind=kind, text=text, block=block))

    def take_back(self, block: int, *kinds: NoteKind) -> None:
        """Forget what was noted of a block, because it is decided anew."""
        self.notes = [note for note in self.notes if note.block != block or note.kind not in kinds]

    def want(self, effect: Effect) -> Outcome | None:
        """Ask for an effect; its outcome if it has been performed already."""
        self.wanted[effect.key] = effect
        return self.outcomes.get(effect.key)

    @property
    def awaits_images(self) -> bool:
        """Whether some image is still to be fitted, so that its size is not known yet."""
        return any(isinstance(effect, FitImage) and key not in self.outcomes for key, effect in self.wanted.items())

    def keep(
        self, key: str, data: str, media_type: str | None, *, is_text: bool = False, name: str | None = None
    ) -> str | None:
        """The handle under which content is kept; None while it is not, or where it could not be."""
        kept = self.want(Keep(key, data, is_text, media_type or "application/octet-stream", name))
        return kept.handle if isinstance(kept, Kept) else None

    def line(
        self, index: int, found: Found, kind: str, why: str | None, name: str | None = None, *, is_sound: bool = True
    ) -> AsLine:
        """A line that names content with bytes, which are kept. Not `is_sound`: no tool could show it either."""
        handle = self.keep(f"keep:{index}", found.data, found.media_type, name=name)
        self.note("named", f"{kind} ({found.media_type or 'unknown type'}) as a line{': ' + why if why else ''}", index)
        # A tool is named only where it would show more than this line does.
        viewable = is_sound and is_image(found) and self.profile.image.show == "native" and self.profile.tools.helpers
        known = wording.facts(wording.plain(name) if name else None, known_of(found))
        return AsLine(why or "", kind, known, handle, wording.VIEW_TOOL if viewable else None)

    def text_line(self, index: int, text: str, media_type: str, kind: str, why: str) -> AsLine:
        """A line that names text, which is kept."""
        handle = self.keep(f"keep:{index}", text, media_type, is_text=True)
        self.note("named", f"{kind} as a line: {why}", index)
        known = wording.facts(wording.plain(media_type, 80), f"{len(text):,} characters")
        return AsLine(why, kind, known, handle, wording.READ_TOOL if self.profile.tools.helpers else None)

    def fitted(
        self, index: int, found: Found, key: str, max_bytes: int | None, beside: Mapping[str, Any], uri: str | None
    ) -> Fate:
        """An image made to fit the profile; provisional (as it is) until the outcome is known."""
        rules = self.profile.image
        media_type = found.media_type or "application/octet-stream"
        target = ImageTarget(rules.types or _ANY_IMAGE, rules.max_edge, max_bytes)
        outcome = self.want(FitImage(key, found.data, media_type, target))
        if isinstance(outcome, Failed):
            self.note("failed", f"image: {outcome.reason}", index)
            return self.line(index, found, "image", outcome.reason, is_sound=key.startswith("refit"))
        if not isinstance(outcome, Fitted):
            return AsImage(found.data, media_type, found.pixels, beside, uri=uri)
        handle = self.keep(f"keep:{index}", found.data, found.media_type)
        is_scaled = outcome.pixels != outcome.original
        if is_scaled:
            was, now = wording.pixel_words(outcome.original), wording.pixel_words(outcome.pixels)
            self.note("resized", f"image {was} to {now}", index)
        if outcome.media_type != media_type:
            self.note("converted", f"{media_type} to {outcome.media_type}", index)
        elif not is_scaled:
            self.note("resized", f"image to {wording.size_words(len(outcome.data) * 3 // 4)}", index)
        original = outcome.original if is_scaled else None
        return AsImage(outcome.data, outcome.media_type, outcome.pixels, beside, original, handle, uri)


def known_of(found: Found) -> str:
    """Type, pixels and size, in words."""
    pixels = wording.pixel_words(found.pixels) if found.pixels else None
    return wording.facts(found.media_type or "unknown type", pixels, wording.size_words(found.byte_size))


def is_image(found: Found) -> bool:
    """Whether the content is an image of a known format."""
    return media_types.family(found.media_type) == "image"
