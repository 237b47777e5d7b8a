"""Limit the media of a history: keep the newest results in full, within the limits of an API for one request.

A history only grows at its end. So media is left out from its beginning, in steps: the cut stays in the same place for
many turns, and so does everything before it that a provider keeps in its prompt cache.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core import fact_words, wording
from gateway.core.model.blocks import AudioBlock, Block, Found, ImageBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model_apis.requests.accepted_media import media_kind
from gateway.core.model_apis.requests.found_results import Piece
from gateway.core.profiles.model_profile import ModelProfile


class Weight(NamedTuple):
    """The media of one result: the number of images, and the number of characters of base64."""

    images: int
    chars: int


@dataclass(frozen=True)
class HistoryLimits:
    """Limits on the media of a history that stays in full; None means no limit.

    `results`: the newest results with media, at least this many and fewer than twice as many. `chars`: characters of
    their base64. `images`, `request_chars`: the API's limits for one request, minus everything else in it.
    """

    results: int | None = None
    chars: int | None = None
    images: int | None = None
    request_chars: int | None = None


_STEPS = 4
"""Number of steps that a limit on an amount is divided into for a cut."""


def first_in_full(weights: Sequence[Weight], limits: HistoryLimits) -> int:
    """Return the index of the first result whose media stays; media of earlier results becomes lines.

    The newest result is cut only if the request would be too large otherwise.
    """
    soft = [0]
    if limits.results is not None:
        soft.append((len(weights) // max(1, limits.results) - 1) * max(1, limits.results))
    soft.append(cut_to([weight.chars for weight in weights], limits.chars))
    soft.append(cut_to([weight.images for weight in weights], limits.images))
    hard = cut_to([weight.chars for weight in weights], limits.request_chars)
    return max(hard, min(max(soft), len(weights) - 1), 0)


def cut_to(amounts: Sequence[int], limit: int | None) -> int:
    """Return how many of the oldest must be removed to meet the limit, in steps of a fraction of it."""
    if limit is None:
        return 0
    over = sum(amounts) - limit
    if over <= 0:
        return 0
    step = max(1, limit // _STEPS)
    to_go, gone = -(-over // step) * step, 0
    for place, amount in enumerate(amounts):
        if gone >= to_go:
            return place
        gone += amount
    return len(amounts)


def weight_of(piece: Piece, profile: ModelProfile) -> Weight:
    """Return the weight of a piece's media once it fits the model."""
    most = profile.image.max_bytes * 4 // 3 if profile.image.max_bytes else None
    images = [found for found in piece.found if media_kind(found.media_type) == "image"]
    others = sum(len(found.data) for found in piece.found if media_kind(found.media_type) != "image")
    return Weight(len(images), others + sum(min(len(found.data), most or len(found.data)) for found in images))


def older(envelope: Envelope, handles: Mapping[str, str]) -> Envelope:
    """Replace the media of an older result by lines; `handles` are by the media's base64."""

    def line(found: Found) -> str:
        return wording.older_media(media_kind(found.media_type), _known_of(found), handles.get(found.data))

    changed = _with_lines(envelope, line)
    return changed if changed is envelope else changed.with_note(Note(kind="named", text="media of an older result"))


def once(pieces: Sequence[Piece]) -> list[Envelope]:
    """Return the envelopes of pieces in order, each piece of media only at its first occurrence."""
    first: dict[str, Piece] = {}
    envelopes: list[Envelope] = []
    for piece in pieces:
        own = {found.data for found in piece.found}
        repeated = {data: first[data] for data in own if data in first}
        envelopes.append(_without(piece.call.envelope, repeated))
        first |= {data: piece for data in own if data not in first}
    return envelopes


def _without(envelope: Envelope, repeated: Mapping[str, Piece]) -> Envelope:
    def line(found: Found) -> str | None:
        if found.data not in repeated:
            return None
        call = repeated[found.data].call
        return wording.same_media(media_kind(found.media_type), _known_of(found), call.name, call.id)

    changed = _with_lines(envelope, line)
    return changed if changed is envelope else changed.with_note(Note(kind="repeated", text="media shown before"))


def _with_lines(envelope: Envelope, line_of: Callable[[Found], str | None]) -> Envelope:
    """Replace each piece of media for which `line_of` returns a line."""
    blocks = tuple(_with_line(block, line_of) for block in envelope.blocks)
    if all(new is old for new, old in zip(blocks, envelope.blocks, strict=True)):
        return envelope
    return envelope.model_copy(update={"blocks": blocks})


def _with_line(block: Block, line_of: Callable[[Found], str | None]) -> Block:
    if not isinstance(block, ImageBlock | AudioBlock | ResourceBlock) or block.found is None:
        return block
    line = line_of(block.found)
    return block if line is None else TextBlock.model_validate({"type": "text", "text": line})


def _known_of(found: Found) -> str:
    """Return type, pixels and size, in words."""
    pixels = fact_words.pixel_words(found.pixels) if found.pixels else None
    return fact_words.join_facts(found.media_type or "unknown type", pixels, fact_words.size_words(found.byte_size))
