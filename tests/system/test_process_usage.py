import os
import subprocess
import sys

import pytest

from gateway.system.process_usage import memory_of_trees, own_memory, usage_of_group

posix = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")

HOLDING = "x = bytearray(40_000_000); import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
IN_A_SESSION_OF_ITS_OWN = HOLDING.replace("[1]])", "[1]], start_new_session=True)")
CHILD = "y = bytearray(60_000_000); print('ready', flush=True); input()"


@posix
@pytest.mark.parametrize("parent", [HOLDING, IN_A_SESSION_OF_ITS_OWN])
def test_a_process_counts_with_all_that_it_started(parent: str) -> None:
    command = [sys.executable, "-c", parent, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        found = memory_of_trees([process.pid, 2**22 + 1])
        process.stdin.close()
    assert list(found) == [process.pid]
    assert 100_000_000 < found[process.pid] < 300_000_000


@posix
def test_a_member_of_the_group_counts_when_its_parent_is_gone() -> None:
    leaving = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])"
    command = [sys.executable, "-c", leaving, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        process.wait()
        found = memory_of_trees([process.pid])
        usage = usage_of_group(process.pid)
        process.stdin.close()
        process.stdout.read()
    assert 60_000_000 < found[process.pid] < 200_000_000
    assert usage.cpu > 0
    assert len(usage.members) == 1


def test_this_process_is_known() -> None:
    assert 10_000_000 < own_memory() < 50_000_000_000
    assert memory_of_trees([os.getpid()])[os.getpid()] >= 10_000_000


def test_nothing_is_known_of_nobody() -> None:
    assert memory_of_trees([]) == {}
    assert usage_of_group(2**22 + 1) == (0.0, 0, frozenset())
