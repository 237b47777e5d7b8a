"""How much of a history's media goes on: the newest results in full, and nothing over what an API takes at once.

A history only grows at its end. So what is left out is counted from its beginning, in steps: the place of the cut stays
where it is for many turns, and so does everything before it that a provider keeps in its prompt cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Weight(NamedTuple):
    """The media of one result: how many images, and how many characters of base64."""

    images: int
    chars: int


@dataclass(frozen=True)
class HistoryLimits:
    """What of a history stays in full; None is no limit.

    `results`: the newest results with media, at least so many and fewer than twice as many. `chars`: characters of
    their base64. `images`, `request_chars`: what the API takes in one request, beside everything else in it.
    """

    results: int | None = None
    chars: int | None = None
    images: int | None = None
    request_chars: int | None = None


_STEPS = 4
"""A cut that a limit on an amount asks for leaves out another part of so many."""


def first_in_full(weights: Sequence[Weight], limits: HistoryLimits) -> int:
    """The place of the first result whose media goes on; those before it become lines.

    The newest result is cut only where the request would be too large otherwise.
    """
    soft = [0]
    if limits.results is not None:
        soft.append((len(weights) // max(1, limits.results) - 1) * max(1, limits.results))
    soft.append(cut_to([weight.chars for weight in weights], limits.chars))
    soft.append(cut_to([weight.images for weight in weights], limits.images))
    hard = cut_to([weight.chars for weight in weights], limits.request_chars)
    return max(hard, min(max(soft), len(weights) - 1), 0)


def cut_to(amounts: Sequence[int], limit: int | None) -> int:
    """How many of the oldest have to go for the limit, in steps of a part of it."""
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
