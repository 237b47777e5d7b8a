"""A cache for media work, because the same history is sent again with every turn."""

import hashlib
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from gateway.core.model.effects import (
    Converted,
    DocumentRead,
    Failed,
    Fitted,
    JsonOutlined,
    MediaEffect,
    MediaOutcomeT,
    MediaWork,
    Rendered,
)

_LEAST_CHARS = 1_000
"""The minimum that an outcome counts for, so that the number of outcomes is bounded too."""


class RememberingMedia:
    """Caches the outcomes of `media`, except failures, which are tried again.

    At most `max_chars` of base64 and text are kept; the least recently used outcome is discarded first.
    """

    def __init__(self, media: MediaWork, max_chars: int = 64 * 1024 * 1024) -> None:
        self._media = media
        self._max_chars = max_chars
        self._known: OrderedDict[MediaEffect[Any], Any] = OrderedDict()
        self._chars = 0

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        """As `MediaWork.run`."""
        same = _same(effect)
        known: MediaOutcomeT | None = self._known.get(same)
        if known is not None:
            self._known.move_to_end(same)
            return known
        outcome = await self._media.run(effect)
        if same not in self._known and not _is_partial(outcome):
            self._known[same] = outcome
            self._chars += _chars(outcome)
        while self._chars > self._max_chars:
            self._chars -= _chars(self._known.popitem(last=False)[1])
        return outcome


def _same(effect: MediaEffect[MediaOutcomeT]) -> MediaEffect[MediaOutcomeT]:
    """Return a cache key: the effect without its own key, and with a digest in place of its content."""
    data = effect.data
    # The digest has the type of the content: bytes that look like base64 differ from the bytes that it encodes.
    if isinstance(data, bytes):
        return replace(effect, key="", data=hashlib.sha256(data).digest())
    return replace(effect, key="", data=hashlib.sha256(data.encode()).hexdigest())


def _is_partial(outcome: Any) -> bool:
    return isinstance(outcome, Rendered) and any(isinstance(image, Failed) for image in outcome.images)


def _chars(outcome: Any) -> int:
    match outcome:
        case Fitted() | Converted():
            return _LEAST_CHARS + len(outcome.data)
        case Rendered():
            return _LEAST_CHARS + sum(len(image.data) for image in outcome.images if isinstance(image, Fitted))
        case DocumentRead():
            return _LEAST_CHARS + sum(map(len, outcome.texts))
        case JsonOutlined():
            return _LEAST_CHARS + sum(map(len, outcome.shapes))
        case _:
            return _LEAST_CHARS
