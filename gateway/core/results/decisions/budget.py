"""The budget of a whole result: texts are cut to their limit, images fitted to the remaining space.

Media is never removed to make space for text.
"""

from gateway.core.model.json_size import wire_chars
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
from gateway.core.results.decisions.documents import left_out_page, smaller_page
from gateway.core.results.decisions.images import fit_image_to_profile

_OVERHEAD = 200
"""Characters for the JSON around one block, including its caption or marker."""
_MARGIN = 0.98
_AVERAGE = 0.9
"""The share of their characters to which texts are cut first: what is left may have more to escape than the rest."""
_LEAST_TEXT = 400
"""Characters of text that are always kept."""
_SMALLEST_IMAGE = 12_000
"""Base64 characters below which an image is named rather than shown: it would be unreadable."""
_FAIR_IMAGE = 120_000
"""Base64 characters that are always reserved for an image: enough for a legible screenshot."""
_MOST_KEPT_FREE = 0.75
"""Maximum share of the whole budget that is reserved for media."""
_STEP = 4_096
"""Bytes to which an image's share is rounded down, so that one more word of text does not change the image's bytes."""


def within_budget(
    context: DecisionContext, decided_blocks: list[BlockDecision], structured: SentStructured | None = None
) -> list[BlockDecision]:
    """Return the same decisions within the profile's limits on text and on the whole result.

    `structured` is sent beside them, and counts, but never takes the room of media.
    """
    limit = context.profile.limits.result_chars
    decided_blocks = cut_texts(context, decided_blocks, _text_limit(context))
    if limit is None:
        return decided_blocks
    kept_free = _kept_free(decided_blocks, limit)
    beside = 0 if structured is None else wire_chars(structured.value)
    limit -= max(0, min(beside, limit - int(kept_free / _MARGIN)))
    room = _room(decided_blocks, limit)
    if room < kept_free:
        # Encoded as JSON, the text is longer than its own limit: escapes and captions count too.
        whole, texts = decided_blocks, sum(text_sizes(decided_blocks).values())
        sent = sum(_text_chars(decision) for decision in whole if isinstance(decision, AsText))
        share_sent = max(0.0, (sent + room - kept_free) / max(1, sent))
        decided_blocks = cut_texts(context, whole, max(_LEAST_TEXT, int(texts * share_sent * _AVERAGE)))
        room = _room(decided_blocks, limit)
        if room < kept_free:  # what is left has more to escape than the average
            least = texts + _room(whole, limit) - kept_free - texts // 20
            decided_blocks = cut_texts(context, whole, max(_LEAST_TEXT, least))
            room = _room(decided_blocks, limit)
    return _fit_media(context, decided_blocks, max(0, room))


def room_beside(context: DecisionContext, decided_blocks: list[BlockDecision], chars: int) -> int | None:
    """Return how much of the whole result there is for something of so many characters beside these decisions.

    Media keep their room, and what is large shares the rest equally with the texts. None: there is no limit.
    """
    limit = context.profile.limits.result_chars
    if limit is None:
        return None
    cut = cut_texts(context, decided_blocks, _text_limit(context))
    texts = sum(map(_text_chars, cut))
    room = _room(cut, limit) + texts - _kept_free(cut, limit) - _OVERHEAD
    return share({0: texts, 1: chars}, room)[1]


def _text_limit(context: DecisionContext) -> int | None:
    rules = context.profile
    limits = [rules.text.max_chars, rules.error.max_chars if context.envelope.is_error else None]
    return min((limit for limit in limits if limit is not None), default=None)


def _kept_free(decided_blocks: list[BlockDecision], limit: int) -> int:
    """Return the number of characters that are reserved for media."""
    most = int(limit * _MOST_KEPT_FREE)
    images = sum(min(len(decision.data), _FAIR_IMAGE) for decision in decided_blocks if isinstance(decision, AsImage))
    others = [_media_chars(decision) for decision in decided_blocks if isinstance(decision, AsIs)]
    return min(images + sum(chars for chars in others if chars <= most), most)


def _room(decided_blocks: list[BlockDecision], limit: int) -> int:
    return int(limit * _MARGIN) - sum(_OVERHEAD + _text_chars(decision) for decision in decided_blocks)


def _fit_media(context: DecisionContext, decided_blocks: list[BlockDecision], room: int) -> list[BlockDecision]:
    sizes = {place: chars for place, decision in enumerate(decided_blocks) if (chars := _media_chars(decision))}
    if context.awaits_content or sum(sizes.values()) <= room:
        return decided_blocks  # space is divided only after everything has been fitted by itself
    shares = share(sizes, room)
    return [
        _smaller(context, decision, shares[place]) if sizes.get(place, 0) > shares.get(place, 0) else decision
        for place, decision in enumerate(decided_blocks)
    ]


def _smaller(context: DecisionContext, decision: BlockDecision, chars: int) -> BlockDecision:
    """Reduce media to at most `chars` of base64: an image is fitted again, anything else becomes a line."""
    if not isinstance(decision, AsImage | AsIs) or decision.source is None:
        return decision
    source = decision.source
    max_bytes = chars * 3 // 4 // _STEP * _STEP
    if isinstance(decision, AsIs) or chars < _SMALLEST_IMAGE:
        if source.page is not None and isinstance(decision, AsImage):
            return left_out_page(context, decision, source, _TOO_LARGE)
        return context.line(source, decision.kind if isinstance(decision, AsIs) else "image", _TOO_LARGE)
    if source.page is not None:
        return smaller_page(context, decision, source, max_bytes)
    if not is_image(source.found):
        return context.line(source, "image", _TOO_LARGE)
    context.take_back(source.index, "resized", "converted")
    return fit_image_to_profile(context, source, f"refit:{source.key}", max_bytes, decision.beside, decision.uri)


_TOO_LARGE = "too large for one result"


def _text_chars(decision: BlockDecision) -> int:
    match decision:
        case AsText():
            return _sent(decision.text) + _sent(decision.beside)
        case ToTextLine():
            return sum(
                _sent(part) for part in (decision.text, decision.known, decision.said, decision.path, decision.url)
            )
        case AsIs() if not decision.has_bytes:
            return _sent(decision.wire)
        case AsImage():
            return sum(_sent(part) for part in (decision.beside, decision.uri, decision.about, decision.url))
        case _:
            return 0


def _media_chars(decision: BlockDecision) -> int:
    match decision:
        case AsImage():
            return len(decision.data)
        case AsIs() if decision.has_bytes:
            return _sent(decision.wire)
        case _:
            return 0


def _sent(value: object) -> int:
    """Return the number of characters in which a part of a result is sent; 0 if there is nothing to send."""
    return wire_chars(value) if value else 0
