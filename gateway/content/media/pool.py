"""The pool of media workers: started on demand, reused, killed when over a limit, stopped when idle."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from gateway.admission.fair_queue import FairQueue, NoSeat, WhyNot
from gateway.config.content_settings import MediaSettings
from gateway.content.media.frames import WorkerJob
from gateway.content.media.process import Worker, WorkerEnded, WorkerReply
from gateway.content.media.share import Share, current_share
from gateway.errors import MediaError

IDLE_SECONDS = 60.0
"""How long an idle worker is kept."""

PATIENCE_SECONDS = 600.0
"""How long a job may wait for a worker; callers mostly give up earlier."""

JOBS_PER_WORKER = 500
"""The number of jobs after which a worker is replaced, so that memory leaked by decoders does not add up."""

_OWN_ALARM_GRACE = 5.0


class TookTooLong(MediaError):
    """A job exceeded its time, and its worker was killed."""


class WorkedTooLong(TookTooLong):
    """The media of one result have used up their time."""


class WorkerLost(MediaError):
    """A worker ended during its job."""


class Pool:
    """Does media work in `settings.workers` processes, each job within the settings' limits.

    Callers (`gateway.content.media.share`) take turns in a fair order; a caller that has no job running while all
    processes are busy gets an extra one. The pool is an async context manager; leaving it ends every worker. An idle
    worker is kept for `idle` seconds, and a job may wait for its turn for `patience` seconds; its own time counts from
    its start in a worker. At most `most_waiting` jobs wait, and none is begun while `is_short` says that memory is. The
    default settings are those of a gateway without configuration.
    """

    def __init__(
        self,
        settings: MediaSettings | None = None,
        *,
        idle: float = IDLE_SECONDS,
        patience: float = PATIENCE_SECONDS,
        most_waiting: int | None = None,
        is_short: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings = settings or MediaSettings()
        self._patience = patience
        self._idle_seconds = idle
        self._turns = FairQueue(settings.workers, most_waiting=most_waiting)
        self._is_short = is_short
        self._workers: dict[Worker, int] = {}
        """The running workers, and how many jobs each has done."""
        self._idle: list[Worker] = []
        """The workers without a job, the longest idle first."""
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
        # Errors of the body are kept from the task group, which would wrap them in an ExceptionGroup.
        if isinstance(error, anyio.get_cancelled_exc_class()):
            await tasks.__aexit__(kind, error, trace)
        else:
            await tasks.__aexit__(None, None, None)

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the running workers."""
        return frozenset(worker.pid for worker in self._workers if worker.alive)

    @property
    def waiting(self) -> int:
        """How many jobs wait for a worker."""
        return self._turns.waiting

    async def do(self, operation: str, content: bytes, media_type: str, options: Mapping[str, Any]) -> WorkerReply:
        """Return a worker's answer to the job. Raises MediaError if it fails. Cancelling the call kills the worker."""
        if self._tasks is None:
            raise MediaError("the media workers are not running")
        if self._is_short():
            raise MediaError("the gateway is short of memory", remedy="try again when it has less to do")
        share = current_share() or Share("")
        try:
            await self._turns.take(share.caller, self._patience)
        except NoSeat as no:
            raise _not_done(no.why, self._patience) from None
        try:
            left = self._left(share)
            answer = await self._do(
                WorkerJob(operation, content, media_type, options, left + _OWN_ALARM_GRACE), share, left
            )
        finally:
            self._turns.give_back(share.caller)
        if error := answer.header.get("error"):
            remedy = answer.header.get("remedy")
            raise MediaError(str(error)[:500], remedy=str(remedy)[:500] if remedy else None)
        return answer

    def _left(self, share: Share) -> float:
        """Return how many seconds a job may take. Raises WorkedTooLong if its result has used up its time."""
        if not share.is_result:
            return self._settings.timeout
        left = min(self._settings.timeout, self._settings.result_timeout - share.seconds)
        if left <= 0:
            raise _out_of_time(self._settings)
        return left

    async def _do(self, job: WorkerJob, share: Share, seconds: float) -> WorkerReply:
        worker = await self._take()
        answer: WorkerReply | None = None
        began = anyio.current_time()
        try:
            with anyio.move_on_after(seconds):
                answer = await worker.ask(job)
        except WorkerEnded as error:
            raise WorkerLost(f"it could not be decoded: {error}") from error
        finally:
            share.seconds += anyio.current_time() - began
            if answer is None:
                await self._end(worker)
        if answer is None and seconds < self._settings.timeout:
            raise _out_of_time(self._settings)
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


def _not_done(why: WhyNot, patience: float) -> MediaError:
    if why is WhyNot.LATE:
        return MediaError(f"no worker was free for it within {patience:g} s")
    return MediaError("too many other jobs wait for the media workers", remedy="try again when they have less to do")


def _out_of_time(settings: MediaSettings) -> WorkedTooLong:
    words = f"the media of this result took longer than {settings.result_timeout:g} s altogether"
    return WorkedTooLong(words, remedy="see media.result_timeout")
