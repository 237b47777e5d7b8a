"""The pool of media workers: started when first needed, reused, killed when over a limit, stopped when idle."""

from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from gateway.config.schema import MediaSettings
from gateway.core.model.effects import Crop, Fitted, ImageTarget
from gateway.core.model.media_types import HEAD_BYTES, PixelSize, inspect, normalise
from gateway.errors import MediaError
from gateway.media.frames import Job
from gateway.media.process import Answer, Worker, WorkerEnded

IDLE_SECONDS = 60.0
"""How long a worker without work is kept."""

JOBS_PER_WORKER = 500
"""After so many jobs a worker is replaced, so that what decoders leak does not add up."""

_OWN_ALARM_GRACE = 5.0
_SVG = "image/svg+xml"
READABLE = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/avif", _SVG}
)
"""The types that can be decoded."""


class MediaWorkers:
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

    async def __aenter__(self) -> "MediaWorkers":
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

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None) -> Fitted:
        """`content` as an image that `target` takes: cropped, turned upright, scaled down, converted, rasterized.

        What `content` is, is read from its bytes; the declared `media_type` counts only where they do not tell. An
        image that is as `target` wants it comes back byte for byte, once it has been decoded. `crop` is in pixels of
        the original, and what of it lies outside of the image is cut off. Raises MediaError when the image is over a
        limit, broken, of a type that cannot be read, or cannot be made to fit. Cancelling this kills the worker.
        """
        if self._tasks is None:
            raise MediaError("the media workers are not running")
        settings = self._settings
        if len(content) > settings.max_input_bytes:
            raise MediaError(
                f"it has {len(content):,} bytes, more than the limit of {settings.max_input_bytes:,}",
                remedy="see media.max_input_bytes",
            )
        really = _checked(content, media_type, settings.max_pixels)
        job = Job(content, really, target, crop, settings.timeout + _OWN_ALARM_GRACE)
        async with self._turns:
            answer = await self._do(job)
        return _fitted(answer)

    async def _do(self, job: Job) -> Answer:
        worker = await self._take()
        answer: Answer | None = None
        try:
            with anyio.move_on_after(self._settings.timeout):
                answer = await worker.ask(job)
        except WorkerEnded as error:
            raise MediaError(f"it could not be decoded: {error}") from error
        finally:
            if answer is None:
                await self._end(worker)
        if answer is None:
            raise MediaError(f"it took longer than {self._settings.timeout:g} s", remedy="see media.timeout")
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


def _checked(content: bytes, declared: str, max_pixels: int) -> str:
    """The type that `content` really has, once the header has been judged; costs no decoding and no worker."""
    finding = inspect(content[:HEAD_BYTES])
    really = finding.media_type or normalise(declared)
    if really == "application/gzip" and normalise(declared) == _SVG:
        really = _SVG
    if really not in READABLE:
        raise MediaError(f"{really or 'content of an unknown type'} cannot be read as an image")
    # A vector graphic has no pixels until it is drawn, at a size that is bounded there.
    if finding.size and really != _SVG and finding.size.width * finding.size.height > max_pixels:
        raise MediaError(
            f"it has {finding.size.width:,} x {finding.size.height:,} pixels, more than the limit of {max_pixels:,}",
            remedy="see media.max_pixels",
        )
    return really


def _fitted(answer: Answer) -> Fitted:
    header = answer.header
    if error := header.get("error"):
        raise MediaError(str(error)[:500])
    try:
        pixels, original = (PixelSize(*map(int, header[key])) for key in ("pixels", "original"))
        return Fitted(answer.body.decode("ascii"), str(header["media_type"]), pixels, original)
    except (KeyError, TypeError, ValueError) as broken:
        raise MediaError("its worker answered with something that is no image") from broken
