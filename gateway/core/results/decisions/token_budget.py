"""The budget of a result in tokens: texts are cut and images are scaled until the model pays no more than that.

As with sizes, media is never removed to make space for text: it keeps up to three quarters of the budget. Media of
unknown cost, lines in place of media, and structured content beside the blocks are not counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.core.model.media_types import PixelSize
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, AsText, BlockDecision
from gateway.core.results.decisions.cut_texts import cut_texts, share, text_sizes
from gateway.core.results.decisions.decision_context import DecisionContext, is_image
from gateway.core.results.decisions.documents import left_out_page
from gateway.core.results.decisions.images import fit_image_to_profile
from gateway.core.tokens import Content, Medium, TokenFormula, count_content, text_tokens

_LEAST_TEXT = 100
"""Tokens of text that are always kept."""
_MOST_KEPT_FREE = 0.75
"""Maximum share of the budget that is reserved for media."""
_LEAST_EDGE = 200
"""Pixels of the longer edge below which an image is named rather than scaled further: little could be seen in it."""
_STEP = 8
"""Pixels to which an edge is rounded down, so that one more word of text does not change the image's bytes."""
_CAPTION = 50
"""Tokens of the line that says that an image was scaled, and by which handle to see the original."""
_MARGIN = 0.95
"""Texts differ from part to part in the characters of a token."""
_ROUNDS = 6
"""How often texts are cut again because what is left of them costs more than their average says."""


@dataclass(frozen=True)
class TokenBudget:
    """At most `most` tokens for a result, by whichever of the `formulas` counts most."""

    most: int
    formulas: Sequence[TokenFormula]

    def image(self, pixels: PixelSize | None) -> int:
        """Return the tokens of an image; 0 if they are not known."""
        content = Content(media=[Medium("image", pixels)])
        return max((count_content(content, formula).images for formula in self.formulas), default=0)

    def edge(self, pixels: PixelSize, tokens: int) -> int:
        """Return the largest length of the longer edge at which an image costs at most so many tokens; 0: none."""
        low, high = 0, max(pixels) // _STEP
        while low < high:
            middle = (low + high + 1) // 2
            cost = self.image(_scaled(pixels, middle * _STEP))
            low, high = (middle, high) if cost <= tokens else (low, middle - 1)
        return low * _STEP


def within_tokens(
    context: DecisionContext, decided_blocks: list[BlockDecision], budget: TokenBudget
) -> list[BlockDecision]:
    """Return the same decisions within the budget."""
    media = _media_tokens(decided_blocks, budget)
    said, shown = _said(decided_blocks), sum(media.values())
    if said + shown <= budget.most:
        return decided_blocks
    words = f"a result of about {said + shown:,} tokens to its budget of {budget.most:,}"
    context.note("cut", words, None)
    kept_free = min(shown, int(budget.most * _MOST_KEPT_FREE))
    room = max(_LEAST_TEXT, budget.most - kept_free)
    if said > room:
        decided_blocks = _cut(context, decided_blocks, room)
        said, media = max(room, _said(decided_blocks)), _media_tokens(decided_blocks, budget)
    left = max(0, budget.most - said)
    if shown <= left or context.awaits_content:  # space is divided only after everything has been fitted by itself
        return decided_blocks
    shares = _shares(decided_blocks, media, budget, max(0, left - _CAPTION * len(media)))
    return [
        _smaller(context, decision, budget, shares.get(place, 0))
        if media.get(place, 0) > shares.get(place, 0)
        else decision
        for place, decision in enumerate(decided_blocks)
    ]


def _cut(context: DecisionContext, whole: list[BlockDecision], room: int) -> list[BlockDecision]:
    """Cut texts until they cost no more than `room`: what is left of a text may be denser than the text was.

    Each round is a cut of the whole texts, so that the line within each tells what is left out of the original.
    """
    limit, cut = sum(text_sizes(whole).values()), whole
    for _ in range(_ROUNDS):
        if (said := _said(cut)) <= room:
            break
        limit = int(min(limit, sum(text_sizes(cut).values())) * room / said * _MARGIN)
        cut = cut_texts(context, whole, limit)
    return cut


