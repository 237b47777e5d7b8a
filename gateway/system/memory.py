"""Memory used by processes: the currently resident memory of a whole process group, including child processes."""

import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

_PROC = Path("/proc")
_PS_SECONDS = 5.0


def own_memory() -> int | None:
    """Return the bytes that this process uses; None if unknown."""
    if _PROC.joinpath("self/statm").is_file():
        return _resident(_PROC / "self")
    return _listed_by_ps("pid").get(os.getpid())


def memory_of_groups(groups: Collection[int]) -> Mapping[int, int]:
    """Return bytes by process group, summed over its processes, without groups that are unknown. Blocks a little."""
    if not groups:
        return {}
    if _PROC.joinpath("self/statm").is_file():
        return _from_proc(frozenset(groups))
    found = _listed_by_ps("pgid")
    return {group: found[group] for group in groups if group in found}


def _from_proc(groups: frozenset[int]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            # `pid (name) state ppid pgrp ...`; the name may contain anything, including brackets and spaces.
            group = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[2])
        except (OSError, IndexError, ValueError):  # it has just ended
            continue
        if group in groups and (size := _resident(folder)) is not None:
            found[group] = found.get(group, 0) + size
    return found


def _resident(folder: Path) -> int | None:
    try:
        return int((folder / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def _listed_by_ps(key: str) -> dict[int, int]:
    """Return bytes summed by `pid` or `pgid`."""
    if sys.platform == "win32":
        return {}
    try:
        listed = subprocess.run(
            ["/bin/ps", "-A", "-o", f"{key}=", "-o", "rss="], capture_output=True, timeout=_PS_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[int, int] = {}
    for line in listed.splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            found[int(words[0])] = found.get(int(words[0]), 0) + int(words[1]) * 1_024
    return found
