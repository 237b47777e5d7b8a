"""How much memory shaping a large result takes: counted by the interpreter, in parts of the result itself."""

import json
import tracemalloc

import pytest

from benchmarks.calls.wire import Era, result_bytes
from gateway.config.builtin_profiles import load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore
from gateway.core.profiles.host_profiles import resolve_profiles

pytestmark = pytest.mark.anyio
PROFILES = resolve_profiles(load_builtin())


async def shaped(profile: str) -> tuple[float, float]:
    """What is left afterwards of shaping an image of 1 MB, and the peak, in parts of its base64."""
    result = json.loads(result_bytes("image_1m", Era.STATELESS))
    size = len(result["content"][0]["data"])
    async with MediaWorkers(MediaSettings()) as media:
        shaper = Shaper(MemoryStore(StoreSettings()), media)
        await shaper.shape({"content": []}, PROFILES[profile], owner="local")  # loads what is loaded once
        tracemalloc.start()
        try:
            done = await shaper.shape(result, PROFILES[profile], owner="local")
            left, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert done.result["content"][-1]["type"] == "image"
    return left / size, peak / size


@pytest.mark.parametrize("profile", ["passthrough", "claude-code"])
async def test_an_image_that_fits_is_looked_at_without_a_copy_of_it(profile: str) -> None:
    left, peak = await shaped(profile)
    assert peak < 0.5
    assert left < 0.1


async def test_an_image_that_is_scaled_and_kept_takes_at_most_three_copies() -> None:
    left, peak = await shaped("default")
    assert peak < 3
    assert left < 1.5
