"""The budget of a whole result: texts cut to their limit, images fitted to what is left.

Media never makes way for text.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from gateway.core import wording
from gateway.core.results.decisions.block_decisions import AsImage, AsIs, AsText, BlockDecision, ToTextLine
from gateway.core.results.decisions.decision_context import DecisionContext, is_image
from gateway.core.results.decisions.documents import left_out_page, smaller_page
from gateway.core.results.decisions.images import fit_image_to_profile

_OVERHEAD = 200
"""Characters for the JSON around one block, its caption or marker included."""
_MARGIN = 0.98
_CUT_LINE = 160
"""Characters for the line that says what was left out."""
_LEAST_TEXT = 400
"""Characters of text that are kept however little room there is."""
_SMALLEST_IMAGE = 12_000
"""Base64 characters below which an image is named rather than shown: nothing could be read in it."""
_FAIR_IMAGE = 120_000
"""Base64 characters that are kept free for an image, however much text there is: a screenshot stays legible in them."""
_MOST_KEPT_FREE = 0.75
"""Of the whole room."""
_STEP = 4_096
"""Bytes to which an image's share is rounded down, so that a word more of text gives no other bytes of the image."""
_BREAK_WITHIN = 2_000
"""How far, in characters, a cut may move to end at a line's end."""


