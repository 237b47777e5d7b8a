"""The budget of a result in tokens, and what decisions cost of it: every text that is written, and every image."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_object, is_dict
from gateway.core.model.media_types import PixelSize
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, BlockDecision, SentStructured
from gateway.core.results.decisions.decision_context import DecisionContext
from gateway.core.results.decisions.lengths import length_effect, length_in
from gateway.core.results.decisions.write_blocks import BlockWriter, error_words
from gateway.core.tokens import (
    Content,
    Medium,
    TokenFormula,
    content_of_result,
    count_content,
    medium_of,
    medium_tokens,
    read_of_structured,
    text_tokens,
)

LEAST_BUDGET = 100
"""The tokens below which a budget cannot be kept: a line has to say what was left out, and how to open it."""
_STEP = 8
"""Pixels to which an edge is rounded down, so that one more word of text does not change the image's bytes."""


_MOST_MEASURED = 20
"""Sounds, videos and documents of one result whose length is found out; that of further ones is guessed."""


@dataclass(frozen=True)
class TokenBudget:
    """At most `most` tokens for a result, by whichever of the `formulas` counts most."""

    most: int
    formulas: Sequence[TokenFormula]

    def image(self, pixels: PixelSize | None) -> int:
        """Return the tokens of an image; 0 if they are not known."""
        return self.medium(Medium("image", pixels))

    def medium(self, medium: Medium) -> int:
        """Return the tokens of a medium; 0 if they are not known."""
        content = Content(media=[medium])
        return max((count_content(content, formula).total for formula in self.formulas), default=0)

    def charges_for_length(self, medium: Medium) -> bool:
        """Whether any of the models has a published price for each second or page of such a medium."""
        return any(medium_tokens(replace(medium, seconds=1, pages=1), formula) for formula in self.formulas)

    def edge(self, pixels: PixelSize, tokens: int) -> int:
        """Return the largest length of the longer edge at which an image costs at most so many tokens; 0: none."""
        low, high = 0, max(pixels) // _STEP
        while low < high:
            middle = (low + high + 1) // 2
            cost = self.image(scaled_to(pixels, middle * _STEP))
            low, high = (middle, high) if cost <= tokens else (low, middle - 1)
        return low * _STEP


def scaled_to(pixels: PixelSize, edge: int) -> PixelSize:
    """Return the size of an image whose longer edge is scaled to `edge`."""
    scale = edge / max(pixels)
    return PixelSize(max(1, round(pixels.width * scale)), max(1, round(pixels.height * scale)))


@dataclass
class WrittenCosts:
    """What decisions cost in tokens as they are written for the host: captions, markers, lines and all.

    Media of unknown cost count as nothing.
    """

    context: DecisionContext
    budget: TokenBudget
    structured: SentStructured | None = None
    """The structured content that is sent beside the blocks, if any."""

    def total(self, decided_blocks: Sequence[BlockDecision]) -> int:
        """Return the tokens of everything that the model reads."""
        return self.said(decided_blocks) + sum(self.media(decided_blocks).values())

    def said(self, decided_blocks: Sequence[BlockDecision]) -> int:
        """Return the tokens of all that is written, media apart; structured content counts where the host shows it."""
        profile, envelope = self.context.profile, self.context.envelope
        writer = BlockWriter(profile)
        for decision in decided_blocks:
            writer.write(decision)
        blocks = writer.content(error_words(envelope, profile, decided_blocks), structured=self.structured is not None)
        content = content_of_result({"content": [_without_bytes(block) for block in blocks]})
        said = sum(map(text_tokens, content.texts))
        if self.structured is None:
            return said
        how = read_of_structured(profile.structured.host, is_alone=not blocks)
        return (0 if how == "instead" else said) + (0 if how == "never" else self._structured_tokens)

    def media(self, decided_blocks: Sequence[BlockDecision]) -> dict[int, int]:
        """Return the tokens of each image, sound, video or document that is shown, by its place."""
        found: dict[int, int] = {}
        for place, decision in enumerate(decided_blocks):
            medium = self._medium(decision)
            if medium is not None and (tokens := self.budget.medium(medium)):
                found[place] = tokens
        return found

    def _medium(self, decision: BlockDecision) -> Medium | None:
        """Return the medium that is shown; its length is found out if there is a formula for it."""
        if isinstance(decision, AsImage):
            return Medium("image", decision.pixels)
        shown, source = (decision.shown, decision.source) if isinstance(decision, AsIs) else (None, None)
        if shown is None or source is None:
            return None
        medium = medium_of(shown)
        key = f"length:{source.key}{'' if shown.data == source.found.data else ':sent'}"
        if not self.budget.charges_for_length(medium) or not self._may_measure(key):
            return medium
        effect = length_effect(key, shown)
        length = length_in(self.context.want(effect)) if effect is not None else None
        return medium if length is None else replace(medium, seconds=length.seconds, pages=length.pages)

    def _may_measure(self, key: str) -> bool:
        """Whether this medium is among the first that are measured; the others' length is guessed."""
        measured = [known for known in self.context.wanted if known.startswith("length:")]
        return key in measured or len(measured) < _MOST_MEASURED

    @property
    def reads_texts(self) -> bool:
        """Whether the host's model reads the texts, and not structured content in their place."""
        host = self.context.profile.structured.host
        return self.structured is None or read_of_structured(host, is_alone=False) != "instead"

    @cached_property
    def _structured_tokens(self) -> int:
        return 0 if self.structured is None else text_tokens(compact_json(self.structured.value))


def shown_pixels(decision: BlockDecision) -> PixelSize | None:
    """Return the size of the image that is shown; None if it is unknown, or no image is shown."""
    match decision:
        case AsImage():
            return decision.pixels
        case AsIs() if decision.shown is not None:
            return decision.shown.pixels
        case _:
            return None


def _without_bytes(block: Any) -> Any:
    """Return a block with its base64 left out, since only its kind matters."""
    if not is_dict(block):
        return block
    if "data" in block:
        return {**block, "data": ""}
    resource = as_object(block.get("resource"))
    return {**block, "resource": {**resource, "blob": ""}} if "blob" in resource else block
