"""Processes that the demo starts, and ends with itself."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import anyio
from anyio.abc import Process

from gateway.system.processes import start_process

START_SECONDS = 60.0
STOP_SECONDS = 8.0
TAIL_CHARS = 2_000


class CannotStart(Exception):
    """A process of the demo ended, or did not open its port in time. The message has the end of its stderr."""


@asynccontextmanager
async def http_process(
    name: str, command: Sequence[str], *, port: int, variables: Mapping[str, str], folder: Path
) -> AsyncGenerator[None]:
    """Run `command` until the block is left. The block is entered once `port` of the loopback address is open.

    Raises:
        CannotStart: it ended, or did not open the port within START_SECONDS.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = await start_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=folder,
            env={**os.environ, **variables},
            start_new_session=os.name == "posix",
        )
        try:
            await _opened(name, process, port, errors)
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)


async def _opened(name: str, process: Process, port: int, errors: TextIO) -> None:
    with anyio.move_on_after(START_SECONDS):
        while process.returncode is None:
            with contextlib.suppress(OSError):
                stream = await anyio.connect_tcp("127.0.0.1", port)
                await stream.aclose()
                return
            await anyio.sleep(0.05)
    state = "opened no port" if process.returncode is None else f"ended with code {process.returncode}"
    raise CannotStart(f"{name} {state}\n{last_stderr_lines(errors)}".rstrip())


async def _stop(process: Process) -> None:
    """End the process gracefully, then by force, with everything that it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(STOP_SECONDS):
            await process.wait()
    if os.name == "posix":
        # The process leads a group of its own, so processes that it left behind are still in that group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    await process.aclose()


def last_stderr_lines(errors: TextIO) -> str:
    """Return the last lines that a process wrote to stderr."""
    errors.flush()
    errors.seek(0)
    return errors.read()[-TAIL_CHARS:].strip()
