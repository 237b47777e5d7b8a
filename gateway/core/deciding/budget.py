"""The budget of a whole result: texts cut to their limit, images fitted to what is left.

Media never makes way for text.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from gateway.core import wording
from gateway.core.deciding.desk import Desk, is_image
from gateway.core.deciding.fates import AsImage, AsIs, AsLine, AsText, Fate
from gateway.core.model.blocks import AudioBlock, ImageBlock, ResourceBlock

_OVERHEAD = 200
"""Characters for the JSON around one block, its caption or marker included."""
_MARGIN = 0.98
_CUT_LINE = 160
"""Characters for the line that says what was left out."""
_LEAST_TEXT = 400
"""Characters of text that are kept however little room there is."""
_SMALLEST_IMAGE = 12_000
"""Base64 characters below which an image is named rather than shown: nothing could be read in it."""
_STEP = 4_096
"""Bytes to which an image's share is rounded down, so that a word more of text gives no other bytes of the image."""
_BREAK_WITHIN = 2_000
"""How far, in characters, a cut may move to end at a line's end."""


def within_budget(desk: Desk, fates: list[Fate]) -> list[Fate]:
    """The same fates within the profile's limits on text and on the whole result."""
    limit = desk.profile.limits.result_chars
    fates = _cut_texts(desk, fates, desk.profile.text.max_chars)
    if limit is None:
        return fates
    room = _room(fates, limit)
    if room < 0:
        # On the wire the text is longer than its own limit: escapes and captions count too.
        texts = sum(len(fate.text) for fate in fates if isinstance(fate, AsText))
        fates = _cut_texts(desk, fates, max(_LEAST_TEXT, texts + room - texts // 20))
        room = _room(fates, limit)
    return _fit_media(desk, fates, max(0, room))


def share(sizes: Mapping[int, int], room: int) -> dict[int, int]:
    """`room` shared fairly: what is small stays whole, and the large ones share equally what that leaves."""
    shares: dict[int, int] = {}
    left = max(0, room)
    by_size = sorted(sizes, key=lambda index: (sizes[index], index))
    for place, index in enumerate(by_size):
        shares[index] = min(sizes[index], left // (len(by_size) - place))
        left -= shares[index]
    return shares


def _room(fates: list[Fate], limit: int) -> int:
    return int(limit * _MARGIN) - sum(_OVERHEAD + _text_chars(fate) for fate in fates)


def _fit_media(desk: Desk, fates: list[Fate], room: int) -> list[Fate]:
    sizes = {index: chars for index, fate in enumerate(fates) if (chars := _media_chars(fate))}
    if desk.awaits_images or sum(sizes.values()) <= room:
        return fates  # sizes are shared out only once every image has been made to fit by itself
    shares = share(sizes, room)
    return [
        _smaller(desk, index, fate, shares[index]) if sizes.get(index, 0) > shares.get(index, 0) else fate
        for index, fate in enumerate(fates)
    ]


def _smaller(desk: Desk, index: int, fate: Fate, chars: int) -> Fate:
    """Media in at most `chars` of base64: an image is fitted again, everything else becomes a line."""
    block = desk.envelope.blocks[index]
    found = block.found if isinstance(block, ImageBlock | AudioBlock | ResourceBlock) else None
    if found is None:
        return fate
    if not isinstance(fate, AsImage) or not is_image(found) or chars < _SMALLEST_IMAGE:
        kind = fate.kind if isinstance(fate, AsIs) else "image"
        return desk.line(index, found, kind, "too large for one result")
    desk.take_back(index, "resized", "converted")
    max_bytes = chars * 3 // 4 // _STEP * _STEP
    return desk.fitted(index, found, f"refit:{index}", max_bytes, fate.beside, fate.uri)


def _cut_texts(desk: Desk, fates: list[Fate], limit: int | None) -> list[Fate]:
    sizes = {index: len(fate.text) for index, fate in enumerate(fates) if isinstance(fate, AsText)}
    if limit is None or sum(sizes.values()) <= limit:
        return fates
    shares = share(sizes, limit)
    return [
        _cut(desk, index, fate, shares[index]) if isinstance(fate, AsText) and sizes[index] > shares[index] else fate
        for index, fate in enumerate(fates)
    ]


def _cut(desk: Desk, index: int, fate: AsText, room: int) -> AsText:
    """Head and tail of a text, with a line between that says how to read the rest."""
    whole = fate.whole if fate.whole is not None else fate.text
    is_block = index < len(desk.envelope.blocks)
    handle = desk.keep(f"text:{index}", whole, "text/plain" if is_block else "application/json", is_text=True)
    kept = max(0, room - _CUT_LINE)
    head_end = _line_end(whole, kept * 3 // 4)
    tail_start = _line_start(whole, len(whole) - (kept - kept * 3 // 4))
    left_out = tail_start - head_end
    desk.take_back(index, "cut")
    desk.note("cut", f"{left_out:,} of {len(whole):,} characters of text", index if is_block else None)
    line = wording.cut(left_out, len(whole), head_end, handle, desk.profile.tools.helpers)
    return replace(fate, text=whole[:head_end] + line + whole[tail_start:], whole=whole)


def _line_end(text: str, at: int) -> int:
    found = text.rfind("\n", max(0, at - min(_BREAK_WITHIN, at // 4)), at)
    return found if found > 0 else at


def _line_start(text: str, at: int) -> int:
    found = text.find("\n", at, at + min(_BREAK_WITHIN, (len(text) - at) // 4))
    return found + 1 if found >= 0 else at


def _text_chars(fate: Fate) -> int:
    match fate:
        case AsText():
            return _escaped(fate.text) + _escaped(fate.beside)
        case AsLine():
            return _escaped(fate.text) + _escaped(fate.known)
        case AsIs() if not fate.has_bytes:
            return _escaped(fate.wire)
        case AsImage():
            return _escaped(fate.beside) + _escaped(fate.uri or "")
        case _:
            return 0


def _media_chars(fate: Fate) -> int:
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
