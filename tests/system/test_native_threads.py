"""A process does not end while a thread that Python did not start is still in Python."""

import subprocess
import sys

import pytest

LATE = """
import _thread, os, sys, time

def late():  # as a thread of native code: the module threading does not know it
    time.sleep(float(sys.argv[1]))
    os.write(1, b"ended")

{first}
_thread.start_new_thread(late, ())
"""
AWAITED = "from gateway.system.native_threads import await_native_threads; await_native_threads()"
STORE = """
import anyio
from gateway.config.locations import location
from gateway.content.store.backend import Backend

anyio.run(Backend(location(f"file://{sys.argv[2]}"), 30.0).put, "a", b"b")
"""


def printed(first: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", LATE.replace("{first}", first), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout


def test_the_interpreter_waits_for_a_thread_that_is_in_python() -> None:
    assert printed("", "0.3") == ""
    assert printed(AWAITED, "0.3") == "ended"


def test_it_does_not_wait_for_ever() -> None:
    assert printed(AWAITED, "30") == ""


def test_a_process_that_has_used_a_store_of_files_waits(tmp_path) -> None:
    assert printed(STORE, "0.3", str(tmp_path)) == "ended"


@pytest.mark.slow
def test_a_process_that_ends_amid_reading_from_a_store_is_not_aborted(tmp_path) -> None:
    script = """
import sys, anyio
from gateway.config.locations import location
from gateway.content.store.backend import Backend

async def main():
    backend = Backend(location(f"file://{sys.argv[1]}"), 30.0)
    await backend.put("a", b"b")
    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(backend.get, "a")
        await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()

anyio.run(main)
"""
    for _ in range(2):
        at_once = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(8)]
        assert [process.wait(60) for process in at_once] == [0] * 8
