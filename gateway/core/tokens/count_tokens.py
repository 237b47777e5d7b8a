"""Counting the tokens of content by a formula: texts by an estimate, media by what is published."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from gateway.core.tokens.content_items import Content, Medium, content_of_tools
from gateway.core.tokens.count_image import image_tokens
from gateway.core.tokens.estimate_text import text_tokens
from gateway.core.tokens.formula import TokenFormula


@dataclass(frozen=True)
class TokenCount:
    """Tokens of texts (estimated), of images, and of other media, by the vendor's formula.

    `unknown` is the number of media whose cost is not known: the formula is not published, or their size is unknown.
    `guessed` is the number of media whose length is not known, so that it was guessed from their size in bytes.
    """

    text: int = 0
    images: int = 0
    others: int = 0
    unknown: int = 0
    guessed: int = 0

    @property
    def total(self) -> int:
        """All tokens that are known."""
        return self.text + self.images + self.others

    @property
    def is_whole(self) -> bool:
        """Whether everything could be counted."""
        return self.unknown == 0


def count_content(content: Content, formula: TokenFormula | None) -> TokenCount:
    """Return the tokens of content for the models of a formula; without one, all media are of unknown cost."""
    images = others = unknown = guessed = 0
    for medium in content.media:
        if (guess := _guessed(medium)) is not medium and formula is not None and medium_tokens(guess, formula):
            medium, guessed = guess, guessed + 1
        tokens = None if formula is None else medium_tokens(medium, formula)
        if tokens is None:
            unknown += 1
        elif medium.kind == "image":
            images += tokens
        else:
            others += tokens
    return TokenCount(sum(map(text_tokens, content.texts)), images, others, unknown, guessed)


def list_tokens(tools: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of a list of tools, as a model reads it."""
    return sum(map(text_tokens, content_of_tools(tools).texts))


def medium_tokens(medium: Medium, formula: TokenFormula) -> int | None:
    """Return the tokens of one medium; None if they are not known."""
    match medium.kind:
        case "image":
            return image_tokens(formula.image, medium.pixels)
        case "audio":
            return _product(medium.seconds, formula.audio.per_second)
        case "video":
            return _product(medium.seconds, formula.video.per_second)
        case "document":
            return _product(medium.pages, formula.document.per_page)
        case "other":
            return None


_BYTES_A_SECOND = 16_000
"""Compressed sound of 128 kbit/s, or speech of 8 kHz and 16 bits."""
_BYTES_A_PAGE = 50_000
"""A page of print with a small picture."""


def _guessed(medium: Medium) -> Medium:
    """Return a medium with its length guessed from its size in bytes, if that is all that is known of it.

    Not for video, which has from a few kilobytes to many megabytes a second.
    """
    size = medium.byte_size
    if medium.kind == "audio" and medium.seconds is None and size:
        return replace(medium, seconds=size / _BYTES_A_SECOND)
    if medium.kind == "document" and medium.pages is None and size:
        return replace(medium, pages=ceil(size / _BYTES_A_PAGE))
    return medium


def _product(amount: float | None, rate: float | None) -> int | None:
    return None if amount is None or rate is None or amount < 0 else ceil(amount * rate)
