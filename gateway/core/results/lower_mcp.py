"""Lowering to MCP: the envelope as the CallToolResult that this host shows best."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core import wording
from gateway.core.model.effects import Outcome
from gateway.core.model.envelope import RAW_KEY, Envelope
from gateway.core.model.json_values import is_dict
from gateway.core.model.notes import Note
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import AsImage, AsIs, AsText, BlockDecision, Decisions, ToTextLine, decide


@dataclass(frozen=True)
class Lowered:
    """A CallToolResult as wire JSON, and the notes of everything that differs from what the tool returned."""

    result: dict[str, Any]
    notes: tuple[Note, ...]


def lower(
    envelope: Envelope, profile: Profile, outcomes: Mapping[str, Outcome], describes: Collection[str] = ()
) -> Lowered:
    """The envelope as the CallToolResult for a profile, given the outcomes of all planned effects. Never raises.

    `describes`: as it was given to `plan`.
    The result has no `resultType` of our own; what the upstream said in `_meta` and in unknown members stays.
    """
    decisions = decide(envelope, profile, outcomes, describes)
    writer = _Writer(profile)
    for fate in decisions.fates:
        writer.write(fate)
    result: dict[str, Any] = {**_rest(envelope, profile), "content": writer.content(decisions)}
    notes = (*envelope.notes, *decisions.notes, *writer.notes())
    if decisions.structured:
        result["structuredContent"] = envelope.structured_content
    if decisions.is_error:
        result["isError"] = True
    elif not isinstance(result.get("isError", False), bool) and profile.text.empty == "named":
        del result["isError"]
    return Lowered(result, notes)


def _rest(envelope: Envelope, profile: Profile) -> dict[str, Any]:
    """Every other member of the result; without the raw shapes for model APIs where the room is limited."""
    if RAW_KEY not in envelope.meta or profile.limits.result_chars is None:
        return envelope.rest
    return {**envelope.rest, "_meta": {key: value for key, value in envelope.meta.items() if key != RAW_KEY}}


@dataclass
class _Writer:
    """Blocks in the making: those that stay in order, and those that are moved after the text."""

    profile: Profile
    in_place: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    moved: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    stood_before: int | None = None
    """How many blocks stood in place when the first one was moved."""

    @property
    def moves(self) -> bool:
        return self.profile.text.merge or self.profile.order == "text-first"

    def write(self, fate: BlockDecision) -> None:
        match fate:
            case AsText():
                if fate.text or self.profile.text.empty == "keep":
                    self.in_place.append({"type": "text", **fate.beside, "text": fate.text})
            case ToTextLine():
                self.say(self.line(fate))
            case AsIs():
                self.show(fate)
            case AsImage():
                self.image(fate)

    def say(self, text: str) -> None:
        self.in_place.append({"type": "text", "text": text})

    def name(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return wording.label(kind, self.counts[kind])

    def line(self, fate: ToTextLine) -> str:
        if fate.kind is None:
            return fate.text
        name = self.name(fate.kind)
        if fate.said:
            return wording.description_line(name, fate.by, fate.known, fate.handle, fate.said)
        return wording.media_line(
            name, fate.known, fate.text or None, fate.handle, fate.tool, path=fate.path, url=fate.url
        )

    def show(self, fate: AsIs) -> None:
        wire = fate.wire
        if not self.moves or not is_dict(wire):
            if fate.caption or fate.handle:
                self.say(wording.marker(self.name(fate.kind), fate.caption or fate.known, fate.handle, fate.url))
            # As it arrived, even where it is no object: nothing here may lose what it cannot name.
            self.in_place.append(wire)
            return
        known = wording.join_facts(fate.known, fate.caption)
        self.say(wording.marker(self.name(fate.kind), known, fate.handle, fate.url))
        self.move(wire)

    def image(self, fate: AsImage) -> None:
        wire = {**fate.beside, "data": fate.data, "mimeType": fate.media_type}
        scaled = wording.scaled(fate.original, fate.pixels) if fate.original and fate.pixels else None
        zoom = fate.handle if self.profile.tools.helpers and scaled else None
        named = fate.handle if self.profile.handles == "always" else None
        first = wording.kept_whole(wording.first_frame(fate.frames), None if zoom or named else fate.handle)
        changed = wording.join_facts(scaled, first if fate.frames > 1 else None) or None
        known = wording.join_facts(
            fate.about, wording.pixel_words(fate.original or fate.pixels) if fate.pixels else None
        )
        url = fate.url if changed or named else None
        name = self.name("image")
        if fate.uri:
            self.say(wording.embedded_image(name, fate.uri))
        caption = self.profile.image.caption
        if self.moves:
            self.say(wording.caption(name, known, changed, zoom, named, url))
            if caption != "never" and not self.profile.text.merge:
                self.moved.append({"type": "text", "text": wording.marker(name, fate.about)})
            self.move(wire)
            return
        if caption == "always" or fate.about or (caption == "moved" and changed) or named:
            self.say(wording.caption(name, known, changed, zoom, named, url))
        self.in_place.append(wire)

    def move(self, wire: dict[str, Any]) -> None:
        if self.stood_before is None:
            self.stood_before = len(self.in_place)
        self.moved.append(wire)

    def notes(self) -> tuple[Note, ...]:
        notes: list[Note] = []
        if self.stood_before is not None and self.stood_before < len(self.in_place):
            notes.append(Note(kind="moved", text="media stands after the text, with markers where it stood"))
        if self.profile.text.merge and len(self.in_place) > 1:
            notes.append(Note(kind="moved", text=f"{len(self.in_place)} texts and markers as one block of text"))
        return tuple(notes)

    def content(self, decisions: Decisions) -> list[dict[str, Any]]:
        content = _merged(self.in_place) if self.profile.text.merge else self.in_place
        content = _prefixed(content, decisions.prefix) + self.moved
        if not content and self.profile.text.empty == "named":
            words = wording.NO_TEXT_ERROR if decisions.is_error else wording.NOTHING
            return [] if decisions.structured else [{"type": "text", "text": words}]
        return content


def _merged(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All texts as one block, in order: hosts that take only the first text block get all of it.

    One that stands alone keeps its `_meta`, which a page may read.
    """
    blocks = [block for block in blocks if block["text"]]
    if not blocks:
        return []
    meta = blocks[0].get("_meta") if len(blocks) == 1 else None
    kept: dict[str, Any] = {"_meta": meta} if isinstance(meta, dict) else {}
    return [{"type": "text", **kept, "text": "\n".join(str(block["text"]) for block in blocks)}]


def _prefixed(blocks: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    if not prefix:
        return blocks
    for index, block in enumerate(blocks):
        if block.get("type") == "text":
            return [*blocks[:index], {**block, "text": wording.failed_text(block["text"])}, *blocks[index + 1 :]]
    return [{"type": "text", "text": prefix + wording.NO_TEXT_ERROR}, *blocks]
