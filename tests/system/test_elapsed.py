"""The clock that goes on while the machine is suspended."""

import sys
import time

import pytest

from gateway.system.elapsed import elapsed


def test_it_does_not_go_back() -> None:
    assert elapsed() <= elapsed()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, another clock does that")
def test_it_counts_the_time_in_which_the_machine_was_suspended() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= elapsed() <= time.clock_gettime(time.CLOCK_BOOTTIME)
