"""The context in which one result is decided: outcomes so far, effects asked for, notes taken."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from gateway.core import fact_words, own_names, wording
from gateway.core.model import media_types
from gateway.core.model.blocks import Found
from gateway.core.model.effects import (
    ConvertAudio,
    Describe,
    Described,
    Effect,
    Failed,
    FitImage,
    Keep,
    Kept,
    Outcome,
    Probe,
    Probed,
    ReadDocument,
    ReadLink,
    RenderPages,
    WriteFile,
    Written,
)
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note, NoteKind
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, BlockDecision, BlockSource, ToTextLine

_MAKES_CONTENT = FitImage | RenderPages | ConvertAudio | ReadDocument | ReadLink
PDF = "application/pdf"
_MOST_PROBED = 50
"""Maximum number of sounds and videos of one result that are probed."""
_MOST_DESCRIBED = 20
"""Maximum number of media items of one result that are described: each description costs time, and words."""
SOUNDING = frozenset({"audio", "video"})


class DecisionContext:
    """One run over one result. `images` counts those that are to be shown, whether or not they turn out to be usable.

    `describes` are the kinds of media (`image`, `audio`) that can be described in words. `links` counts those that were
    read.
    """

    def __init__(
        self, envelope: Envelope, profile: Profile, outcomes: Mapping[str, Outcome], describes: Collection[str] = ()
    ) -> None:
        self.envelope = envelope
        self.profile = profile
        self.outcomes = outcomes
        self.describes = describes
        self.wanted: dict[str, Effect] = {}
        self.notes: list[Note] = []
        self.images = 0
        self.links = 0
        self._probed = 0
        self._told = 0

    def note(self, kind: NoteKind, text: str, block: int | None) -> None:
        self.notes.append(Note(kind=kind, text=text, block=block))

    def take_back(self, block: int, *kinds: NoteKind) -> None:
        """Remove the notes about a block, because it is decided again."""
        self.notes = [note for note in self.notes if note.block != block or note.kind not in kinds]

    def want(self, effect: Effect) -> Outcome | None:
        """Ask for an effect; return its outcome if it has been performed already."""
        self.wanted[effect.key] = effect
        return self.outcomes.get(effect.key)

    @property
    def awaits_content(self) -> bool:
        """Whether the size of something to be shown is still unknown because its effect has not been performed."""
        return any(
            isinstance(effect, _MAKES_CONTENT) and key not in self.outcomes for key, effect in self.wanted.items()
        )

    @property
    def awaits(self) -> bool:
        """Whether any effect has not been performed yet: sizes and handles are not final."""
        return any(key not in self.outcomes for key in self.wanted)

    @property
    def hides_media(self) -> bool:
        """Whether the result is a failure and the host does not show media of failed calls."""
        return self.envelope.is_error and self.profile.error.media == "line"

    def keep(
        self, key: str, data: str, media_type: str | None, *, is_text: bool = False, name: str | None = None
    ) -> str | None:
        """Return the handle under which content is stored; None until it is, or if storing failed."""
        kept = self.want(Keep(key, data, is_text, media_type or "application/octet-stream", name))
        if isinstance(kept, Failed):
            failure = Note(kind="failed", text=f"content that is not kept: {kept.reason}")
            self.notes += [failure] if failure not in self.notes else []
        return kept.handle if isinstance(kept, Kept) and self._names_handles(kept) else None

    def url(self, key: str) -> str | None:
        """Return a link to the content stored under this key, if the profile wants one and there is one."""
        kept = self.outcomes.get(key)
        return kept.url if isinstance(kept, Kept) and self.profile.content_url.show != "never" else None

    def _names_handles(self, kept: Kept) -> bool:
        instead = self.profile.content_url.show == "instead" and self.profile.handles != "always"
        return kept.url is None or not instead

    def kept(self, source: BlockSource) -> str | None:
        """Return the handle of content as it arrived; see `keep`."""
        return self.keep(_kept_as(source), source.found.data, source.found.media_type, name=source.name)

    def line(
        self, source: BlockSource, kind: str, why: str | None, *, is_intact: bool = True, described: bool = False
    ) -> ToTextLine:
        """Return a line that names content with bytes, and store the content.

        If `is_intact` is false, no tool could show it either. With `described`, it is also described in words if
        possible.
        """
        found = source.found
        handle, tool = self.kept(source), self._tool(found) if is_intact else None
        said_why = self.unless_kept(source, why or "")
        line = ToTextLine(said_why, kind, self.known(source), handle, tool, url=self.url(_kept_as(source)))
        said = self._described(source) if described else None
        about = f"{kind} ({found.media_type or 'unknown type'})"
        if said is None:
            self.note("named", f"{about} as a line{': ' + why if why else ''}", source.index)
            return line
        self.note("named", f"{about} as a description by {said.by}", source.index)
        return replace(line, said=said.text, by=said.by)

    def filed(self, source: BlockSource, kind: str, *, described: bool = False) -> ToTextLine:
        """Return a line with the path of a file that the host can open; without the path if none could be written."""
        media_type = source.found.media_type or "application/octet-stream"
        written = self.want(WriteFile(f"file:{source.key}", source.found.data, media_type, source.name))
        if isinstance(written, Failed):
            self.note("failed", f"{kind} as a file: {written.reason}", source.index)
            return self.line(source, kind, None, described=described)
        path = written.path if isinstance(written, Written) else None
        self.note("named", f"{kind} ({source.found.media_type or 'unknown type'}) as a file", source.index)
        handle, url = self.kept(source), self.url(_kept_as(source))
        return ToTextLine("", kind, self.known(source), handle, self._tool(source.found), path, url=url)

    def with_handle(self, decision: BlockDecision) -> BlockDecision:
        """Return the decision with a handle for the content that it shows, if any, so that it can be referred to."""
        if not isinstance(decision, AsImage | AsIs) or decision.handle or decision.source is None:
            return decision
        if decision.source.page is not None:  # a page is not content of its own: its document is named instead
            return decision
        return replace(decision, handle=self.kept(decision.source), url=self.url(_kept_as(decision.source)))

    def text_line(self, index: int, text: str, media_type: str, kind: str, why: str) -> ToTextLine:
        """Return a line that names text, and store the text."""
        handle = self.keep(f"keep:{index}", text, media_type, is_text=True)
        self.note("named", f"{kind} as a line: {why}", index)
        known = fact_words.join_facts(fact_words.plain(media_type, 80), f"{len(text):,} characters")
        tool = own_names.READ_TOOL if self.profile.tools.helpers else None
        return ToTextLine(self._unless_kept(f"keep:{index}", why), kind, known, handle, tool, self.url(f"keep:{index}"))

    def unless_kept(self, source: BlockSource, why: str) -> str:
        """Return why content is not shown, and why it has no handle if it could not be stored."""
        return self._unless_kept(_kept_as(source), why)

    def _unless_kept(self, key: str, why: str) -> str:
        kept = self.outcomes.get(key)
        return wording.not_kept(why, kept.reason) if isinstance(kept, Failed) else why

    def known(self, source: BlockSource) -> str:
        """Name, type, length, pixels and size of content that is not shown, in words; sound and video are probed."""
        name = fact_words.plain(source.name) if source.name else None
        found = source.found
        if media_types.family(found.media_type) not in SOUNDING:
            return fact_words.join_facts(name, known_of(found))
        self._probed += 1
        if self._probed > _MOST_PROBED:
            return fact_words.join_facts(name, known_of(found))
        probed = self.want(Probe(f"probe:{source.key}", found.data, found.media_type or ""))
        words = wording.probed(probed) if isinstance(probed, Probed) else None
        return fact_words.join_facts(name, found.media_type, words, fact_words.size_words(found.byte_size))

    def _tool(self, found: Found) -> str | None:
        # A tool is named only if it would show more than the line does.
        if not self.profile.tools.helpers:
            return None
        if found.media_type == PDF or (is_image(found) and self.profile.image.show == "native"):
            return own_names.VIEW_TOOL
        return None

    def _described(self, source: BlockSource) -> Described | None:
        found = source.found
        if media_types.family(found.media_type) not in self.describes or self._told >= _MOST_DESCRIBED:
            return None
        self._told += 1
        outcome = self.want(Describe(f"describe:{source.key}", found.data, found.media_type or ""))
        if isinstance(outcome, Failed):
            self.note("failed", f"describing: {outcome.reason}", source.index)
        return outcome if isinstance(outcome, Described) else None


def _kept_as(source: BlockSource) -> str:
    """Return the key of the effect that stores content as it arrived."""
    return f"keep:{source.key}"


def known_of(found: Found) -> str:
    """Return type, pixels and size, in words."""
    pixels = fact_words.pixel_words(found.pixels) if found.pixels else None
    return fact_words.join_facts(found.media_type or "unknown type", pixels, fact_words.size_words(found.byte_size))


def is_image(found: Found) -> bool:
    """Whether the content is an image of a known format."""
    return media_types.family(found.media_type) == "image"


def takes(types: tuple[str, ...], found: Found | None) -> bool:
    """Whether a target that accepts these types (empty: all) accepts the content."""
    return not types or (found is not None and found.media_type in types)
