"""Media work, counted and timed on its way to the workers."""

from time import perf_counter
from typing import Protocol

from gateway.core.model.effects import Crop, Fitted, ImageTarget
from gateway.errors import MediaError
from gateway.telemetry.metrics import Metrics


class Fitter(Protocol):
    """What does the work (`gateway.media.MediaWorkers`)."""

    async def fit_image(
        self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None
    ) -> Fitted: ...


class CountedMedia:
    """Does what `fitter` does, and counts it."""

    def __init__(self, fitter: Fitter, metrics: Metrics) -> None:
        self._fitter = fitter
        self._metrics = metrics

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None) -> Fitted:
        """As `Fitter.fit_image`; a job that is cancelled counts, and is no failure."""
        self._metrics.media_jobs.add(1)
        began = perf_counter()
        try:
            return await self._fitter.fit_image(content, media_type, target, crop)
        except MediaError:
            self._metrics.media_failures.add(1)
            raise
        finally:
            self._metrics.media_seconds.observe(perf_counter() - began)
