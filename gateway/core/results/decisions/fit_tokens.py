"""Fitting a result to its budget in tokens: texts are cut and images are scaled until the model pays no more than that.

As with sizes, media is never removed to make space for text: it keeps up to three quarters of the budget. All that the
gateway itself writes counts: captions, markers, lines and links. Media of unknown cost does not. Structured content
that the model reads counts too, and is cut before (`cut_structured`), or sent whole if no shape of it fits the schema.
"""

from collections.abc import Mapping
from dataclasses import replace

from gateway.core import fact_words, wording
from gateway.core.model.blocks import ResourceBlock
from gateway.core.model.json_size import compact_json
from gateway.core.results.decisions.block_decisions import (
    AsImage,
    AsIs,
    AsText,
    BlockDecision,
    SentStructured,
    ToTextLine,
)
from gateway.core.results.decisions.cut_texts import cut_texts, share, text_sizes
from gateway.core.results.decisions.decision_context import DecisionContext, is_image
from gateway.core.results.decisions.documents import left_out_page
from gateway.core.results.decisions.images import fit_image_to_profile
from gateway.core.results.decisions.token_budget import LEAST_BUDGET, TokenBudget, WrittenCosts, scaled_to, shown_pixels
from gateway.core.results.decisions.write_blocks import BlockWriter
from gateway.core.tokens import text_tokens

_MOST_KEPT_FREE = 0.75
"""Maximum share of the budget that is reserved for media."""
_LEAST_EDGE = 200
"""Pixels of the longer edge below which an image is named rather than scaled further: little could be seen in it."""
_CAPTION = 50
"""Tokens that are first expected of the line that says that an image was scaled, and how to see the original."""
_MARGIN = 0.95
"""Texts differ from part to part in the characters of a token."""
_ROUNDS = 6
"""How often texts are cut again because what is left of them costs more than their average says."""
_JOINT = 3
"""Tokens by which a caption may be longer among others: for its number, and the end of its line."""
_DIVISIONS = 4
"""How often the room for images is divided again because their captions take more of it than expected."""


def within_tokens(
    context: DecisionContext,
    decided_blocks: list[BlockDecision],
    budget: TokenBudget,
    structured: SentStructured | None = None,
) -> list[BlockDecision]:
    """Return the same decisions within the budget. `structured` is sent beside them, and counts where it is read."""
    budget = replace(budget, most=max(budget.most, LEAST_BUDGET))
    costs = WrittenCosts(context, budget, structured)
    total = costs.total(decided_blocks)
    if total <= budget.most:
        return decided_blocks
    context.note("cut", f"a result of about {total:,} tokens to its budget of {budget.most:,}", None)
    if context.awaits:  # room is divided only after everything else is known, handles included
        return decided_blocks
    decided_blocks = _cut(context, _embedded_as_text(context, decided_blocks), costs)
    if costs.total(decided_blocks) > budget.most and not context.awaits:
        decided_blocks = _scale(context, decided_blocks, costs)
    if costs.total(decided_blocks) > budget.most and not context.awaits:
        decided_blocks = _fold(context, decided_blocks, costs)
    return decided_blocks


# --------------------------------------------------------------------------------------------------------------- texts


def _embedded_as_text(context: DecisionContext, decided_blocks: list[BlockDecision]) -> list[BlockDecision]:
    """Return the same with embedded texts as texts, which can be cut, where they would be sent as they are."""
    return [_as_text(context, decision, place) for place, decision in enumerate(decided_blocks)]


def _as_text(context: DecisionContext, decision: BlockDecision, place: int) -> BlockDecision:
    if not isinstance(decision, AsIs) or not isinstance(decision.block, ResourceBlock) or decision.kind != "resource":
        return decision
    contents = decision.block.resource
    if text_tokens(contents.text or "") <= LEAST_BUDGET:
        return decision
    context.note("moved", "an embedded text as text", None)
    known = fact_words.plain(contents.mime_type, 80) if contents.mime_type else ""
    text = wording.embedded_text(contents.uri, known, contents.text or "")
    return AsText(text, key=f"embedded:{place}", index=place)


