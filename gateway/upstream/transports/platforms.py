"""Differences between operating systems: find a program, start it, and end it with everything it started.

Only this module of the package depends on the system. Decisions are pure functions, or take the system's calls as an
argument, so the code for each system can be tested on every other.

POSIX: a child leads a process group (and a session) of its own, and signals go to the group. Windows: a child and the
processes it starts belong to a Job Object, which ends them on request and when its last handle is closed, even if the
gateway is killed. Windows has no SIGTERM: a program is asked to end by closing its input, and is then terminated.
"""

import ctypes
import errno
import ntpath
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes import wintypes
from typing import Any, NamedTuple, Protocol, TypedDict

from gateway.system.process_usage import usage_of_group

WINDOWS = sys.platform == "win32"

_PATHEXT = ".COM;.EXE;.BAT;.CMD"
_BATCH = (".bat", ".cmd")
_NO_WINDOW = 0x0800_0000  # subprocess.CREATE_NO_WINDOW, which Python defines on Windows only


class Work(NamedTuple):
    """The work of a process and its descendants so far; comparing two values shows whether they are busy."""

    cpu: float = 0.0
    """CPU seconds of the running processes."""
    moved: int = 0
    """Bytes read and written by them; 0 if the system does not report it."""
    processes: int = 0
    """The number of running processes."""
    who: object = None
    """An identity that stays equal as long as the processes are the same."""


class Tree(Protocol):
    """A process and everything that it started, which can be ended together."""

    def work(self) -> Work | None:
        """Return the work done so far; None if the system does not report it. Takes a few milliseconds."""
        ...

    def terminate(self) -> bool:
        """Ask all processes to end, or end them if they cannot be asked. Return False if none are left."""
        ...

    def is_alive(self) -> bool:
        """Whether any process is left."""
        ...

    def kill(self) -> None:
        """Kill all processes."""
        ...

    def close(self) -> None:
        """Release the tree, which is not used after that."""
        ...


class SpawnOptions(TypedDict, total=False):
    """Options for starting a child, besides its command."""

    start_new_session: bool
    creationflags: int


def spawn_options(*, windows: bool = WINDOWS) -> SpawnOptions:
    """Return options for a child that can be ended as a tree, and that opens no window."""
    return {"creationflags": _NO_WINDOW} if windows else {"start_new_session": True}


def tree_of(pid: int) -> Tree:
    """Return the tree of a child that has just been started with `spawn_options`."""
    return Job(pid, _kernel32()) if WINDOWS else Group(pid)


