"""Count and time work on media, with a wrapper around the workers."""

from time import perf_counter

from gateway.core.model.effects import MediaEffect, MediaOutcomeT, MediaWork
from gateway.errors import MediaError
from gateway.telemetry.metrics import Metrics


class CountedMedia:
    """Delegates to `media` and counts the jobs. A cancelled job counts, but not as a failure."""

    def __init__(self, media: MediaWork, metrics: Metrics) -> None:
        self._media = media
        self._metrics = metrics

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        """Do the same as `MediaWork.run`. One effect is one job, even if it draws several pages."""
        self._metrics.media_jobs.add(1)
        began = perf_counter()
        try:
            return await self._media.run(effect)
        except MediaError:
            self._metrics.media_failures.add(1)
            raise
        finally:
            self._metrics.media_seconds.observe(perf_counter() - began)
