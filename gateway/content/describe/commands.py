"""Describe content with a program: content on its standard input, the type in its environment, text as output."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from gateway.core.fact_words import plain
from gateway.errors import MediaError
from gateway.system.processes import start_process

TYPE_VARIABLE = "MCP_GATEWAY_MEDIA_TYPE"
"""The environment variable with the media type of the content on standard input."""

_MOST_OUTPUT = 1024 * 1024
_MOST_COMPLAINTS = 64 * 1024
_SHOWN = 200
_REAP_SECONDS = 5.0


async def describe_with_command(command: Sequence[str], content: bytes, media_type: str) -> str:
    """Return the output of the program. If the call is cancelled, the program and its process group are killed.

    The program runs with the gateway's own environment, which belongs to the person who configured it.

    Raises:
        MediaError: the program cannot be started, fails, or writes too much for a description.
    """
    process = await _started(command, {**os.environ, TYPE_VARIABLE: media_type})
    said, complained = bytearray(), bytearray()
    is_whole = False
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process.stdin, content)
            tasks.start_soon(_drain, process.stderr, complained)
            is_whole = await _collect(process.stdout, said, _MOST_OUTPUT)
            if not is_whole:
                tasks.cancel_scope.cancel()
        if not is_whole:
            raise MediaError(f"{plain(command[0], 60)} wrote more than {_MOST_OUTPUT:,} bytes")
        code = await process.wait()
    finally:
        await _end(process)
    if code != 0:
        why = plain(complained.decode("utf-8", "replace"), _SHOWN)
        raise MediaError(f"{plain(command[0], 60)} ended with exit code {code}{': ' + why if why else ''}")
    return said.decode("utf-8", "replace")


async def _started(command: Sequence[str], env: Mapping[str, str]) -> Process:
    try:
        return await start_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=sys.platform != "win32",
        )
    except OSError as error:
        words = (error.strerror or "unknown cause").lower()
        raise MediaError(f"{plain(command[0], 60)} could not be started: {words}") from error


async def _feed(stdin: ByteSendStream | None, content: bytes) -> None:
    assert stdin is not None
    # The program need not read all of its input, or any of it.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stdin.send(content)
    with suppress(OSError):
        await stdin.aclose()


async def _collect(stream: ByteReceiveStream | None, into: bytearray, most: int) -> bool:
    """Read to the end. Return False as soon as there are more than `most` bytes."""
    assert stream is not None
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while len(into) <= most:
            into += await stream.receive()
        return False
    return True


async def _drain(stream: ByteReceiveStream | None, into: bytearray) -> None:
    """Read to the end and keep the beginning: a program whose errors nobody reads would block forever."""
    assert stream is not None
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            chunk = await stream.receive()
            into += chunk[: max(0, _MOST_COMPLAINTS - len(into))]


async def _end(process: Process) -> None:
    with anyio.move_on_after(_REAP_SECONDS, shield=True):
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()
