"""The pool of media workers: started when first needed, reused, killed when over a limit, stopped when idle."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from gateway.config.schema import MediaSettings
from gateway.errors import MediaError
from gateway.media.frames import Job
from gateway.media.process import Answer, Worker, WorkerEnded

IDLE_SECONDS = 60.0
"""How long a worker without work is kept."""

JOBS_PER_WORKER = 500
"""After so many jobs a worker is replaced, so that what decoders leak does not add up."""

_OWN_ALARM_GRACE = 5.0


class TookTooLong(MediaError):
    """A job was over its time, and its worker was killed."""


class WorkerLost(MediaError):
    """A job ended its worker."""


class Pool:
    """Does media work in at most `settings.workers` processes, each job within the settings' limits.

    An async context manager; leaving it ends every worker. `idle` is how many seconds a worker without work is kept.
    """

    def __init__(self, settings: MediaSettings, *, idle: float = IDLE_SECONDS) -> None:
        self._settings = settings
        self._idle_seconds = idle
        self._turns = anyio.Semaphore(settings.workers)
        self._workers: dict[Worker, int] = {}
        """The living workers, and how many jobs each has done."""
        self._idle: list[Worker] = []
        """Those of them without a job, the longest idle first."""
        self._parked = anyio.Event()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        tasks.start_soon(self._stop_idle)
        self._tasks = tasks
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        tasks, self._tasks = self._tasks, None
        for worker in tuple(self._workers):
            await self._end(worker)
        tasks.cancel_scope.cancel()
        # Errors of the body are not the group's: they leave as they are, not wrapped in an ExceptionGroup.
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await tasks.__aexit__(kind, error, trace)
        else:
            await tasks.__aexit__(None, None, None)

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the workers that are running now."""
        return frozenset(worker.pid for worker in self._workers if worker.alive)

    async def do(self, operation: str, content: bytes, media_type: str, options: Mapping[str, Any]) -> Answer:
        """What a worker answers to the job. Raises MediaError when it cannot do it. Cancelled, it kills the worker."""
        if self._tasks is None:
            raise MediaError("the media workers are not running")
        job = Job(operation, content, media_type, options, self._settings.timeout + _OWN_ALARM_GRACE)
        async with self._turns:
            answer = await self._do(job)
        if error := answer.header.get("error"):
            remedy = answer.header.get("remedy")
            raise MediaError(str(error)[:500], remedy=str(remedy)[:500] if remedy else None)
        return answer

    async def _do(self, job: Job) -> Answer:
        worker = await self._take()
        answer: Answer | None = None
        try:
            with anyio.move_on_after(self._settings.timeout):
                answer = await worker.ask(job)
        except WorkerEnded as error:
            raise WorkerLost(f"it could not be decoded: {error}") from error
        finally:
            if answer is None:
                await self._end(worker)
        if answer is None:
            raise TookTooLong(f"it took longer than {self._settings.timeout:g} s", remedy="see media.timeout")
        await self._give_back(worker, last=bool(answer.header.get("last")))
        return answer

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            await self._end(worker)
        worker = await Worker.start(self._settings)
        self._workers[worker] = 0
        if self._tasks is None:
            await self._end(worker)
            raise MediaError("the media workers were stopped")
        return worker

    async def _give_back(self, worker: Worker, *, last: bool) -> None:
        done = self._workers.get(worker, 0) + 1
        if last or self._tasks is None or done >= JOBS_PER_WORKER:
            await self._end(worker)
            return
        self._workers[worker] = done
        worker.idle_since = anyio.current_time()
        self._idle.append(worker)
        self._parked.set()

    async def _end(self, worker: Worker) -> None:
        if worker in self._idle:
            self._idle.remove(worker)
        await worker.kill()
        self._workers.pop(worker, None)

    async def _stop_idle(self) -> None:
        while True:
            if not self._idle:
                self._parked = anyio.Event()
                await self._parked.wait()
                continue
            longest = self._idle[0]
            due = longest.idle_since + self._idle_seconds
            if due > anyio.current_time():
                await anyio.sleep_until(due)
            else:
                await self._end(longest)