def within_budget(desk: DecisionContext, fates: list[BlockDecision]) -> list[BlockDecision]:
    """The same fates within the profile's limits on text and on the whole result."""
    limit = desk.profile.limits.result_chars
    fates = _cut_texts(desk, fates, _text_limit(desk))
    if limit is None:
        return _noted(desk, fates)
    room = _room(fates, limit) - _kept_free(fates, limit)
    if room < 0:
        # On the wire the text is longer than its own limit: escapes and captions count too.
        texts = sum(len(fate.text) for fate in fates if isinstance(fate, AsText))
        fates = _cut_texts(desk, fates, max(_LEAST_TEXT, texts + room - texts // 20))
    return _noted(desk, _fit_media(desk, fates, max(0, _room(fates, limit))))


def fits(desk: DecisionContext, fates: list[BlockDecision], text: str) -> bool:
    """Whether a text after these fates would be sent whole."""
    with_text = [*fates, AsText(text, key="")]
    sizes, most = _text_sizes(with_text), _text_limit(desk)
    if most is not None and share(sizes, most)[len(fates)] < len(text):
        return False
    limit = desk.profile.limits.result_chars
    return limit is None or _room(with_text, limit) >= _kept_free(fates, limit)


def _noted(desk: DecisionContext, fates: list[BlockDecision]) -> list[BlockDecision]:
    """The same fates, with a note of each text that was cut."""
    for fate in fates:
        if isinstance(fate, AsText) and fate.whole is not None:
            desk.note("cut", f"{fate.left_out:,} of {len(fate.whole):,} characters of text", fate.index)
    return fates


def _text_limit(desk: DecisionContext) -> int | None:
    rules = desk.profile
    limits = [rules.text.max_chars, rules.error.max_chars if desk.envelope.is_error else None]
    return min((limit for limit in limits if limit is not None), default=None)


def _kept_free(fates: list[BlockDecision], limit: int) -> int:
    """Characters that no text may take, because there is media that needs them."""
    most = int(limit * _MOST_KEPT_FREE)
    images = sum(min(len(fate.data), _FAIR_IMAGE) for fate in fates if isinstance(fate, AsImage))
    others = [_media_chars(fate) for fate in fates if isinstance(fate, AsIs)]
    return min(images + sum(chars for chars in others if chars <= most), most)


def share(sizes: Mapping[int, int], room: int) -> dict[int, int]:
    """`room` shared fairly: what is small stays whole, and the large ones share equally what that leaves."""
    shares: dict[int, int] = {}
    left = max(0, room)
    by_size = sorted(sizes, key=lambda index: (sizes[index], index))
    for place, index in enumerate(by_size):
        shares[index] = min(sizes[index], left // (len(by_size) - place))
        left -= shares[index]
    return shares


def _room(fates: list[BlockDecision], limit: int) -> int:
    return int(limit * _MARGIN) - sum(_OVERHEAD + _text_chars(fate) for fate in fates)


def _fit_media(desk: DecisionContext, fates: list[BlockDecision], room: int) -> list[BlockDecision]:
    sizes = {place: chars for place, fate in enumerate(fates) if (chars := _media_chars(fate))}
    if desk.awaits_content or sum(sizes.values()) <= room:
        return fates  # sizes are shared out only once everything has been made to fit by itself
    shares = share(sizes, room)
    return [
        _smaller(desk, fate, shares[place]) if sizes.get(place, 0) > shares.get(place, 0) else fate
        for place, fate in enumerate(fates)
    ]


def _smaller(desk: DecisionContext, fate: BlockDecision, chars: int) -> BlockDecision:
    """Media in at most `chars` of base64: an image is fitted again, everything else becomes a line."""
    if not isinstance(fate, AsImage | AsIs) or fate.source is None:
        return fate
    source = fate.source
    max_bytes = chars * 3 // 4 // _STEP * _STEP
    if isinstance(fate, AsIs) or chars < _SMALLEST_IMAGE:
        if source.page is not None and isinstance(fate, AsImage):
            return left_out_page(desk, fate, source, _TOO_LARGE)
        return desk.line(source, fate.kind if isinstance(fate, AsIs) else "image", _TOO_LARGE)
    if source.page is not None:
        return smaller_page(desk, fate, source, max_bytes)
    if not is_image(source.found):
        return desk.line(source, "image", _TOO_LARGE)
    desk.take_back(source.index, "resized", "converted")
    return fit_image_to_profile(desk, source, f"refit:{source.key}", max_bytes, fate.beside, fate.uri)


_TOO_LARGE = "too large for one result"


def _cut_texts(desk: DecisionContext, fates: list[BlockDecision], limit: int | None) -> list[BlockDecision]:
    sizes = _text_sizes(fates)
    if limit is None or sum(sizes.values()) <= limit:
        return fates
    shares = share(sizes, limit)
    return [
        _cut(desk, fate, shares[place]) if isinstance(fate, AsText) and sizes[place] > shares[place] else fate
        for place, fate in enumerate(fates)
    ]


def _text_sizes(fates: list[BlockDecision]) -> dict[int, int]:
    """The characters of each text, by its place."""
    return {place: len(fate.text) for place, fate in enumerate(fates) if isinstance(fate, AsText)}


def _cut(desk: DecisionContext, fate: AsText, room: int) -> AsText:
    """Head and tail of a text, with a line between that says how to read the rest."""
    whole = fate.whole if fate.whole is not None else fate.text
    media_type = "application/json" if fate.index is None else "text/plain"
    handle = desk.keep(f"text:{fate.key}", whole, media_type, is_text=True)
    url = desk.url(f"text:{fate.key}")
    kept = max(0, room - _CUT_LINE - len(url or ""))
    head_end = _line_end(whole, kept * 3 // 4)
    tail_start = _line_start(whole, len(whole) - (kept - kept * 3 // 4))
    left_out = tail_start - head_end
    line = wording.cut_mark(left_out, len(whole), head_end, handle, desk.profile.tools.helpers, url)
    return replace(fate, text=whole[:head_end] + line + whole[tail_start:], whole=whole, left_out=left_out)


def _line_end(text: str, at: int) -> int:
    found = text.rfind("\n", max(0, at - min(_BREAK_WITHIN, at // 4)), at)
    return found if found > 0 else at


def _line_start(text: str, at: int) -> int:
    found = text.find("\n", at, at + min(_BREAK_WITHIN, (len(text) - at) // 4))
    return found + 1 if found >= 0 else at


def _text_chars(fate: BlockDecision) -> int:
    match fate:
        case AsText():
            return _escaped(fate.text) + _escaped(fate.beside)
        case ToTextLine():
            return sum(_escaped(part) for part in (fate.text, fate.known, fate.said, fate.path, fate.url))
        case AsIs() if not fate.has_bytes:
            return _escaped(fate.wire)
        case AsImage():
            return sum(_escaped(part) for part in (fate.beside, fate.uri, fate.about, fate.url))
        case _:
            return 0


def _media_chars(fate: BlockDecision) -> int:
    match fate:
        case AsImage():
            return len(fate.data)
        case AsIs() if fate.has_bytes:
            return _escaped(fate.wire)
        case _:
            return 0


def _escaped(value: object) -> int:
    """Characters of a JSON value on the wire."""
    return len(json.dumps(value, ensure_ascii=False)) if value else 0
