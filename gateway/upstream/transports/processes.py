"""Child processes: start each as a tree of its own, and end it with everything it started, in bounded time."""

import logging
import os
import subprocess
from dataclasses import dataclass

import anyio
from anyio.abc import Process

from gateway.config.upstream_settings import UpstreamSettings
from gateway.system.processes import start_process
from gateway.upstream.transports.environment import HELD_BACK, environment, held_back
from gateway.upstream.transports.platforms import Tree, command_line, exit_words, spawn_options, tree_of
from gateway.upstream.transports.process_reaper import WATCH

__all__ = ["GENTLE", "HURRIED", "LEISURELY", "Child", "Graces", "end", "exit_words", "settled", "spawn"]


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Graces:
    """Seconds for a process to end: after its input was closed, after SIGTERM, and after SIGKILL."""

    close: float
    terminate: float
    kill: float


LEISURELY = Graces(close=2.0, terminate=1.5, kill=5.0)
"""For a gateway that keeps running: idle upstreams, changed settings."""

HURRIED = Graces(close=0.4, terminate=0.5, kill=1.0)
"""For a gateway that ends: hosts give it two seconds for everything (the official Python SDK) before they kill it."""

GENTLE = Graces(close=0.4, terminate=10.0, kill=1.0)
"""For a launcher that may be installing: asked to end, it cleans up (npm does, on SIGTERM), while killing it may leave
its cache broken. If a host does not wait that long and kills the gateway, the process reaper gives it the same time
(`process_reaper.GENTLE_SECONDS`).
"""

ORPHAN_GRACE = 0.3
"""Seconds to end after SIGTERM for processes that outlived their parent."""

_PROBE = 0.02


@dataclass(frozen=True)
class Child:
    """An upstream's process, with pipes on its three standard streams, and its descendants."""

    process: Process
    tree: Tree

    @property
    def pid(self) -> int:
        """The id of the process and, on POSIX, of its group."""
        return self.process.pid


async def spawn(settings: UpstreamSettings, *, gently: bool = False) -> Child:
    """Start the upstream's command as a tree of its own, with pipes on its three standard streams.

    `gently` means that it may be installing, until `settled` is called.

    Raises OSError if it cannot be started.
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
    """Record that the child has finished installing."""
    WATCH.guard(child.pid)


async def end(child: Child, graces: Graces) -> bool:
    """End a process and its tree: close its input, wait, SIGTERM, wait, SIGKILL. Return False if it survived that.

    Takes at most the sum of the graces. Its output must be read meanwhile, or it may block on a full pipe.
    """
    process = child.process
    if process.stdin is not None:
        await process.stdin.aclose()
    await _exited(process, graces.close)
    await _end_tree(child, graces)
    child.tree.close()
    if process.returncode is None:  # even if the system could not make it a tree
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
    if graces is GENTLE:  # first, so that it is not asked a second time if the gateway is killed right after
        WATCH.asked(child.pid)
    if not child.tree.terminate():
        return
    grace = graces.terminate if child.process.returncode is None else ORPHAN_GRACE
    for _ in range(round(grace / _PROBE)):
        await anyio.sleep(_PROBE)
        if not child.tree.is_alive():
            return
    child.tree.kill()
