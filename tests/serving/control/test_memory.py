import os
import subprocess
import sys
from typing import Any

import pytest

from gateway.system import memory
from gateway.system.memory import memory_of_groups, own_memory

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")

HOLDING = "x = bytearray(40_000_000); import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
CHILD = "y = bytearray(60_000_000); print('ready', flush=True); input()"


@pytest.mark.parametrize("proc", [True, False])
def test_a_process_group_counts_with_all_that_it_started(monkeypatch, tmp_path, proc):
    if not proc:
        if not os.path.exists("/bin/ps"):
            pytest.skip("there is no ps")
        monkeypatch.setattr(memory, "_PROC", tmp_path)
    command = [sys.executable, "-c", HOLDING, CHILD]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        assert process.stdout.readline() == b"ready\n"
        found = memory_of_groups([process.pid, 2**22 + 1])
        process.stdin.close()
    assert list(found) == [process.pid]
    assert 100_000_000 < found[process.pid] < 300_000_000
    assert 10_000_000 < (own_memory() or 0) < 5_000_000_000


def test_nothing_is_asked_for_nobody():
    assert memory_of_groups([]) == {}
