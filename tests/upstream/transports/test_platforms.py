"""Each system's way, tested on every other: a faked file system, a faked Windows, a real process group."""

import ctypes
import ntpath
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gateway.upstream.transports.platforms import (
    Group,
    Job,
    Work,
    batch_line,
    command_line,
    exit_words,
    find_program,
    spawn_options,
)

NODE = r"C:\Program Files\nodejs"
ENVIRON = {"Path": rf'C:\Windows\system32;"{NODE}";C:\tools', "PATHEXT": ".COM;.EXE;.BAT;.CMD;.PS1"}

posix = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")


def files(*paths: str) -> Callable[[str], bool]:
    """A file system with these files, whose names have no case, as on Windows."""
    there = {ntpath.normpath(path).lower() for path in paths}
    return lambda path: ntpath.normpath(path).lower() in there


def test_npx_is_the_batch_file_and_not_the_shell_script_beside_it() -> None:
    there = files(rf"{NODE}\npx", rf"{NODE}\npx.cmd", rf"{NODE}\npx.ps1")
    assert find_program("npx", ENVIRON, is_file=there) == rf"{NODE}\npx.cmd"


def test_the_order_is_that_of_path_and_in_one_folder_that_of_pathext() -> None:
    there = files(rf"{NODE}\x.cmd", rf"{NODE}\x.exe", r"C:\tools\x.com")
    assert find_program("x", ENVIRON, is_file=there) == rf"{NODE}\x.exe"


def test_an_ending_that_is_given_is_kept_and_one_that_runs_nothing_is_not_taken_for_one() -> None:
    there = files(rf"{NODE}\uvx.exe", rf"{NODE}\server.js.cmd", rf"{NODE}\server.js")
    assert find_program("uvx.EXE", ENVIRON, is_file=there) == rf"{NODE}\uvx.EXE"
    assert find_program("server.js", ENVIRON, is_file=there) == rf"{NODE}\server.js.cmd"


def test_a_path_is_not_looked_for_in_path() -> None:
    there = files(r"D:\servers\run.bat", rf"{NODE}\run.bat")
    assert find_program(r"D:\servers\run", ENVIRON, is_file=there) == r"D:\servers\run.bat"
    assert find_program(r"D:\elsewhere\run", ENVIRON, is_file=there) is None


def test_the_current_folder_is_not_looked_in_and_without_pathext_the_usual_endings_hold() -> None:
    there = files("npx.cmd", r"C:\tools\npx.cmd")
    assert find_program("npx", {"PATH": r"C:\tools"}, is_file=there) == r"C:\tools\npx.cmd"
    assert find_program("npx", {}, is_file=there) is None


def test_a_program_is_started_by_the_system_and_a_batch_file_by_its_shell() -> None:
    there = files(rf"{NODE}\npx.cmd", rf"{NODE}\node.exe")

    def line(command: str, *args: str) -> Any:
        return command_line(command, args, ENVIRON, windows=True, is_file=there)

    assert line("node", "a b", "c&d") == [rf"{NODE}\node.exe", "a b", "c&d"]
    assert line("npx", "-y", "pkg") == rf'"{NODE}\npx.cmd" "-y" "pkg"'
    assert line("missing", "x") == ["missing", "x"]
    assert command_line("npx", ["-y"], ENVIRON, windows=False) == ["npx", "-y"]


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        ("a&b|c", '"a&b|c"'),
        ('say "hi"', '"say ""hi"""'),
        (r"C:\folder" + "\\", '"C:\\folder\\\\"'),
        (r"back\"slash", r'"back\\""slash"'),
        ("100%PATH%", '"100%%cd:~,%PATH%%cd:~,%"'),
        ("", '""'),
    ],
)
def test_an_argument_reaches_the_program_behind_a_batch_file_as_it_is(argument: str, written: str) -> None:
    assert batch_line(r"C:\x.cmd", [argument]) == rf'"C:\x.cmd" {written}'


def test_an_argument_with_a_line_end_is_refused_for_a_batch_file() -> None:
    with pytest.raises(OSError, match="line end"):
        batch_line(r"C:\x.cmd", ["one\ntwo"])


def test_a_child_gets_a_group_of_its_own_or_no_window() -> None:
    assert spawn_options(windows=False) == {"start_new_session": True}
    assert spawn_options(windows=True) == {"creationflags": 0x0800_0000}