class Group:
    """A process group. It keeps its leader's id after the leader is gone, as long as it has a member."""

    def __init__(self, leader: int) -> None:
        self._leader = leader

    def work(self) -> Work | None:
        """Return the work of all processes in the group."""
        cpu, moved, members = usage_of_group(self._leader)
        return Work(cpu, moved, len(members), members)

    def terminate(self) -> bool:
        """Send SIGTERM to all processes."""
        return self._signal(signal.SIGTERM)

    def is_alive(self) -> bool:
        """Whether the group has a process."""
        return self._signal(0)

    def kill(self) -> None:
        """Send SIGKILL to all processes."""
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    def close(self) -> None:
        """Do nothing: a group holds no resources."""

    def _signal(self, number: int) -> bool:
        try:
            os.killpg(self._leader, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # a member belongs to another user: it exists, but cannot be signalled
            return True
        return True


class Job:
    """A Windows Job Object. Processes started before the child is assigned to the job stay outside."""

    _EXTENDED_LIMITS = 9
    _ACCOUNTING = 1
    _KILL_ON_CLOSE = 0x2000
    _MAY_ASSIGN = 0x0100 | 0x0001  # PROCESS_SET_QUOTA, PROCESS_TERMINATE

    def __init__(self, pid: int, kernel32: Any) -> None:
        self._kernel32 = kernel32
        self._job: int | None = kernel32.CreateJobObjectW(None, None)
        if not self._job:
            return
        limits = _ExtendedLimits()
        limits.basic.flags = self._KILL_ON_CLOSE
        kernel32.SetInformationJobObject(self._job, self._EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        process = kernel32.OpenProcess(self._MAY_ASSIGN, False, pid)
        if process:
            kernel32.AssignProcessToJobObject(self._job, process)
            kernel32.CloseHandle(process)

    def work(self) -> Work | None:
        """Return the work of all processes in the job, including those that have ended."""
        accounting = self._accounting()
        if accounting is None:
            return None
        user, kernel = accounting.times[0], accounting.times[1]  # in units of 100 ns
        return Work((user + kernel) / 10_000_000, 0, accounting.active_processes, accounting.total_processes)

    def terminate(self) -> bool:
        """Kill all processes: on Windows they cannot be asked to end."""
        if not self.is_alive():
            return False
        self.kill()
        return True

    def is_alive(self) -> bool:
        """Whether any process of the job is running."""
        accounting = self._accounting()
        return accounting is not None and accounting.active_processes > 0

    def kill(self) -> None:
        """Kill every process of the job."""
        if self._job:
            self._kernel32.TerminateJobObject(self._job, 1)

    def close(self) -> None:
        """Close the job, which ends all processes still in it."""
        job, self._job = self._job, None
        if job:
            self._kernel32.CloseHandle(job)

    def _accounting(self) -> "_Accounting | None":
        if not self._job:
            return None
        accounting = _Accounting()
        size = ctypes.sizeof(accounting)
        known = self._kernel32.QueryInformationJobObject(
            self._job, self._ACCOUNTING, ctypes.byref(accounting), size, None
        )
        return accounting if known else None


def command_line(
    command: str,
    args: Sequence[str],
    environ: Mapping[str, str],
    *,
    windows: bool = WINDOWS,
    is_file: Callable[[str], bool] = os.path.isfile,
) -> list[str] | str:
    """Return the command to start: a list for the system, or (`.cmd` and `.bat` on Windows) one line for its shell.

    On Windows the program is searched for as a shell does: `npx` is `npx.cmd`, which only a search by PATHEXT finds.
    Raises OSError (EINVAL) for arguments that cannot be passed to a batch file.
    """
    if not windows:
        return [command, *args]
    program = find_program(command, environ, is_file=is_file) or command
    return batch_line(program, args) if program.lower().endswith(_BATCH) else [program, *args]


def find_program(
    command: str, environ: Mapping[str, str], *, is_file: Callable[[str], bool] = os.path.isfile
) -> str | None:
    """Find a command on Windows in the folders of PATH, with each extension of PATHEXT; None if it is not found.

    Unlike the system's own search, this ignores the current folder and files without an extension (npm puts shell
    scripts beside its `.cmd` files).
    """
    named = {name.upper(): value for name, value in environ.items()}
    endings = [ending.lower() for ending in (named.get("PATHEXT") or _PATHEXT).split(";") if ending]
    has_ending = ntpath.splitext(command)[1].lower() in endings
    names = [command] if has_ending else [command + ending for ending in endings]
    if ntpath.dirname(command):
        return next(filter(is_file, names), None)
    folders = [folder.strip('"') for folder in named.get("PATH", "").split(";") if folder.strip('"')]
    return next(filter(is_file, (ntpath.join(folder, name) for folder in folders for name in names)), None)


def batch_line(program: str, args: Sequence[str]) -> str:
    """Return a batch file and its arguments as one line for `cmd /c "..."` that preserves each argument.

    cmd expands and splits a line once more than other programs, so everything is quoted, inner quotes are doubled, and
    `%` is broken up by an empty expansion. Raises OSError (EINVAL) for line ends, which end a command for cmd.
    """
    return " ".join((f'"{program}"', *map(_batch_argument, args)))


def _batch_argument(argument: str) -> str:
    if any(sign in argument for sign in "\r\n\0"):
        raise OSError(errno.EINVAL, "an argument of a batch file (.cmd, .bat) cannot have a line end in it")
    # A backslash is special only before a quote; a doubled quote is one quote for cmd and for the program behind it.
    escaped = re.sub(r'(\\*)"', r'\1\1""', argument)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f'"{escaped}"'.replace("%", "%%cd:~,%")


def exit_words(code: int) -> str:
    """Describe how a process ended: `exited with code 1`, `was ended by SIGKILL`, `exited with code 0xC0000005`."""
    if code >= 0:
        return f"exited with code {code if code < 0x1_0000 else f'0x{code:X}'}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("most_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    basic: _BasicLimits
    _fields_ = (
        ("basic", _BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    active_processes: int
    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("page_faults", ctypes.c_uint32),
        ("total_processes", ctypes.c_uint32),
        ("active_processes", ctypes.c_uint32),
        ("terminated_processes", ctypes.c_uint32),
    )


def _kernel32() -> Any:
    """Load Windows' kernel32, with handles declared to be as wide as pointers."""
    library: Any = vars(ctypes)["WinDLL"]  # which Python has on Windows only
    kernel32 = library("kernel32", use_last_error=True)
    handle, flag, number, pointer = wintypes.HANDLE, wintypes.BOOL, wintypes.DWORD, ctypes.c_void_p
    for name, result, arguments in (
        ("CreateJobObjectW", handle, (pointer, wintypes.LPCWSTR)),
        ("SetInformationJobObject", flag, (handle, ctypes.c_int, pointer, number)),
        ("QueryInformationJobObject", flag, (handle, ctypes.c_int, pointer, number, pointer)),
        ("OpenProcess", handle, (number, flag, number)),
        ("AssignProcessToJobObject", flag, (handle, handle)),
        ("TerminateJobObject", flag, (handle, wintypes.UINT)),
        ("CloseHandle", flag, (handle,)),
    ):
        function = getattr(kernel32, name)
        function.restype, function.argtypes = result, arguments
    return kernel32
