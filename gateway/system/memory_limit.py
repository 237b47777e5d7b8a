"""Memory that a process may use and does use: by the control group that it runs in, or by itself (Linux)."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gateway.system.process_usage import own_memory

_HUGE = 1 << 60
"""More than any machine has: how version 1 of control groups writes that there is no limit."""


class MemoryUse(NamedTuple):
    """Bytes in use, and the limit that they count against."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """The part of the limit that is in use."""
        return self.used / self.limit


class ControlGroup:
    """The innermost control group with a limit of memory that this process is in.

    `found` looks for it. `proc` and `root` are where the system shows processes and control groups.
    """

    def __init__(self, folder: Path, limit: int, used_file: str, reclaimable: str) -> None:
        self._folder = folder
        self.limit = limit
        self._used_file = used_file
        self._reclaimable = reclaimable

    def used(self) -> int:
        """Return the bytes in use, without the files that the system can forget at once."""
        used = _number(self._folder / self._used_file) or 0
        for line in _text(self._folder / "memory.stat").splitlines():
            key, _, value = line.partition(" ")
            if key == self._reclaimable and value.isdecimal():
                return max(0, used - int(value))
        return used

    @classmethod
    def found(cls, proc: Path = Path("/proc/self"), root: Path = Path("/sys/fs/cgroup")) -> "ControlGroup | None":
        """Return the group; None if there is none with a limit, as on other systems."""
        for line in _text(proc / "cgroup").splitlines():
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if not controllers:
                names, base = ("memory.max", "memory.current", "inactive_file"), root
            elif "memory" in controllers.split(","):
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
                base = root / "memory"
            else:
                continue
            for folder in _upward(base, path):
                limit = _number(folder / names[0])
                if limit is not None and 0 < limit < _HUGE:
                    return cls(folder, limit, *names[1:])
        return None


def machine_memory() -> int:
    """Return the bytes of memory of this machine."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import psutil  # only on Windows, because it takes a while

    return psutil.virtual_memory().total


def memory_uses(group: ControlGroup | None, limit: int | None) -> list[MemoryUse]:
    """Return what counts: the group's use against its limit, and this process's own against `limit`, if there are."""
    uses = [] if group is None else [MemoryUse(group.used(), group.limit)]
    return uses if limit is None else [*uses, MemoryUse(own_memory(), limit)]


def _upward(base: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group and those above it. In a container, the path may be that outside of it."""
    inner = PurePosixPath(path.lstrip("/"))
    if ".." in inner.parts:
        inner = PurePosixPath()
    for part in (inner, *inner.parents):
        yield base / part


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None
