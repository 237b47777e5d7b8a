"""Memory, CPU time and transferred bytes of processes, with everything that they have started.

Every function looks at all processes of the system, which takes some milliseconds: call it in a thread. psutil is
imported when it is needed, because a gateway that starts has no use for it.
"""

import os
from collections.abc import Collection, Mapping
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
    import psutil

    processes: dict[int, psutil.Process] = {}
    parents: dict[int, int] = {}
    # Not `process_iter`, which keeps what it has seen in a table that threads would share.
    for pid in psutil.pids():
        with suppress(psutil.Error):  # it ended meanwhile
            processes[pid] = psutil.Process(pid)
            parents[pid] = processes[pid].ppid()
    groups = {pid: _group(pid) for pid in processes}
    found: dict[int, int] = {}
    for leader in leaders:
        for pid in _members(leader, parents, groups):
            with suppress(psutil.Error):
                found[leader] = found.get(leader, 0) + processes[pid].memory_info().rss
    return found


def usage_of_group(group: int) -> GroupUsage:
    """Return the usage of a process group (POSIX)."""
    import psutil

    cpu, moved = 0.0, 0
    members: set[int] = set()
    for pid in psutil.pids():
        if _group(pid) != group:
            continue
        with suppress(psutil.Error):  # it ended meanwhile, or belongs to another user
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            times = process.cpu_times()
            members.add(pid)
            cpu += times.user + times.system
            moved += _transferred(process)
    return GroupUsage(cpu, moved, frozenset(members))


def _group(pid: int) -> int | None:
    """Return the process group; None on Windows, and for a process that has ended."""
    try:
        return os.getpgid(pid)
    except (AttributeError, OSError):
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
