"""How short memory and the event loop's time are, measured a few times a second while requests run."""

import logging
from collections.abc import Callable, Sequence
from enum import IntEnum

import anyio

from gateway.core.fact_words import size_words
from gateway.system.memory_limit import ControlGroup, MemoryUse, memory_uses

PERIOD = 0.25
"""Seconds between two looks at the event loop while requests run; memory is looked at every fourth time."""

IDLE_PERIOD = 5.0
"""Seconds between two looks while no request runs, so that an idle gateway hardly wakes up."""

BIG_BYTES = 1024 * 1024
"""Size from which the body of a request is big work."""

_LOOKS_PER_MEMORY = 4
_logger = logging.getLogger(__name__)


class MemoryLevel(IntEnum):
    """How short memory is: `SHORT`, big work is refused; `CRITICAL`, all new work."""

    PLENTY = 0
    SHORT = 1
    CRITICAL = 2


_ENTERED = {MemoryLevel.SHORT: 0.80, MemoryLevel.CRITICAL: 0.92}
_LEFT = {MemoryLevel.SHORT: 0.75, MemoryLevel.CRITICAL: 0.87}
"""Parts of the limit: above the first a level is entered, below the second it is left, so that it does not flap."""

_WORDS = {
    MemoryLevel.PLENTY: "memory is no longer short: %s of %s are in use",
    MemoryLevel.SHORT: "memory is short: %s of %s are in use; uploads, large requests and work on media are refused",
    MemoryLevel.CRITICAL: "memory is nearly used up: %s of %s are in use; new requests are refused until there is more",
}


class Pressure:
    """The pressure on this process. `level` and `use` are of memory, `delay` is how late the event loop was last.

    `limit` is the configured limit of memory; that of the control group counts as well. `read` returns what is used.
    """

    def __init__(self, limit: int | None = None, read: Callable[[], Sequence[MemoryUse]] | None = None) -> None:
        group = ControlGroup.found() if read is None else None
        self._has_limit = read is not None or group is not None or limit is not None
        self._read = read or (lambda: memory_uses(group, limit))
        self.level = MemoryLevel.PLENTY
        self.use: MemoryUse | None = None
        self.delay = 0.0
        self.on_delay: Callable[[float], None] = lambda _: None
        """Called with the delay of the event loop, every time that it has been measured."""
        self.is_busy: Callable[[], bool] = lambda: False
        """Returns whether requests run, so that it is worth looking more often."""

    def is_short(self) -> bool:
        """Whether memory is so short that big work has to wait."""
        return self.level is not MemoryLevel.PLENTY

    async def watch(self) -> None:
        """Measure until cancelled."""
        looks = 0
        while True:
            is_busy = self.is_busy()
            if not is_busy or looks % _LOOKS_PER_MEMORY == 0:
                self.look()
            looks += 1
            due = anyio.current_time() + (PERIOD if is_busy else IDLE_PERIOD)
            await anyio.sleep_until(due)
            self.delay = max(0.0, anyio.current_time() - due)
            self.on_delay(self.delay)

    def look(self) -> None:
        """Look at the memory, and log a change of its level."""
        if not self._has_limit:
            return
        uses = self._read()
        if not uses:
            return
        self.use = use = max(uses, key=lambda each: each.share)
        before, self.level = self.level, _level(use.share, self.level)
        if self.level != before:
            log = _logger.info if self.level is MemoryLevel.PLENTY else _logger.warning
            log(_WORDS[self.level], size_words(use.used), size_words(use.limit))


def _level(share: float, before: MemoryLevel) -> MemoryLevel:
    for level in (MemoryLevel.CRITICAL, MemoryLevel.SHORT):
        if share >= (_LEFT if before >= level else _ENTERED)[level]:
            return level
    return MemoryLevel.PLENTY
