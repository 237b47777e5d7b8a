"""Running a command for its output: bounded in size and time, and nothing of it is left running."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_REAP_SECONDS = 5.0
"""Seconds for a killed process to disappear; one of another user (`sudo`) cannot be killed, and is left behind."""


def command_output(
    words: Sequence[str], folder: Path, environ: Mapping[str, str], *, seconds: float, most: int
) -> tuple[int, bytes]:
    """Return the exit code of a command and what it wrote to stdout: more than `most` bytes are cut to `most` + 1.

    It has no stdin and no terminal. When it has ended, so have the processes that it started in the background (on
    Windows, only the command itself is ended).

    Raises:
        TimeoutError: it did not end, or its output did not, within `seconds`.
        OSError, ValueError: it cannot be run.
    """
    deadline = time.monotonic() + seconds
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=dict(environ),
        start_new_session=sys.platform != "win32",
    )
    assert process.stdout is not None
    output = bytearray()
    reader = threading.Thread(target=_collect, args=(process.stdout, output, most), name="secret", daemon=True)
    reader.start()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        _end(process)
    # Nothing of the process group holds stdout any more, but a daemon that left the group may.
    reader.join(max(0.0, deadline - time.monotonic()))
    if reader.is_alive():
        raise TimeoutError
    return code, bytes(output)


def _collect(stdout: IO[bytes], output: bytearray, most: int) -> None:
    with stdout:  # closing it ends a command that writes on and on
        output += stdout.read(most + 1)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)
