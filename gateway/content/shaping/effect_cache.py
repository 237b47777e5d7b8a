"""A cache for media work: the same history is sent again with every turn."""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gateway.core.model.effects import (
    AudioTarget,
    Converted,
    Crop,
    DocumentRead,
    Failed,
    Fitted,
    ImageTarget,
    MediaWork,
    Probed,
    Rendered,
)

_Outcome = TypeVar("_Outcome", Fitted, DocumentRead, Rendered, Converted, Probed)

_LEAST_CHARS = 1_000
"""The minimum that an outcome counts for, so that the number of outcomes is bounded too."""


class RememberingMedia:
    """Caches the outcomes of `media`, except failures, which are tried again.

    At most `max_chars` of base64 and text are kept; the least recently used outcome is discarded first.
    """

    def __init__(self, media: MediaWork, max_chars: int = 64 * 1024 * 1024) -> None:
        self._media = media
        self._max_chars = max_chars
        self._known: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._chars = 0

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None) -> Fitted:
        """Do `MediaWork.fit_image`, or return its cached outcome."""
        work = self._media.fit_image
        return await self._once(content, (media_type, target, crop), lambda: work(content, media_type, target, crop))

    async def read_document(self, content: bytes, max_pages: int, max_chars: int) -> DocumentRead:
        """Do `MediaWork.read_document`, or return its cached outcome."""
        work = self._media.read_document
        return await self._once(content, (max_pages, max_chars), lambda: work(content, max_pages, max_chars))

    async def render_pages(self, content: bytes, pages: tuple[int, ...], target: ImageTarget) -> Rendered:
        """Do `MediaWork.render_pages`, or return its cached outcome."""
        return await self._once(content, (pages, target), lambda: self._media.render_pages(content, pages, target))

    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted:
        """Do `MediaWork.convert_audio`, or return its cached outcome."""
        work = self._media.convert_audio
        return await self._once(content, (media_type, target), lambda: work(content, media_type, target))

    async def probe(self, content: bytes, media_type: str) -> Probed:
        """Do `MediaWork.probe`, or return its cached outcome."""
        return await self._once(content, (media_type,), lambda: self._media.probe(content, media_type))

    async def _once(self, content: bytes, wanted: tuple[Any, ...], work: Callable[[], Awaitable[_Outcome]]) -> _Outcome:
        key = (hashlib.sha256(content).digest(), *wanted)
        known: _Outcome | None = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        outcome = await work()
        if key not in self._known and not _is_partial(outcome):
            self._known[key] = outcome
            self._chars += _chars(outcome)
        while self._chars > self._max_chars:
            self._chars -= _chars(self._known.popitem(last=False)[1])
        return outcome


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
        case _:
            return _LEAST_CHARS
