"""Who may begin: requests take turns for a limited number of places, and are refused before anything is lost."""

import logging
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from types import TracebackType
from typing import Literal, TypeAlias

from gateway.admission.capacity import Capacity, capacity
from gateway.admission.fair_queue import FairQueue, NoSeat, WhyNot
from gateway.admission.pressure import BIG_BYTES, MemoryLevel, Pressure
from gateway.config.overload_settings import OverloadSettings
from gateway.core.fact_words import size_words
from gateway.errors import Overloaded
from gateway.system.background_tasks import background_tasks

Reason: TypeAlias = Literal["full", "share", "late", "memory", "large"]
"""Why a request is refused: the queue is full, or full of its caller's own, or slow; memory is short, or its size."""

REASONS: tuple[Reason, ...] = ("full", "share", "late", "memory", "large")

_FEWEST = 16
_SHRINKING = 0.75
_GROWING = 16
_NEWEST = 0.05
"""Weight of the newest request in the average duration of all."""
_LONGEST_RETRY = 60
_PERIOD = 10.0
_WORDS = {
    WhyNot.FULL: "the gateway is at its limit: as many requests run and wait as it can take",
    WhyNot.SHARE: "the gateway is at its limit, and most of the requests that wait are yours",
    WhyNot.LATE: "the gateway is at its limit: the request did not get its turn in time",
}
_logger = logging.getLogger(__name__)


class Admission:
    """The admission of requests to one gateway: at most so many at once, fair to callers, none without memory.

    `refused` counts the refused ones by reason. While `running` is open, the pressure is measured.
    """

    def __init__(
        self, settings: OverloadSettings | None = None, pressure: Pressure | None = None, *, media_workers: int = 1
    ) -> None:
        self._settings = settings = settings or OverloadSettings()
        self._media_workers = media_workers
        self.pressure = pressure or Pressure(settings.memory)
        self.pressure.on_delay = self._delayed
        self.pressure.is_busy = lambda: self.running > 0
        self.capacity: Capacity = capacity(settings, media_workers)
        self._queue = FairQueue(self.capacity.calls, self.capacity.spare, self.capacity.queue)
        self.refused: dict[Reason, int] = dict.fromkeys(REASONS, 0)
        self._seconds = 0.1
        self._said = -math.inf
        self._unsaid = 0

    @property
    def running(self) -> int:
        """Number of requests that are worked on."""
        return self._queue.running

    @property
    def waiting(self) -> int:
        """Number of requests that wait for their turn."""
        return self._queue.waiting

    @property
    def places(self) -> int:
        """Number of requests that are worked on at once at present, without the spare places."""
        return self._queue.seats

    @property
    def retry_after(self) -> int:
        """Whole seconds after which those that run and wait now are probably done."""
        ahead = (self._queue.running + self._queue.waiting) / max(1, self._queue.seats)
        return max(1, min(_LONGEST_RETRY, math.ceil(ahead * self._seconds)))

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Measure the pressure inside the context."""
        async with background_tasks() as tasks:
            tasks.start_soon(self.pressure.watch)
            yield

    def reconfigure(self, settings: OverloadSettings) -> None:
        """Use other settings from now on, except for `memory`, and for the media queue."""
        self._settings = settings
        self.capacity = capacity(settings, self._media_workers)
        self._queue.most_waiting = self.capacity.queue
        self._queue.resize(self.capacity.calls, self.capacity.spare)

    def admit_now(self, caller: str) -> "Admitted | None":
        """Return a place, to be entered at once; None if one has to be waited for, or refused (`admit`)."""
        if self.pressure.level is MemoryLevel.CRITICAL or not self._queue.take_now(caller):
            return None
        return Admitted(self, caller)

    async def admit(self, caller: str) -> "Admitted":
        """Wait for the turn of a request of `caller`, and return its place, to be entered at once.

        Raises:
            Overloaded: memory is nearly used up, too many wait already, or it did not get its turn in time.
        """
        if self.pressure.level is MemoryLevel.CRITICAL:
            raise self._refusal("memory", "the gateway is short of memory")
        try:
            await self._queue.take(caller, self._settings.queue_time)
        except NoSeat as no:
            raise self._refusal(no.why.value, _WORDS[no.why], by_caller=no.why is WhyNot.SHARE) from None
        return Admitted(self, caller)

    def check_size(self, size: int | None) -> None:
        """Check whether a body of so many bytes may come in; None: their number is not known.

        Raises:
            Overloaded: memory is short, and it is too large for that.
        """
        if size is not None and size < BIG_BYTES:
            return
        self.pressure.look()  # what was last seen may be some seconds old
        if self.pressure.level is MemoryLevel.PLENTY:
            return
        what = "content of unknown size" if size is None else size_words(size)
        raise self._refusal("large", f"the gateway is short of memory, and takes no {what} for now")

    def left(self, caller: str, seconds: float) -> None:
        """Give back the place of a request that took so many seconds."""
        self._seconds += _NEWEST * (seconds - self._seconds)
        self._queue.give_back(caller)

    def _refusal(self, reason: Reason, words: str, *, by_caller: bool = False) -> Overloaded:
        self.refused[reason] += 1
        self._unsaid += 1
        if (now := monotonic()) - self._said >= _PERIOD:
            shown = "%s (%d refused since the last such line; %d run, %d wait)"
            _logger.warning(shown, words, self._unsaid, self.running, self.waiting)
            self._said, self._unsaid = now, 0
        return Overloaded(words, retry_after=self.retry_after, by_caller=by_caller)

    def _delayed(self, delay: float) -> None:
        """Work on fewer requests at once while the event loop is late, and on more again when it is not."""
        places, most = self._queue.seats, self.capacity.calls
        if delay > self._settings.max_delay:
            fewer = int(min(places, self._queue.running) * _SHRINKING)
            self._queue.resize(max(min(_FEWEST, most), min(places, fewer)))
        elif places < most and delay < self._settings.max_delay / 2:
            self._queue.resize(min(most, places + max(1, most // _GROWING)))


class Admitted:
    """The place of an admitted request: enter it while the request is worked on, also several times at once.

    It is given back when it has been left as often as entered.
    """

    def __init__(self, admission: Admission, caller: str) -> None:
        self._admission = admission
        self._caller = caller
        self._began = monotonic()
        self._users = 0
        self.is_over = False
        """Whether it has been given back."""

    def __enter__(self) -> None:
        self._users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if not self._users:
            self.is_over = True
            self._admission.left(self._caller, monotonic() - self._began)
