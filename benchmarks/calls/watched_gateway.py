"""The gateway with a watch on its event loop: `python -m benchmarks.calls.watched_gateway serve ...`

Whenever the loop was away for a millisecond or more, a line is added to the file `$BENCH_WATCH`: the moment on the
system's monotonic clock, how long the loop was away, how much of that it waited for a core that another process or
thread had, and how much it spent computing.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio

TICK: Final = 0.001
SCHEDULED: Final = Path("/proc/thread-self/schedstat")
"""Nanoseconds that a thread ran, and that it was ready to run but had no core."""


def watched(run: Callable[..., Any], path: str) -> Callable[..., Any]:
    """`anyio.run`, with a watch in every loop."""

    def with_watch(work: Callable[..., Awaitable[Any]], *given: Any, **options: Any) -> Any:
        async def watched_work(*given: Any) -> Any:
            _Watch(asyncio.get_running_loop(), path).tick()
            return await work(*given)

        return run(watched_work, *given, **options)

    return with_watch


class _Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, path: str) -> None:
        self._loop, self._file = loop, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._last, self._waited, self._computed = time.monotonic(), _waited(), time.thread_time()

    def tick(self) -> None:
        now, waited, computed = time.monotonic(), _waited(), time.thread_time()
        away = now - self._last - TICK
        if away > TICK:
            line = f"{now} {away} {waited - self._waited} {computed - self._computed}\n"
            os.write(self._file, line.encode())
        self._last, self._waited, self._computed = now, waited, computed
        self._loop.call_later(TICK, self.tick)


def _waited() -> float:
    """Seconds that this thread has waited for a core; 0 where the kernel does not count them."""
    try:
        return int(SCHEDULED.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


if __name__ == "__main__":
    from gateway.cli.main import main

    anyio.run = watched(anyio.run, os.environ["BENCH_WATCH"])
    sys.exit(main())
