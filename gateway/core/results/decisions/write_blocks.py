"""Writing decisions as the blocks that a host is sent: its texts, markers, captions, lines and media, in order."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gateway.core import fact_words, wording
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import is_dict
from gateway.core.model.notes import Note
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, AsText, BlockDecision, ErrorWords, ToTextLine


def error_words(envelope: Envelope, profile: Profile, decided_blocks: Iterable[BlockDecision]) -> ErrorWords:
    """Return how a result says that it is a failure: by its flag, by its text, or by both."""
    shows_media = any(
        isinstance(decision, AsImage) or (isinstance(decision, AsIs) and decision.has_bytes)
        for decision in decided_blocks
    )
    unflagged = envelope.is_error and profile.error.media == "unflag" and shows_media
    prefix = wording.ERROR_PREFIX if envelope.is_error and (unflagged or profile.error.prefix) else ""
    return ErrorWords(is_error=envelope.is_error and not unflagged, prefix=prefix, unflagged=unflagged)


@dataclass
class BlockWriter:
    """Writes decisions as blocks of MCP: those that stay in order, and those that are moved behind the text.

    `counts` are the numbers of the media that were named, by kind.
    """

    profile: Profile
    in_place: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    moved: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    stood_before: int | None = None
    """Number of blocks in place when the first one was moved."""

    @property
    def moves(self) -> bool:
        return self.profile.text.merge or self.profile.order == "text-first"

    def write(self, decision: BlockDecision) -> None:
        match decision:
            case AsText():
                if decision.text or self.profile.text.empty == "keep":
                    self.in_place.append({"type": "text", **decision.beside, "text": decision.text})
            case ToTextLine():
                self.say(self.line(decision))
            case AsIs():
                self.show(decision)
            case AsImage():
                self.image(decision)

    def say(self, text: str) -> None:
        self.in_place.append({"type": "text", "text": text})

    def name(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return wording.label(kind, self.counts[kind])

    def line(self, decision: ToTextLine) -> str:
        if decision.kind is None:
            return decision.text
        name = self.name(decision.kind)
        if decision.said:
            return wording.description_line(name, decision.by, decision.known, decision.handle, decision.said)
        return wording.media_line(
            name,
            decision.known,
            decision.text or None,
            decision.handle,
            decision.tool,
            path=decision.path,
            url=decision.url,
        )

    def show(self, decision: AsIs) -> None:
        wire = decision.wire
        if not self.moves or not is_dict(wire):
            if decision.caption or decision.handle:
                self.say(
                    wording.marker(
                        self.name(decision.kind), decision.caption or decision.known, decision.handle, decision.url
                    )
                )
            # As it arrived, even if it is not an object: nothing unknown may be lost here.
            self.in_place.append(wire)
            return
        known = fact_words.join_facts(decision.known, decision.caption)
        self.say(wording.marker(self.name(decision.kind), known, decision.handle, decision.url))
        self.move(wire)

    def image(self, decision: AsImage) -> None:
        wire = {**decision.beside, "data": decision.data, "mimeType": decision.media_type}
        scaled = wording.scaled(decision.original, decision.pixels) if decision.original and decision.pixels else None
        zoom = decision.handle if self.profile.tools.helpers and scaled else None
        named = decision.handle if self.profile.handles == "always" else None
        first = wording.kept_whole(wording.first_frame(decision.frames), None if zoom or named else decision.handle)
        changed = fact_words.join_facts(scaled, first if decision.frames > 1 else None) or None
        known = fact_words.join_facts(
            decision.about, fact_words.pixel_words(decision.original or decision.pixels) if decision.pixels else None
        )
        url = decision.url if changed or named else None
        name = self.name("image")
        if decision.uri:
            self.say(wording.embedded_image(name, decision.uri))
        caption = self.profile.image.caption
        if self.moves:
            self.say(wording.caption(name, known, changed, zoom, named, url))
            if caption != "never" and not self.profile.text.merge:
                self.moved.append({"type": "text", "text": wording.marker(name, decision.about)})
            self.move(wire)
            return
        if caption == "always" or decision.about or (caption == "moved" and changed) or named:
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

    def content(self, error: ErrorWords, *, structured: bool) -> list[dict[str, Any]]:
        """Return all blocks. `structured`: whether structured content is sent beside them."""
        content = _merged(self.in_place) if self.profile.text.merge else self.in_place
        content = _prefixed(content, error.prefix) + self.moved
        if not content and self.profile.text.empty == "named":
            words = wording.NO_TEXT_ERROR if error.is_error else wording.NOTHING
            return [] if structured else [{"type": "text", "text": words}]
        return content


def _merged(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge all texts into one block, in order: hosts that take only the first text block then get all of it.

    A text that is alone keeps its `_meta`, which a page may read.
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
