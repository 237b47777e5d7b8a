"""Media work, and stored content, in numbers."""

from typing import Any

import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore
from gateway.core.model.effects import FitImage, Fitted, ImageTarget
from gateway.core.model.media_types import PixelSize
from gateway.errors import MediaError
from gateway.telemetry.media import CountedMedia
from gateway.telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio
DONE = Fitted("AAAA", "image/png", PixelSize(1, 1), PixelSize(2, 2))


class Worker:
    """Fits what is not broken."""

    async def run(self, effect: Any) -> Any:
        if effect.data == b"broken":
            raise MediaError("it is broken")
        return DONE


async def test_jobs_and_failures_are_counted_and_change_nothing():
    metrics = Metrics()
    media = CountedMedia(Worker(), metrics)
    assert await media.run(FitImage("1", b"x", "image/png", ImageTarget())) is DONE
    with pytest.raises(MediaError, match="it is broken"):
        await media.run(FitImage("2", b"broken", "image/png", ImageTarget()))
    assert (metrics.media_jobs.value(), metrics.media_failures.value()) == (2, 1)
    assert "mcp_gateway_media_job_duration_seconds_count 2\n" in metrics.exposition()


async def test_the_store_is_read_when_the_metrics_are():
    metrics, store = Metrics(), MemoryStore(StoreSettings())
    metrics.store = lambda: store.usage
    await store.put(b"12345", owner="a", media_type="text/plain")
    await store.put(b"123", owner="b", media_type="text/plain")
    text = metrics.exposition()
    assert "mcp_gateway_store_bytes 8\n" in text
    assert "mcp_gateway_store_items 2\n" in text
