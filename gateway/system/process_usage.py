"""Memory, CPU time and transferred bytes of processes, with everything that they have started.

Every function looks at all processes of the system, which takes some milliseconds: call it in a thread. psutil is
imported when it is needed, because a gateway that starts has no use for it.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import psutil


class GroupUsage(NamedTuple):
    """Usage of the running processes of a group: CPU seconds, bytes read and written (0 if unknown), and their ids."""

    cpu: float
    moved: int
    members: frozenset[int]


def own_memory() -> int:
    """Return the bytes of RAM that this process uses."""
    import psutil

    return psutil.Process().memory_info().rss


def memory_of_trees(leaders: Collection[int]) -> Mapping[int, int]:
    """Return the bytes of RAM by leader: of the process, its descendants, and the members of its process group.

    Leaders without any such process are left out.
    """
    if not leaders:
        return {}
    processes = {process.pid: process for process in _processes()}
    parents = {pid: parent for pid, process in processes.items() if (parent := _parent(process)) is not None}
    groups = {pid: _group(pid) for pid in processes}
    found: dict[int, int] = {}
    for leader in leaders:
        sizes = [_resident(processes[pid]) for pid in _members(leader, parents, groups)]
        known = [size for size in sizes if size is not None]
        if known:
            found[leader] = sum(known)
    return found


def usage_of_group(group: int) -> GroupUsage:
    """Return the usage of a process group (POSIX)."""
    import psutil

    cpu, moved = 0.0, 0
    members: set[int] = set()
    for process in _processes():
        if _group(process.pid) != group:
            continue
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                times = process.cpu_times()
                members.add(process.pid)
                cpu += times.user + times.system
                moved += _transferred(process)
        except psutil.Error:
            continue  # it ended meanwhile, or belongs to another user
    return GroupUsage(cpu, moved, frozenset(members))


def _processes() -> Iterator["psutil.Process"]:
    # Not `process_iter`, which keeps what it has seen in a table that threads would share.
    import psutil

    for pid in psutil.pids():
        with suppress(psutil.Error):
            yield psutil.Process(pid)


def _parent(process: "psutil.Process") -> int | None:
    import psutil

    try:
        return process.ppid()
    except psutil.Error:
        return None


def _group(pid: int) -> int | None:
    """Return the process group; None on Windows, and for a process that has ended."""
    try:
        return os.getpgid(pid)
    except (AttributeError, OSError):
        return None


def _resident(process: "psutil.Process") -> int | None:
    import psutil

    try:
        return process.memory_info().rss
    except psutil.Error:
        return None


def _transferred(process: "psutil.Process") -> int:
    """Return all bytes read and written, through pipes and sockets too, where the system counts them (Linux)."""
    import psutil

    try:
        counted = process.io_counters()
    except (AttributeError, psutil.Error):
        return 0
    return getattr(counted, "read_chars", 0) + getattr(counted, "write_chars", 0)


def _members(leader: int, parents: Mapping[int, int], groups: Mapping[int, int | None]) -> set[int]:
    members = {pid for pid, group in groups.items() if leader in (pid, group)}
    found = members
    while found:
        found = {pid for pid, parent in parents.items() if parent in found} - members
        members = members | found
    return members
