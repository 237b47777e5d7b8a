"""Child processes: started as a tree of their own, ended with everything that they started, in bounded time."""

import logging
import os
import subprocess
from dataclasses import dataclass

import anyio
from anyio.abc import Process

from gateway.config.schema import UpstreamSettings
from gateway.system.processes import start_process
from gateway.upstream.transports.environment import HELD_BACK, environment, held_back
from gateway.upstream.transports.platforms import Tree, command_line, exit_words, spawn_options, tree_of
from gateway.upstream.transports.process_reaper import WATCH

__all__ = ["GENTLE", "HURRIED", "LEISURELY", "Child", "Graces", "end", "exit_words", "settled", "spawn"]


logger = logging.getLogger(__name__)


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

GENTLE = Graces(close=0.4, terminate=10.0, kill=1.0)
"""For a launcher that may be installing: it takes back what it has half done when it is asked to end (npm does, on
SIGTERM), and a cache that it was killed in may stay broken. Where a host does not wait for that long and kills the
gateway, the watch over orphans leaves it as much (`orphans.GENTLE_SECONDS`).
"""

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


async def spawn(settings: UpstreamSettings, *, gently: bool = False) -> Child:
    """Start the upstream's command with pipes on its three standard streams, at the head of a tree of its own.

    `gently`: it may be installing, until `settled` is called.

    Raises OSError when it cannot be started.
    """
    child = environment(settings.env, os.environ)
    if gently and (names := held_back(settings.env, os.environ)):
        logger.warning("%s: not passed on to %r, since %s", ", ".join(names), settings.command, HELD_BACK)
    process = await start_process(
        command_line(settings.command or "", settings.args, child),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child,
        cwd=settings.cwd,
        **spawn_options(),
    )
    WATCH.guard(process.pid, gently=gently)
    return Child(process, tree_of(process.pid))


def settled(child: Child) -> None:
    """It runs, and installs nothing any more."""
    WATCH.guard(child.pid)


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
    if graces is GENTLE:  # said first: a gateway that is killed right after must not have it asked a second time
        WATCH.asked(child.pid)
    if not child.tree.terminate():
        return
    grace = graces.terminate if child.process.returncode is None else ORPHAN_GRACE
    for _ in range(round(grace / _PROBE)):
        await anyio.sleep(_PROBE)
        if not child.tree.is_alive():
            return
    child.tree.kill()