def _cut(context: DecisionContext, whole: list[BlockDecision], costs: WrittenCosts) -> list[BlockDecision]:
    """Cut texts to what media and the gateway's own lines leave of the budget."""
    if not costs.reads_texts:
        return whole
    most = costs.budget.most - (costs.said(whole) - _text_tokens(whole))
    kept_free = min(sum(costs.media(whole).values()), int(max(0, most) * _MOST_KEPT_FREE))
    return _cut_to(context, whole, max(LEAST_BUDGET, most - kept_free))


def _cut_to(context: DecisionContext, whole: list[BlockDecision], room: int) -> list[BlockDecision]:
    """Cut texts until they cost no more than `room`: what is left of a text may be denser than the text was.

    Each round is a cut of the whole texts, so that the line within each tells what is left out of the original.
    """
    limit, cut = sum(text_sizes(whole).values()), whole
    for _ in range(_ROUNDS):
        if (said := _text_tokens(cut)) <= room:
            return cut
        limit = int(min(limit, sum(text_sizes(cut).values())) * room / said * _MARGIN)
        cut = cut_texts(context, whole, limit, text_tokens)
    return cut if _text_tokens(cut) <= room else cut_texts(context, whole, 0, text_tokens)


def _text_tokens(decided_blocks: list[BlockDecision]) -> int:
    """Return the tokens of all texts, without the lines of the gateway."""
    return sum(text_tokens(decision.text) for decision in decided_blocks if isinstance(decision, AsText))


# -------------------------------------------------------------------------------------------------------------- images


def _scale(context: DecisionContext, decided_blocks: list[BlockDecision], costs: WrittenCosts) -> list[BlockDecision]:
    """Scale images to what the texts leave, or name them in lines; again if their captions take more than expected."""
    media, notes = costs.media(decided_blocks), list(context.notes)
    room = costs.budget.most - costs.said(decided_blocks) - _CAPTION * len(media)
    scaled = decided_blocks
    for _ in range(_DIVISIONS):
        context.notes = list(notes)
        shares = _shares(decided_blocks, media, costs.budget, max(0, room))
        scaled = [
            _smaller(context, decision, costs, media[place], shares.get(place, 0))
            if media.get(place, 0) > shares.get(place, 0)
            else decision
            for place, decision in enumerate(decided_blocks)
        ]
        over = costs.total(scaled) - costs.budget.most
        if over <= 0 or context.awaits:
            break
        room -= over
    return scaled


def _shares(
    decided_blocks: list[BlockDecision], media: Mapping[int, int], budget: TokenBudget, room: int
) -> dict[int, int]:
    """Divide `room` among the images that can be shown, by their places: in their order, as long as there is room.

    An equal share for each would be too small for any of several images whose cost does not depend on their size.
    """
    least: dict[int, int] = {}
    for place, tokens in media.items():
        cheapest = min(tokens, _least_tokens(decided_blocks[place], tokens, budget))
        if cheapest <= room:
            least[place] = cheapest
            room -= cheapest
    more = share({place: media[place] - tokens for place, tokens in least.items()}, room)
    return {place: tokens + more[place] for place, tokens in least.items()}


def _least_tokens(decision: BlockDecision, tokens: int, budget: TokenBudget) -> int:
    """Return the tokens of an image at the smallest size to which it may be scaled; other media cannot be."""
    pixels = shown_pixels(decision)
    if pixels is None or not isinstance(decision, AsImage | AsIs) or max(pixels) < _LEAST_EDGE:
        return tokens
    if decision.source is None or decision.source.page is not None or not is_image(decision.source.found):
        return tokens
    return budget.image(scaled_to(pixels, _LEAST_EDGE))


