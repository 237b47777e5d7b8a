"""The gateway's side of one worker process: start it, send it jobs, kill it."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from json import JSONDecodeError, loads
from typing import Any, NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.config.content_settings import MediaSettings
from gateway.content.media.frames import LARGEST_BODY, LARGEST_HEADER, PREFIX, READY, WorkerJob, pack_job
from gateway.errors import MediaError
from gateway.system.processes import python_environment, start_process

START_SECONDS = 60.0
"""How long a worker may take to start: far more than it needs, for busy machines."""

_REAP_SECONDS = 10.0
_PIECE = 1024 * 1024


class WorkerReply(NamedTuple):
    """A frame from a worker: its header and its body."""

    header: Mapping[str, Any]
    body: bytes


class WorkerEnded(Exception):
    """The worker process ended or sent nonsense before it had answered; the text is the cause."""


class Worker:
    """A running worker. It has one job at a time; a caller that gets no answer must `kill` it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self.idle_since = 0.0
        """When the last job ended, on the event loop's clock."""

    @classmethod
    async def start(cls, settings: MediaSettings) -> "Worker":
        """Start a worker and wait until it is ready. Raises MediaError with the cause if that fails."""
        try:
            process = await start_process(
                _command(settings),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=python_environment(),
            )
        except OSError as error:
            raise MediaError(f"no media worker could be started: {error}") from error
        worker = cls(process)
        cause: str | None = f"it was not ready within {START_SECONDS:g} s"
        try:
            with anyio.move_on_after(START_SECONDS):
                header = (await worker._receive()).header
                cause = None if header == READY else str(header.get("error"))
        except WorkerEnded as error:
            cause = str(error)
        except BaseException:
            await worker.kill()
            raise
        if cause is not None:
            await worker.kill()
            raise MediaError(f"no media worker could be started: {cause}", remedy="see media.memory_bytes")
        return worker

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is running, as far as is known."""
        return self._process.returncode is None

    async def ask(self, job: WorkerJob) -> WorkerReply:
        """Send a job and return the answer. Raises WorkerEnded if the process ends before it has answered."""
        try:
            await self._stdin.send(pack_job(job))
            # In pieces: a single write would be copied whole into the transport's buffer.
            for start in range(0, len(job.content), _PIECE):
                await self._stdin.send(job.content[start : start + _PIECE])
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise WorkerEnded(await self._cause()) from error
        return await self._receive()

    async def kill(self) -> None:
        """Kill the process and wait until it is gone."""
        with anyio.move_on_after(_REAP_SECONDS, shield=True):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.aclose()

    async def _receive(self) -> WorkerReply:
        try:
            header_size, body_size = PREFIX.unpack(await self._stdout.receive_exactly(PREFIX.size))
            if header_size > LARGEST_HEADER or body_size > LARGEST_BODY:
                raise WorkerEnded("its worker sent a message that is too large")
            header = loads(await self._stdout.receive_exactly(header_size))
            return WorkerReply(header, await self._stdout.receive_exactly(body_size))
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise WorkerEnded(await self._cause()) from error
        except (JSONDecodeError, UnicodeDecodeError) as error:
            raise WorkerEnded("its worker answered with something that is not JSON") from error

    async def _cause(self) -> str:
        """Return why the process ended. It has closed its streams, so it has ended or is about to."""
        with anyio.move_on_after(_REAP_SECONDS):
            code = await self._process.wait()
            if code >= 0:
                return f"its worker ended with exit code {code}"
            with suppress(ValueError):
                return f"its worker was ended by {signal.Signals(-code).name}"
            return f"its worker was ended by signal {-code}"
        return "its worker closed its streams"


def _command(settings: MediaSettings) -> list[str]:
    # -P: the current folder must not be searched; a `gateway` or a `PIL` in it is not ours.
    limits = [str(settings.memory_bytes), str(settings.max_pixels)]
    return [sys.executable, "-P", "-m", "gateway.content.media.worker", *limits]
