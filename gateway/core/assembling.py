"""Assembling: the results of a turn as the parts that a model API takes, each where it may stand.

Media that may not stand in a tool's message goes into ONE follow-up after ALL tool messages, because OpenAI-style APIs
refuse anything between them; a marker stays where it stood, and the same label stands before it there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.core import wording
from gateway.core.deciding import AsImage, AsIs, AsLine, AsText, Fate, decide
from gateway.core.model import media_types
from gateway.core.model.blocks import AudioBlock, Block, Found, ImageBlock, ResourceBlock
from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.media_types import PixelSize
from gateway.core.model.model_profile import ModelProfile, Place
from gateway.core.model.notes import Note
from gateway.core.model.profile import (
    AudioRules,
    BlobRules,
    EmbeddedTextRules,
    ImageRules,
    LinkRules,
    Profile,
    StructuredRules,
    TextRules,
    UnknownRules,
)
from gateway.core.model.turn import Answer, Call, FollowUp, Media, MediaKind, Part, Turn, Words


@dataclass(frozen=True)
class Assembled:
    """The turn, the effects that are still needed for it, and the notes of what was changed."""

    turn: Turn
    wanted: Mapping[str, Effect]
    notes: tuple[Note, ...]


def assemble(calls: Sequence[Call], profile: ModelProfile, outcomes: Mapping[str, Outcome]) -> Assembled:
    """The turn for a model profile, given the outcomes so far. Pure; never raises.

    Effects and outcomes are keyed `<index of the call>/<key within its result>`.
    """
    assembler = _Assembler(profile)
    for index, call in enumerate(calls):
        mine = {key.split("/", 1)[1]: outcome for key, outcome in outcomes.items() if key.startswith(f"{index}/")}
        assembler.add(index, call, mine)
    turn = Turn(tuple(assembler.answers), tuple(assembler.follow_ups))
    return Assembled(turn, assembler.wanted, tuple(assembler.notes))


@dataclass
class _Assembler:
    """One run over a turn. Numbers and the count of images go on from call to call."""

    profile: ModelProfile
    answers: list[Answer] = field(default_factory=list[Answer])
    follow_ups: list[FollowUp] = field(default_factory=list[FollowUp])
    wanted: dict[str, Effect] = field(default_factory=dict[str, Effect])
    notes: list[Note] = field(default_factory=list[Note])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    documents: int = 0

    def add(self, index: int, call: Call, outcomes: Mapping[str, Outcome]) -> None:
        envelope, errors = call.envelope, self.profile.error
        decisions = decide(envelope, self._rules(), outcomes)
        self.wanted |= {f"{index}/{effect.key}": effect for effect in decisions.wanted}
        self.notes += [*envelope.notes, *decisions.notes]
        flagged = envelope.is_error and errors.flag
        parts: list[Part] = []
        for place, fate in enumerate(decisions.fates):
            block = envelope.blocks[place] if place < len(envelope.blocks) else None
            self._place(parts, call, fate, block, text_only=flagged and errors.text_only)
        if envelope.is_error and not flagged:
            _prefix(parts)
        if not parts:
            parts.append(Words(wording.NO_TEXT_ERROR if envelope.is_error else wording.NOTHING))
        elif flagged and not any(isinstance(part, Words) for part in parts):
            parts.insert(0, Words(wording.NO_TEXT_ERROR))
        self.answers.append(Answer(call, tuple(parts), flagged))

    def _rules(self) -> Profile:
        """What may leave as media, as the rules that decide every result; the count goes on over the turn."""
        image, audio, document, video = (
            self.profile.image,
            self.profile.audio,
            self.profile.document,
            self.profile.video,
        )
        shows = self.profile.vision and image.place != "none"
        left = None if image.max_count is None else image.max_count - self.numbers.get("image shown", 0)
        files = [*(document.types if document.place != "none" else ()), *(video.types if video.place != "none" else ())]
        files += audio.types if audio.place != "none" else ()
        return Profile(
            name=self.profile.name,
            text=TextRules(max_chars=self.profile.text.max_chars, empty="named"),
            image=ImageRules(
                show="native" if shows and (left is None or left > 0) else "line",
                types=(*image.types, *image.follow_up_types),
                max_edge=image.max_edge,
                max_bytes=image.max_bytes,
                max_count=left if left is None or left > 0 else None,
            ),
            audio=AudioRules(show="native" if audio.place != "none" else "line", types=audio.types),
            blob=BlobRules(show="native" if files else "line", types=tuple(files), image_as_image=True),
            embedded_text=EmbeddedTextRules(show="text"),
            link=LinkRules(show="line"),
            unknown=UnknownRules(show="line"),
            structured=StructuredRules(send="never"),
        )

    def _place(self, parts: list[Part], call: Call, fate: Fate, block: Block | None, *, text_only: bool) -> None:
        match fate:
            case AsText():
                if fate.text:
                    parts.append(Words(fate.text))
            case AsLine():
                parts.append(Words(self._line(fate)))
            case AsImage():
                if fate.uri:
                    parts.append(Words(wording.link_line("", "", fate.uri, None, readable=False)))
                media = Media("image", fate.media_type, fate.data, self._label("image"), _title(fate.uri))
                self.numbers["image shown"] = self.numbers.get("image shown", 0) + 1
                late = fate.media_type in self.profile.image.follow_up_types
                place: Place = "follow_up" if late or text_only else self.profile.image.place
                self._media(parts, call, media, place, _changed(fate.original, fate.pixels))
            case AsIs():
                found = block.found if isinstance(block, ImageBlock | AudioBlock | ResourceBlock) else None
                if found is not None:
                    self._bytes(parts, call, found, block, text_only=text_only)

    def _bytes(self, parts: list[Part], call: Call, found: Found, block: Block | None, *, text_only: bool) -> None:
        family = media_types.family(found.media_type)
        kind: MediaKind = family if family in ("audio", "video") else "document"  # pyright: ignore[reportAssignmentType]
        rules = {"audio": self.profile.audio, "video": self.profile.video, "document": self.profile.document}[kind]
        title = _title(block.resource.uri) if isinstance(block, ResourceBlock) else None
        label = self._label(kind)
        if rules.max_count is not None and self.numbers[kind] > rules.max_count:
            why = f"only {rules.max_count} of a kind are taken at once"
            parts.append(Words(wording.media_line(label, found.media_type or "", why, None, None)))
            self.notes.append(Note(kind="named", text=f"{label} of {call.name}: {why}"))
            return
        media = Media(kind, found.media_type or "application/octet-stream", found.data, label, title)
        self._media(parts, call, media, "follow_up" if text_only else rules.place, None)

    def _media(self, parts: list[Part], call: Call, media: Media, place: Place, changed: str | None) -> None:
        if place == "in_tool":
            if changed:
                parts.append(Words(wording.caption(media.label, "", changed, None)))
            parts.append(media)
            return
        parts.append(Words(wording.marker(media.label, wording.facts(changed, "after the tool results"))))
        self.follow_ups.append(FollowUp(wording.whose(media.label, call.name, call.id), media))
        self.notes.append(Note(kind="moved", text=f"{media.label} of {call.name} into the message after the results"))

    def _label(self, kind: str) -> str:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return wording.label(kind, self.numbers[kind])

    def _line(self, fate: AsLine) -> str:
        if fate.kind is None:
            return fate.text
        return wording.media_line(self._label(fate.kind), fate.known, fate.text or None, fate.handle, fate.tool)


def _prefix(parts: list[Part]) -> None:
    for index, part in enumerate(parts):
        if isinstance(part, Words):
            if not part.text.lstrip().lower().startswith("error"):
                parts[index] = Words(wording.ERROR_PREFIX + part.text)
            return
    parts.insert(0, Words(wording.ERROR_PREFIX + wording.NO_TEXT_ERROR))


def _changed(original: PixelSize | None, shown: PixelSize | None) -> str | None:
    return wording.scaled(original, shown) if original and shown else None


def _title(uri: str | None) -> str | None:
    return wording.plain(uri.rstrip("/").rsplit("/", 1)[-1], 100) or None if uri else None
