"""What an ended gateway leaves behind is ended: by a watch that nothing but the end of its pipe can stop."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from gateway.upstream.transports import process_reaper
from gateway.upstream.transports.process_reaper import ProcessReaper

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="on Windows, jobs do this")]

ROOT = Path(__file__).resolve().parents[3]

STUBBORN = "import os, signal, sys, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'up\\n'); time.sleep(600)"
"""Minds neither its input nor SIGTERM."""

GATEWAY = """
import subprocess, sys
from gateway.upstream.transports.process_reaper import ProcessReaper
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
ProcessReaper().guard(child.pid)
print("guarded", flush=True)
sys.stdin.read()
"""


def stubborn() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def test_a_killed_gateway_leaves_no_process_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", GATEWAY, STUBBORN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as gateway:
        assert gateway.stdout is not None
        assert {gateway.stdout.readline(), gateway.stdout.readline()} == {b"up\n", b"guarded\n"}
        gateway.kill()
        # The child holds the other end: it ends when nobody is left.
        assert gateway.stdout.read() == b""


async def test_what_was_ended_in_good_order_is_not_touched_and_the_watch_ends_with_the_last() -> None:
    watch = ProcessReaper()
    with stubborn() as spared, stubborn() as other:
        try:
            watch.guard(spared.pid)
            watch.guard(other.pid)
            shell = watch._shell
            assert shell is not None
            await watch.release(spared.pid)
            assert shell.poll() is None
            await watch.release(other.pid)
            assert shell.returncode == 0
            assert spared.poll() is None
        finally:
            spared.kill()
            other.kill()


async def test_a_watch_that_was_killed_is_replaced_and_knows_all_groups() -> None:
    watch = ProcessReaper()
    with stubborn() as first, stubborn() as second:
        try:
            watch.guard(first.pid)
            before = watch._shell
            assert before is not None
            before.kill()
            before.wait()
            watch.guard(second.pid)
            after = watch._shell
            assert after is not None
            assert after.pid != before.pid
            assert after.stdin is not None
            after.stdin.close()  # as when the gateway ends
            with anyio.fail_after(20):
                for child in (first, second):
                    assert await anyio.to_thread.run_sync(child.wait) == -signal.SIGKILL
                await anyio.to_thread.run_sync(after.wait)
        finally:
            first.kill()
            second.kill()


async def test_without_a_shell_there_is_no_watch_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_reaper, "SHELL", "/no/such/shell")
    watch = ProcessReaper()
    watch.guard(2**22 + 1)
    assert watch._shell is None
    await watch.release(2**22 + 1)


async def test_the_watch_does_not_end_with_the_group_of_the_gateway() -> None:
    watch = ProcessReaper()
    with stubborn() as child:
        try:
            watch.guard(child.pid)
            assert watch._shell is not None
            assert os.getsid(watch._shell.pid) == watch._shell.pid
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                watch._shell.send_signal(number)
            await watch.release(child.pid)
            assert child.poll() is None
        finally:
            child.kill()
