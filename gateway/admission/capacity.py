"""How much at once: what is configured, or what the memory and the cores of this machine suggest."""

import os
from typing import NamedTuple

from gateway.config.overload_settings import OverloadSettings
from gateway.system.memory_limit import ControlGroup, machine_memory

_MEMORY_OF_A_CALL = 2 * 1024 * 1024
"""Bytes to count on for a request in progress: most need a few thousand, one with media some tens of millions."""
_CALLS_OF_A_CORE = 512
_FEWEST_CALLS = 64
_JOBS_OF_A_WORKER = 32
_FEWEST_JOBS = 64


class Capacity(NamedTuple):
    """Requests that are worked on at once, requests that may wait, and media jobs that may wait for a worker."""

    calls: int
    queue: int
    media_queue: int

    @property
    def spare(self) -> int:
        """Additional requests, of callers of whom none is worked on."""
        return max(1, self.calls // 8)


def capacity(
    settings: OverloadSettings, media_workers: int, *, memory: int | None = None, cores: int | None = None
) -> Capacity:
    """Return how much is done at once with these settings. `memory` and `cores` are the machine's if not given."""
    calls = settings.calls_at_once
    if calls is None:
        room = (memory or _memory(settings)) // _MEMORY_OF_A_CALL
        calls = max(_FEWEST_CALLS, min(room, _CALLS_OF_A_CORE * (cores or _cores())))
    jobs = settings.media_queue or max(_FEWEST_JOBS, _JOBS_OF_A_WORKER * media_workers)
    # Half as many wait as run: whoever gets a turn has waited for about half as long as a request takes.
    half = max(1, calls // 2)
    return Capacity(calls, half if settings.queue is None else settings.queue, min(jobs, half))


def _memory(settings: OverloadSettings) -> int:
    group = ControlGroup.found()
    limits = [limit for limit in (settings.memory, None if group is None else group.limit) if limit is not None]
    return min(limits) if limits else machine_memory()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