def test_an_end_is_put_into_words() -> None:
    assert exit_words(1) == "exited with code 1"
    assert exit_words(-9) == "was ended by SIGKILL"
    assert exit_words(-250) == "was ended by signal 250"
    assert exit_words(0xC0000005) == "exited with code 0xC0000005"


class Kernel:
    """A Windows that knows jobs: what is in them, what they were told, which handles are open."""

    def __init__(self, *, jobs: bool = True) -> None:
        self.jobs = jobs
        self.open: set[int] = set()
        self.members: dict[int, list[int]] = {}
        self.flags = 0
        self._next = 100

    def _handle(self) -> int:
        self._next += 1
        self.open.add(self._next)
        return self._next

    def CreateJobObjectW(self, attributes: None, name: None) -> int:
        if not self.jobs:
            return 0
        job = self._handle()
        self.members[job] = []
        return job

    def SetInformationJobObject(self, job: int, kind: int, limits: Any, size: int) -> int:
        assert (kind, size) == (9, ctypes.sizeof(limits._obj))
        self.flags = limits._obj.basic.flags
        return 1

    def OpenProcess(self, access: int, inherit: bool, pid: int) -> int:
        assert not inherit
        handle = self._handle()
        self.pids = {**getattr(self, "pids", {}), handle: pid}
        return handle

    def AssignProcessToJobObject(self, job: int, process: int) -> int:
        self.members[job].append(self.pids[process])
        return 1

    def QueryInformationJobObject(self, job: int, kind: int, accounting: Any, size: int, _: None) -> int:
        assert (kind, size) == (1, ctypes.sizeof(accounting._obj))
        accounting._obj.active_processes = len(self.members[job])
        return 1

    def TerminateJobObject(self, job: int, code: int) -> int:
        self.members[job].clear()
        return 1

    def CloseHandle(self, handle: int) -> int:
        self.open.remove(handle)
        if self.flags & 0x2000:
            self.members.get(handle, []).clear()
        return 1


def test_a_job_ends_what_is_in_it_and_leaves_no_handle_open() -> None:
    kernel = Kernel()
    job = Job(42, kernel)
    (members,) = kernel.members.values()
    assert members == [42]
    assert kernel.flags == 0x2000  # killed with its last handle: when the gateway is killed, too
    assert job.is_alive()
    members.append(43)  # a grandchild
    assert job.work() == Work(processes=2, who=0)  # the faked system counts neither time nor starts
    assert job.terminate()
    assert members == []
    assert not job.is_alive()
    assert not job.terminate()
    job.close()
    job.close()
    assert kernel.open == set()


def test_closing_a_job_ends_what_was_left_in_it() -> None:
    kernel = Kernel()
    Job(42, kernel).close()
    assert list(kernel.members.values()) == [[]]
    assert kernel.open == set()


def test_without_job_objects_there_is_nothing_to_end() -> None:
    job = Job(42, Kernel(jobs=False))
    assert not job.is_alive()
    assert job.work() is None
    assert not job.terminate()
    job.kill()
    job.close()


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the sizes of 64 bits")
def test_the_structures_are_as_large_as_windows_says() -> None:
    from gateway.upstream.transports.platforms import _Accounting, _ExtendedLimits

    assert ctypes.sizeof(_ExtendedLimits) == 144
    assert ctypes.sizeof(_Accounting) == 48


@posix
def test_a_group_is_ended_with_its_leader_gone() -> None:
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('started', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as leader:
        assert leader.stdout is not None
        assert leader.stdout.readline() == b"started\n"
        group = Group(leader.pid)
        leader.kill()
        leader.wait()
        assert group.is_alive()
        group.kill()
        assert leader.stdout.read() == b""  # the pipe that its child held is closed, so that is gone too


@posix
def test_the_work_of_a_group_is_that_of_all_in_it() -> None:
    # One write for the whole line: two processes have this pipe, and an unbuffered `print` writes twice.
    burn = "import os, time\nwhile time.process_time() < 0.3: pass\nos.write(1, b'done\\n')\ntime.sleep(600)"
    command = ["/bin/sh", "-c", f'{sys.executable} -c "$0" & {sys.executable} -c "$0"; wait', burn]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "done\n"
            work = Group(process.pid).work()
        finally:
            os.killpg(process.pid, 9)
    assert work is not None
    assert work.cpu >= 0.3
    assert work.processes >= 2
    assert Group(2**22 + 1).work() == Work(who=frozenset())
