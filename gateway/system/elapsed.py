"""A clock for how long something is ago, also if the machine was suspended meanwhile."""

import sys
import time
from collections.abc import Callable


def _clock() -> Callable[[], float]:
    # On Linux and macOS, time.monotonic() stands still while the machine is suspended.
    if sys.platform == "linux":
        return lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return lambda: time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic


elapsed: Callable[[], float] = _clock()
"""Return seconds since some moment in the past."""
