"""Child processes: started in a group of their own, ended with everything that they started, in bounded time."""

import os
import shutil
import signal
import subprocess
import sys

import anyio
from anyio.abc import Process

from gateway.config.schema import UpstreamSettings
from gateway.upstream.environment import environment

CLOSE_GRACE = 2.0
"""Seconds for a process to end by itself after its standard input was closed."""

TERMINATE_GRACE = 1.5
"""Seconds for a process group to end after SIGTERM, before SIGKILL."""

ORPHAN_GRACE = 0.5
"""The same, for what a process left behind that has ended already."""

REAP_GRACE = 1.0
"""Seconds for the system to report the end of a killed process."""

_PROBE = 0.02


async def spawn(settings: UpstreamSettings) -> Process:
    """Start the upstream's command with pipes on its three standard streams, as the leader of its own group.

    Raises OSError when it cannot be started.
    """
    child = environment(settings.env, os.environ)
    command = settings.command or ""
    if sys.platform == "win32":  # where npx is npx.cmd, which only a search by PATHEXT finds
        command = shutil.which(command, path=child.get("PATH")) or command
    return await anyio.open_process(
        [command, *settings.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child,
        cwd=settings.cwd,
        start_new_session=True,
    )


async def end(process: Process) -> bool:
    """End a process and its group: close its input, wait, SIGTERM, wait, SIGKILL. False if it survived even that.

    Takes at most the sum of the graces. Its output must be read meanwhile, or it may block on a full pipe.
    """
    if process.stdin is not None:
        await process.stdin.aclose()
    await _exited(process, CLOSE_GRACE)
    await _end_group(process)
    if process.returncode is None:
        await _exited(process, REAP_GRACE)
    if process.returncode is None:
        return False
    await process.aclose()
    return True


def exit_words(code: int) -> str:
    """How a process ended: `exited with code 1`, `was ended by SIGKILL`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


async def _exited(process: Process, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await process.wait()


async def _end_group(process: Process) -> None:
    if sys.platform == "win32":
        if process.returncode is None:
            process.kill()
        return
    # The leader's id is the group's, also after the leader is gone: what it left behind is still in there.
    if not _signal_group(process.pid, signal.SIGTERM):
        return
    grace = TERMINATE_GRACE if process.returncode is None else ORPHAN_GRACE
    for _ in range(round(grace / _PROBE)):
        await anyio.sleep(_PROBE)
        if not _signal_group(process.pid, 0):
            return
    _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group (0 only asks); False when nobody is in it any more."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # someone in it belongs to another user: it is there, and beyond our reach
        return True
    return True
