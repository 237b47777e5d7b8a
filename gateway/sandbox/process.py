"""The gateway's side of the process of one script: start it, talk to it, end it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from json import JSONDecodeError, loads
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.core.model.json_values import as_object
from gateway.sandbox.messages import LARGEST, LENGTH, pack
from gateway.system.processes import python_environment, start_process

_END_SECONDS = 1.0
"""How long a process may take to end the interpreter and itself before it is killed."""
_REAP_SECONDS = 10.0
_LARGE = 256 * 1024
"""Bytes of a message that is read in a thread."""


class ProcessEnded(Exception):
    """The process ended, or sent nonsense, before the script had ended. `code` is the exit code if it is known."""

    def __init__(self, words: str, code: int | None = None) -> None:
        super().__init__(words)
        self.code = code


class ScriptProcess:
    """A running process. Whoever starts it must `end` it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._sending = anyio.Lock()

    @classmethod
    async def start(cls) -> "ScriptProcess":
        """Start a process, in a group of its own.

        Raises:
            OSError: it cannot be started.
        """
        # -P: the current folder must not be searched; a `gateway` in it is not ours.
        command = [sys.executable, "-P", "-m", "gateway.sandbox.worker"]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
        }
        return cls(await start_process(command, **pipes, env=python_environment(), start_new_session=True))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it is not known to have ended."""
        return self._process.returncode is None

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. To a process that has ended, nothing is sent."""
        packed = await to_thread.run_sync(pack, message)
        async with self._sending:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._stdin.send(packed)

    async def receive(self) -> Mapping[str, Any]:
        """Return the next message.

        Raises:
            ProcessEnded: there is none.
        """
        try:
            (size,) = LENGTH.unpack(await self._stdout.receive_exactly(LENGTH.size))
            if size > LARGEST:
                raise ProcessEnded(f"its process sent a message of {size:,} bytes")
            encoded = await self._stdout.receive_exactly(size)
            return as_object(loads(encoded) if size < _LARGE else await to_thread.run_sync(loads, encoded))
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise await self._ended() from error
        except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProcessEnded("its process sent something that is not JSON") from error

    async def _ended(self) -> ProcessEnded:
        """Return how the process ended. It has closed its streams, so it has ended or is about to."""
        with anyio.move_on_after(_REAP_SECONDS):
            code = await self._process.wait()
            return ProcessEnded(f"its process ended with exit code {code}", code)
        return ProcessEnded("its process closed its streams")

    async def end(self) -> None:
        """End the process and the interpreter, and wait until they are gone."""
        with anyio.move_on_after(_REAP_SECONDS, shield=True):
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._stdin.aclose()  # it ends the interpreter, then itself
            with anyio.move_on_after(_END_SECONDS):
                await self._process.wait()
            self._kill()
            await self._process.aclose()

    def _kill(self) -> None:
        """Kill what is left: both processes, or the interpreter of a process that was killed by others."""
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform != "win32":
                # No other process gets the id of the group while one of its members is there.
                os.killpg(self._process.pid, signal.SIGKILL)
            elif self._process.returncode is None:
                self._process.kill()
