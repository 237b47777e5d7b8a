"""The gateway with a watch on its event loop: `python -m benchmarks.calls.watched_gateway serve ...`

Whenever the loop was away for a millisecond or more, a line is added to the file `$BENCH_WATCH`: the moment on the
system's monotonic clock, how long the loop was away, and how much of that it spent computing.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from typing import Final

TICK: Final = 0.001


def watch(path: str) -> None:
    """Find the loop, and put the watch into it."""
    while True:
        time.sleep(0.01)
        for loop in gc.get_objects():
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_running():
                loop.call_soon_threadsafe(_Watch(loop, path).tick)
                return


class _Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, path: str) -> None:
        self._loop, self._file = loop, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._last, self._computed = time.monotonic(), 0.0

    def tick(self) -> None:
        now, computed = time.monotonic(), time.thread_time()
        away = now - self._last - TICK
        if away > TICK:
            os.write(self._file, f"{now} {away} {computed - self._computed}\n".encode())
        self._last, self._computed = now, computed
        self._loop.call_later(TICK, self.tick)


if __name__ == "__main__":
    from gateway.cli.main import main

    threading.Thread(target=watch, args=(os.environ["BENCH_WATCH"],), daemon=True).start()
    sys.exit(main())
