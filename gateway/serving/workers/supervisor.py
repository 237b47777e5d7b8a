"""The workers of one machine: started, watched, started again when one has ended, and stopped together."""

import json
import logging
import math
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process

from gateway.core.model.json_values import as_object
from gateway.serving.workers.worker import WorkerPlan
from gateway.system.processes import start_process

logger = logging.getLogger(__name__)

START_SECONDS = 90.0
"""Time for a worker to answer requests. It does not wait for its upstreams."""
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a worker is started again: longer each time that it ends soon."""
_STEADY_SECONDS = 60.0
"""A worker that has served for so long is started again without delay."""
_ENDING_SECONDS = 15.0
"""Time for a worker to end at once, with its upstreams, before it is killed."""
_LONGEST_LINE = 64 * 1024


@dataclass
class WorkerProcess:
    """A worker that runs. `started` is in seconds since 1970; `is_serving` and `is_ready` are as it has said."""

    number: int
    process: Process
    started: float
    is_serving: bool = False
    is_ready: bool = False
    said_all: anyio.Event = field(default_factory=anyio.Event)
    """Set at the end of its stderr."""

    @property
    def state(self) -> str:
        """Its state in a word."""
        return "ready" if self.is_ready else "serving" if self.is_serving else "starting"


class Supervisor:
    """Runs workers: `command` starts one; `plan_for` makes its plan, of its number and whether all have been ready.

    `on_line` is called with each line that a worker writes to stderr; `on_serving` once, when all answer requests.
    """

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        plan_for: Callable[[int, bool], WorkerPlan],
        on_line: Callable[[str], None],
        on_serving: Callable[[], None],
        *,
        start_seconds: float = START_SECONDS,
        pauses: Sequence[float] = _PAUSES,
    ) -> None:
        self._count = count
        self._command = command
        self._plan_for = plan_for
        self._on_line = on_line
        self._on_serving = on_serving
        self._start_seconds = start_seconds
        self._pauses = pauses
        self.running: dict[int, WorkerProcess] = {}
        """The workers that run, by number."""
        self.on_login: Callable[[int, Mapping[str, Any]], Awaitable[None]] = _unheard
        """Called with the number of a worker and the login (upstream, principal) that a browser has completed at it."""
        self.restarts = 0
        self.all_ready = False
        self._have_served: set[int] = set()
        self._have_been_ready: set[int] = set()
        self._first_serves = anyio.Event()
        self._stopping = anyio.Event()
        self._failed: int | None = None
        self._scope = anyio.CancelScope()

    async def run(self) -> int:
        """Run the workers until `stop`; return the exit code: not 0 if one could not be started at the beginning.

        If this is cancelled, the workers end at once.
        """
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._keep, 1)
                    await self._first_serves.wait()  # what keeps the first from it need not be said by all
                    for number in range(2, self._count + 1):
                        tasks.start_soon(self._keep, number)
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_now()
        return self._failed or 0

    def stop(self) -> bool:
        """Let the workers answer what they have been asked, and end; false if they have been told before."""
        if self._stopping.is_set():
            return False
        self._stopping.set()
        logger.info("stopping %d workers", len(self.running))
        for worker in self.running.values():
            _signal(worker.process, signal.SIGTERM)
        if not self._have_served:
            self._scope.cancel()
        return True

    async def _keep(self, number: int) -> None:
        """Start a worker, and again whenever it has ended."""
        soon_ended = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                code = await self._run_one(number)
            except OSError as error:
                self._on_line(f"worker {number} cannot be started: {error.strerror or error}")
                code = 1
            if self._stopping.is_set():
                return
            if not self.all_ready and number not in self._have_served:
                self._fail(number, code)
                return
            soon_ended = 0 if time.monotonic() - began >= _STEADY_SECONDS else soon_ended + 1
            pause = self._pauses[min(soon_ended, len(self._pauses)) - 1] if soon_ended else 0.0
            logger.error("worker %d %s: it is started again in %g s", number, how_ended(code), pause)
            self.restarts += 1
            with anyio.move_on_after(pause):
                await self._stopping.wait()

    def _fail(self, number: int, code: int) -> None:
        logger.error("worker %d %s before it could serve, so the gateway ends", number, how_ended(code))
        self._failed = code if code > 0 else 1
        self._scope.cancel()

    async def _run_one(self, number: int) -> int:
        """Run a worker to its end and return its exit code."""
        plan = self._plan_for(number, self.all_ready)
        process = await start_process(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(plan.descriptor,),
            start_new_session=True,  # Ctrl-C is for the supervisor, which tells the workers
        )
        worker = self.running[number] = WorkerProcess(number, process, time.time())
        plan = replace(plan, all_ready=self.all_ready)
        if self._stopping.is_set():  # while it was being started, when nobody could tell it
            _signal(process, signal.SIGTERM)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            with suppress(anyio.BrokenResourceError):  # it has ended, and its code says why
                await process.stdin.send(plan.line())
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_lines, worker, process.stderr)
                tasks.start_soon(self._hear, worker, process.stdout)
                tasks.start_soon(self._expect, worker)
                await process.wait()
                with anyio.move_on_after(1.0):  # what it has left behind may hold its stderr open
                    await worker.said_all.wait()
                tasks.cancel_scope.cancel()
            return await process.wait()
        finally:
            if process.returncode is not None:
                del self.running[number]
                with anyio.CancelScope(shield=True):
                    await process.aclose()

    async def _expect(self, worker: WorkerProcess) -> None:
        """Kill a worker that does not answer requests in time."""
        await anyio.sleep(self._start_seconds)
        if not worker.is_serving:
            logger.error("worker %d has not served within %g s: it is ended", worker.number, self._start_seconds)
            _signal(worker.process, signal.SIGKILL)

    async def _read_lines(self, worker: WorkerProcess, stream: ByteReceiveStream) -> None:
        async for line in _lines(stream):
            self._on_line(line.decode("utf-8", "backslashreplace"))
        worker.said_all.set()

    async def _hear(self, worker: WorkerProcess, stream: ByteReceiveStream) -> None:
        async for line in _lines(stream):
            with suppress(ValueError):
                said = as_object(json.loads(line))
                worker.is_serving = worker.is_serving or said.get("serving") is True
                worker.is_ready = worker.is_ready or said.get("ready") is True
                await self._note(worker)
                if login := as_object(said.get("login")):
                    await self.on_login(worker.number, login)

    async def _note(self, worker: WorkerProcess) -> None:
        if worker.is_serving and worker.number not in self._have_served:
            self._have_served.add(worker.number)
            self._first_serves.set()
            if len(self._have_served) == self._count:
                self._on_serving()
        if worker.is_ready:
            self._have_been_ready.add(worker.number)
        if not self.all_ready and len(self._have_been_ready) == self._count:
            self.all_ready = True
            for one in tuple(self.running.values()):
                assert one.process.stdin is not None
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await one.process.stdin.send(b'{"all_ready": true}\n')

    async def _end_now(self) -> None:
        """End the workers that still run: by the signal that ends them at once, and then by force."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            for worker in self.running.values():
                _signal(worker.process, number)
            with anyio.move_on_after(_ENDING_SECONDS / 2 if number != signal.SIGKILL else math.inf):
                for worker in tuple(self.running.values()):
                    await worker.process.wait()
                return


async def _unheard(number: int, login: Mapping[str, Any]) -> None:
    """Hear of a login, and do nothing."""


def how_ended(code: int) -> str:
    """Say how a process has ended."""
    if code >= 0:
        return f"has ended with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


async def _lines(stream: ByteReceiveStream) -> AsyncGenerator[bytes]:
    """Yield lines without their ends; what is longer is cut into pieces."""
    rest = b""
    while True:
        try:
            rest += await stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            break
        *complete, rest = rest.split(b"\n")
        for line in complete:
            yield line
        if len(rest) > _LONGEST_LINE:
            yield rest
            rest = b""
    if rest:
        yield rest