def _smaller(
    context: DecisionContext, decision: BlockDecision, costs: WrittenCosts, tokens: int, room: int
) -> BlockDecision:
    """Scale an image of so many tokens to those that it has room for, or name it if it would be of no use.

    Sound, video and documents are named.
    """
    pixels = shown_pixels(decision)
    if not isinstance(decision, AsImage | AsIs) or decision.source is None:
        return decision
    source = decision.source
    edge = 0 if pixels is None or source.page is not None else costs.budget.edge(pixels, room)
    if edge < _LEAST_EDGE or not is_image(source.found):
        return _named(context, decision, tokens, costs.budget)
    context.take_back(source.index, "resized", "converted")
    beside: Mapping[str, object] = decision.beside if isinstance(decision, AsImage) else {"type": "image"}
    uri = decision.uri if isinstance(decision, AsImage) else None
    limit = context.profile.image.max_bytes
    if isinstance(decision, AsImage) and decision.data != source.found.data:  # fitted to a share of the whole result
        limit = min(limit or len(decision.data), len(decision.data) * 3 // 4)
    fitted = fit_image_to_profile(context, source, f"tokens:{source.key}:{edge}", limit, beside, uri, max_edge=edge)
    return context.with_handle(fitted) if context.profile.handles == "always" else fitted


def _named(context: DecisionContext, decision: BlockDecision, tokens: int, budget: TokenBudget) -> BlockDecision:
    """Name media in a line, as there is no room for it."""
    if not isinstance(decision, AsImage | AsIs) or decision.source is None:
        return decision
    whose = f"its {tokens:,} tokens are" if tokens else "it is"
    why = f"{whose} more than the {budget.most:,}{'' if tokens else ' tokens'} of this result have room for"
    if decision.source.page is not None and isinstance(decision, AsImage):
        return left_out_page(context, decision, decision.source, why)
    context.take_back(decision.source.index, "resized", "converted")
    return context.line(decision.source, decision.kind if isinstance(decision, AsIs) else "image", why)


# --------------------------------------------------------------------------------------------------------------- lines


def _fold(context: DecisionContext, decided_blocks: list[BlockDecision], costs: WrittenCosts) -> list[BlockDecision]:
    """Put all texts and lines together into one text that is cut to the budget, beside the images that it leaves.

    Used where the lines alone, which say what is left out, would be too much. The handle of the text opens them all.
    """
    decided_blocks = list(decided_blocks)
    beside = costs.said([AsText("0")])  # structured content
    media, left = costs.media(decided_blocks), costs.budget.most - LEAST_BUDGET - beside
    shown: list[int] = []
    for place, decision in enumerate(decided_blocks):
        if not isinstance(decision, AsImage | AsIs) or _is_line(decision):
            continue
        cost = media.get(place, 0) + costs.said([decision]) - beside + _JOINT
        if cost <= left:
            shown.append(place)
            left -= cost
        else:
            decided_blocks[place] = _named(context, decision, media.get(place, 0), costs.budget)
    if context.awaits:
        return decided_blocks
    writer = BlockWriter(context.profile)
    for place in shown:
        writer.write(decided_blocks[place])
    lines: list[str] = []
    apart: list[BlockDecision] = []
    first: int | None = None
    for decision in decided_blocks:
        line = _words(writer, decision)
        if line is None:
            apart.append(decision)
        else:
            first = len(apart) if first is None else first
            lines.append(line)
    if not lines:
        return decided_blocks
    whole = "\n".join(lines)
    folded = [*apart[:first], AsText(whole, key=f"folded:{len(whole)}", index=0), *apart[first:]]
    room = costs.budget.most - (costs.total(folded) - text_tokens(whole))
    return _cut_to(context, folded, max(LEAST_BUDGET, room))


def _words(writer: BlockWriter, decision: BlockDecision) -> str | None:
    """Return what a text or a line says, whole; None for what is shown beside them."""
    match decision:
        case AsText():
            return decision.text if decision.whole is None else decision.whole
        case ToTextLine():
            return writer.line(decision)
        case AsIs() if _is_line(decision):
            return compact_json(decision.wire)
        case _:
            return None


def _is_line(decision: BlockDecision) -> bool:
    """Whether a block is sent as it is, and read as text."""
    return isinstance(decision, AsIs) and not decision.has_bytes and decision.kind in _LINES


_LINES = frozenset({"link", "block", "resource"})
"""The kinds of blocks without bytes that a model reads as text."""
