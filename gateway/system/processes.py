"""Starting child processes without ever leaving one behind, and what processes of our own inherit."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

_INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PATH",
    "PYTHONHOME",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "WINDIR",
)


async def start_process(command: str | Sequence[str], **options: Any) -> Process:
    """Call `anyio.open_process` in a way that cannot be cancelled halfway; the caller is cancelled at its next wait.

    If a start is cancelled, asyncio kills the process and waits for it; anyio cancels that wait too, which leaves a
    zombie. `options` are those of `anyio.open_process`.

    Raises:
        OSError: the process cannot be started.
    """
    started: list[Process] = []
    with anyio.CancelScope(shield=True):
        started.append(await anyio.open_process(command, **options))
    return started[0]


def python_environment() -> dict[str, str]:
    """Return only the variables that Python needs: no secrets for a process of ours that handles hostile content.

    PYTHONPATH is this process's own search path in the same order, so that the process finds the same modules, however
    the gateway was installed. The folder that contains this package comes last, in case it was found relative to the
    current folder.
    """
    env = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    root = str(Path(__file__).resolve().parents[2])
    path = [entry for entry in sys.path if entry and Path(entry).is_absolute()]
    # Otherwise each thread of a decoder would reserve 64 MiB of the limited address space.
    env["MALLOC_ARENA_MAX"] = "1"
    env["PYTHONPATH"] = os.pathsep.join(path if root in path else [*path, root])
    return env
