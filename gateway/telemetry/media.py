"""Counting and timing the work on media, as a wrapper around the workers."""

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

from gateway.core.model.effects import (
    AudioTarget,
    Converted,
    Crop,
    DocumentRead,
    Fitted,
    ImageTarget,
    MediaWork,
    Probed,
    Rendered,
)
from gateway.errors import MediaError
from gateway.telemetry.metrics import Metrics


class CountedMedia:
    """Delegates to `media` and counts the jobs. A cancelled job counts, but not as a failure."""

    def __init__(self, media: MediaWork, metrics: Metrics) -> None:
        self._media = media
        self._metrics = metrics

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None) -> Fitted:
        """See `MediaWorkers.fit_image`."""
        with self._counted():
            return await self._media.fit_image(content, media_type, target, crop)

    async def read_document(self, content: bytes, max_pages: int, max_chars: int) -> DocumentRead:
        """See `MediaWorkers.read_document`."""
        with self._counted():
            return await self._media.read_document(content, max_pages, max_chars)

    async def render_pages(self, content: bytes, pages: tuple[int, ...], target: ImageTarget) -> Rendered:
        """See `MediaWorkers.render_pages`; it is one job, regardless of the number of pages."""
        with self._counted():
            return await self._media.render_pages(content, pages, target)

    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted:
        """See `MediaWorkers.convert_audio`."""
        with self._counted():
            return await self._media.convert_audio(content, media_type, target)

    async def probe(self, content: bytes, media_type: str) -> Probed:
        """See `MediaWorkers.probe`."""
        with self._counted():
            return await self._media.probe(content, media_type)

    @contextmanager
    def _counted(self) -> Generator[None]:
        self._metrics.media_jobs.add(1)
        began = perf_counter()
        try:
            yield
        except MediaError:
            self._metrics.media_failures.add(1)
            raise
        finally:
            self._metrics.media_seconds.observe(perf_counter() - began)