def _said(decided_blocks: list[BlockDecision]) -> int:
    """Return the tokens of all texts."""
    return sum(text_tokens(decision.text) for decision in decided_blocks if isinstance(decision, AsText))


def _shares(
    decided_blocks: list[BlockDecision], media: Mapping[int, int], budget: TokenBudget, room: int
) -> dict[int, int]:
    """Divide `room` among the images that can be shown, by their places: in their order, as long as there is room.

    An equal share for each would be too small for any of several images whose cost does not depend on their size.
    """
    least: dict[int, int] = {}
    for place, tokens in media.items():
        cheapest = min(tokens, _least_tokens(decided_blocks[place], budget))
        if cheapest <= room:
            least[place] = cheapest
            room -= cheapest
    more = share({place: media[place] - tokens for place, tokens in least.items()}, room)
    return {place: tokens + more[place] for place, tokens in least.items()}


def _least_tokens(decision: BlockDecision, budget: TokenBudget) -> int:
    """Return the tokens of an image at the smallest size to which it may be scaled."""
    pixels = _pixels(decision)
    if pixels is None or not isinstance(decision, AsImage | AsIs) or max(pixels) < _LEAST_EDGE:
        return budget.image(pixels)
    if decision.source is None or decision.source.page is not None or not is_image(decision.source.found):
        return budget.image(pixels)
    return budget.image(_scaled(pixels, _LEAST_EDGE))


def _scaled(pixels: PixelSize, edge: int) -> PixelSize:
    """Return the size of an image whose longer edge is scaled to `edge`."""
    scale = edge / max(pixels)
    return PixelSize(max(1, round(pixels.width * scale)), max(1, round(pixels.height * scale)))


def _media_tokens(decided_blocks: list[BlockDecision], budget: TokenBudget) -> dict[int, int]:
    """Return the tokens of each image that is shown, by its place."""
    found: dict[int, int] = {}
    for place, decision in enumerate(decided_blocks):
        if (tokens := budget.image(_pixels(decision))) and _is_shown(decision):
            found[place] = tokens
    return found


def _is_shown(decision: BlockDecision) -> bool:
    if isinstance(decision, AsIs):
        return decision.has_bytes and decision.shown is not None and is_image(decision.shown)
    return isinstance(decision, AsImage)


def _pixels(decision: BlockDecision) -> PixelSize | None:
    match decision:
        case AsImage():
            return decision.pixels
        case AsIs() if decision.shown is not None:
            return decision.shown.pixels
        case _:
            return None


def _smaller(context: DecisionContext, decision: BlockDecision, budget: TokenBudget, tokens: int) -> BlockDecision:
    """Scale an image to at most so many tokens, or name it in a line if it would be too small to be of use."""
    pixels = _pixels(decision)
    if not isinstance(decision, AsImage | AsIs) or decision.source is None:
        return decision
    source = decision.source
    why = f"its {budget.image(pixels):,} tokens are more than the {budget.most:,} of this result have room for"
    if source.page is not None and isinstance(decision, AsImage):
        return left_out_page(context, decision, source, why)
    edge = 0 if pixels is None else budget.edge(pixels, tokens)
    if edge < _LEAST_EDGE or not is_image(source.found):
        context.take_back(source.index, "resized", "converted")
        return context.line(source, "image", why)
    context.take_back(source.index, "resized", "converted")
    beside: Mapping[str, object] = decision.beside if isinstance(decision, AsImage) else {"type": "image"}
    uri = decision.uri if isinstance(decision, AsImage) else None
    limit = context.profile.image.max_bytes
    if isinstance(decision, AsImage) and decision.data != source.found.data:  # fitted to a share of the whole result
        limit = min(limit or len(decision.data), len(decision.data) * 3 // 4)
    return fit_image_to_profile(context, source, f"tokens:{source.key}", limit, beside, uri, max_edge=edge)
