"""What the two readers of a result get of it, for people: the model, and the page of the tool (MCP Apps). Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from gateway.core.apps.results import (
    FOR_THE_PAGE_ALONE,
    HEAVY_CHARS,
    IN_A_FILE,
    TAKEN_BY_THE_MODEL,
    TextSize,
    is_for_a_file,
)
from gateway.core.apps.tools import Audience
from gateway.core.fact_words import counted
from gateway.core.model.blocks import Block, ImageBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.profiles.profile import Profile

_COMPARED = 200
"""Characters by which the page's data is found in a text, where its middle may be cut out."""

_UNTAKEN = {
    "ignored": "this host's model does not read it",
    "if-empty": "this host's model reads it only where there is no content",
    "unknown": "whether this host's model reads it as well is not known",
}


@dataclass(frozen=True)
class Readers:
    """A result as it is sent to a host of this profile that shows pages, and who reads it there."""

    sent: Envelope
    profile: Profile
    audience: Audience

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a heading for each of the two, and the lines below it."""
        yield "the model reads", list(self.model_lines())
        yield "the page reads", list(self.page_lines())

    def model_lines(self) -> Iterator[str]:
        """Yield what the model reads, with sizes, and a warning if too much of it is the page's data."""
        if self.audience == "app":
            yield "nothing: only pages call this tool"
            return
        host = self.profile.structured.host
        media = sum(_text_of(block) is None for block in self.sent.blocks)
        if not self._replaces_content:
            beside = f", and {counted(media, 'block')} of other kinds" if media else ""
            yield f"the content: {self._content_size.words()}{beside}"
        elif media and host == "replaces-text":
            yield f"of the content {counted(media, 'block')} without text"
        if self._data:
            taken = IN_A_FILE if self._is_in_file else TAKEN_BY_THE_MODEL.get(host) or _UNTAKEN[host]
            yield f"structured content, {self._data_size.words()}: {taken}"
        yield from self._shared_lines()

    def page_lines(self) -> Iterator[str]:
        """Yield what the page reads, with sizes."""
        shaped = "as the server sent it" if self.audience == "app" else "the same as is sent for the model"
        yield f"the content, {shaped}: {counted(len(self.sent.blocks), 'block')}, {self._content_size.words()}"
        if self._data and self.profile.apps.data == "text" and self.audience != "app":
            size = self._data_size.words()
            yield f"structured content, {size}: this host loses it on the way to the page; {self._way_out}"
        elif self._data:
            yield f"structured content, as the server sent it: {self._data_size.words()}"
        if self.sent.meta:
            size = TextSize.of(compact_json(self.sent.meta)).words()
            yield f"_meta, as the server sent it: {size}, which no model reads"

    @property
    def _way_out(self) -> str:
        if self._repeating is None:
            return "it gets no other"
        return f"a page that looks for it in block {self._repeating[0]}, the text, finds it there, others stay empty"

    def _shared_lines(self) -> Iterator[str]:
        """Yield what both of them read of the page's data."""
        if not self._data:
            return
        host = self.profile.structured.host
        is_taken = host in TAKEN_BY_THE_MODEL or (host == "if-empty" and not self.sent.blocks)
        is_taken = is_taken and not self._is_in_file
        read = self._data_size if is_taken else TextSize()
        maybe = self._data_size if is_taken or host == "unknown" else TextSize()
        if self._repeating is not None and not self._replaces_content:
            place, repeated = self._repeating
            read, maybe = read.plus(repeated), maybe.plus(repeated)
            yield f"block {place} of the content has the page's data as text: {repeated.words()}"
        if not maybe.chars:
            yield "nothing of the page's data"
        elif maybe.chars > HEAVY_CHARS:
            reads, size = ("reads", read) if read.chars > HEAVY_CHARS else ("may read", maybe)
            yield f"warning: the model {reads} {size.words()} of the page's data: {FOR_THE_PAGE_ALONE}"

    @property
    def _replaces_content(self) -> bool:
        return self._data != "" and self.profile.structured.host in ("replaces-all", "replaces-text")

    @property
    def _is_in_file(self) -> bool:
        return self._data != "" and is_for_a_file(self.profile, self.sent.structured_content)

    @property
    def _content_size(self) -> TextSize:
        texts = (_text_of(block) or "" for block in self.sent.blocks)
        return reduce(TextSize.plus, map(TextSize.of, texts), TextSize())

    @property
    def _data(self) -> str:
        return compact_json(self.sent.structured_content) if self.sent.has_structured_content else ""

    @property
    def _data_size(self) -> TextSize:
        return TextSize.of(self._data)

    @property
    def _repeating(self) -> tuple[int, TextSize] | None:
        """The index of the block of text that holds the structured content, if one does, and how much of it."""
        data = self._data
        for place, block in enumerate(self.sent.blocks if data else ()):
            if not isinstance(block, TextBlock):
                continue
            if (begin := block.text.find(data[:_COMPARED])) >= 0:  # other text may stand before it
                return place, TextSize.of(block.text[begin : begin + len(data)])
            if _is(block.text, data):
                return place, TextSize.of(block.text)
        return None


def hidden_pictures(envelope: Envelope) -> int:
    """Count the pictures of a result that are lost to the model where structured content replaces all content."""
    return sum(isinstance(block, ImageBlock) for block in envelope.blocks) if envelope.has_structured_content else 0


def _is(text: str, data: str) -> bool:
    """Whether a text is the same JSON, spelled differently."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return (is_dict(value) or is_list(value)) and value == json.loads(data)


def _text_of(block: Block) -> str | None:
    """Return the text of a block; None for media."""
    if isinstance(block, TextBlock):
        return block.text
    return block.resource.text if isinstance(block, ResourceBlock) else None
