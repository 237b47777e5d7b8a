"""Child processes: started as a tree of their own, ended with everything that they started, in bounded time."""

import os
import subprocess
from dataclasses import dataclass

import anyio
from anyio.abc import Process

from gateway.config.schema import UpstreamSettings
from gateway.processes import start_process
from gateway.upstream.environment import environment
from gateway.upstream.orphans import WATCH
from gateway.upstream.platforms import Tree, command_line, exit_words, spawn_options, tree_of

__all__ = ["HURRIED", "LEISURELY", "Child", "Graces", "end", "exit_words", "spawn"]


@dataclass(frozen=True)
class Graces:
    """Seconds for a process to end: after its input was closed, after it was asked to (SIGTERM), and after SIGKILL."""

    close: float
    terminate: float
    kill: float


LEISURELY = Graces(close=2.0, terminate=1.5, kill=5.0)
"""While the gateway goes on: idle upstreams, changed settings."""

HURRIED = Graces(close=0.4, terminate=0.5, kill=1.0)
"""When the gateway itself ends: hosts give it two seconds for everything (the official Python SDK), then they kill."""

ORPHAN_GRACE = 0.3
"""Seconds to end after SIGTERM, for what a process left behind that has ended already."""

_PROBE = 0.02


@dataclass(frozen=True)
class Child:
    """An upstream's process, with pipes on its three standard streams, and everything below it."""

    process: Process
    tree: Tree

    @property
    def pid(self) -> int:
        """The id of the process, and on POSIX of its group."""
        return self.process.pid


async def spawn(settings: UpstreamSettings) -> Child:
    """Start the upstream's command with pipes on its three standard streams, at the head of a tree of its own.

    Raises OSError when it cannot be started.
    """
    child = environment(settings.env, os.environ)
    process = await start_process(
        command_line(settings.command or "", settings.args, child),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child,
        cwd=settings.cwd,
        **spawn_options(),
    )
    WATCH.guard(process.pid)
    return Child(process, tree_of(process.pid))


async def end(child: Child, graces: Graces) -> bool:
    """End a process and its tree: close its input, wait, SIGTERM, wait, SIGKILL. False if it survived even that.

    Takes at most the sum of the graces. Its output must be read meanwhile, or it may block on a full pipe.
    """
    process = child.process
    if process.stdin is not None:
        await process.stdin.aclose()
    await _exited(process, graces.close)
    await _end_tree(child, graces)
    child.tree.close()
    if process.returncode is None:  # also where the system could not make a tree of it
        process.kill()
        await _exited(process, graces.kill)
    await WATCH.release(child.pid)
    if process.returncode is None:
        return False
    await process.aclose()
    return True


async def _exited(process: Process, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await process.wait()


async def _end_tree(child: Child, graces: Graces) -> None:
    if not child.tree.terminate():
        return
    grace = graces.terminate if child.process.returncode is None else ORPHAN_GRACE
    for _ in range(round(grace / _PROBE)):
        await anyio.sleep(_PROBE)
        if not child.tree.is_alive():
            return
    child.tree.kill()
