"""How much is done at once follows from memory and cores, unless the configuration says otherwise."""

import pytest

from gateway.admission.capacity import Capacity, capacity
from gateway.config.overload_settings import OverloadSettings

GIB = 1024**3


@pytest.mark.parametrize(
    ("memory", "cores", "calls"),
    [(GIB // 16, 1, 64), (GIB // 4, 2, 128), (GIB, 1, 512), (GIB, 2, 512), (64 * GIB, 2, 1_024)],
)
def test_places_follow_from_memory_and_cores(memory: int, cores: int, calls: int) -> None:
    found = capacity(OverloadSettings(), 2, memory=memory, cores=cores)
    assert found == Capacity(calls, calls // 2, min(64, calls // 2))


def test_what_is_configured_counts_and_media_leave_half_of_the_places_to_others() -> None:
    settings = OverloadSettings.model_validate({"calls_at_once": 10, "queue": 0, "media_queue": 99, "memory": "1GiB"})
    assert capacity(settings, 2) == Capacity(10, 0, 5)
    assert capacity(OverloadSettings(calls_at_once=1), 1) == Capacity(1, 1, 1)


def test_the_machine_is_looked_at() -> None:
    assert capacity(OverloadSettings(), 2).calls >= 64
