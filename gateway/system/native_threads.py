"""Threads of packages with native code, which must not be in Python when the interpreter ends.

Until Python 3.14, a thread that waits for the interpreter while it ends is unwound. Native code that is not prepared
for that (obstore's, which hands results over from threads of its own) is aborted with the whole process, although all
that the process had to do was done: https://github.com/PyO3/pyo3-async-runtimes/issues/40.
"""

import atexit
import functools
import sys
import threading
import time

_LONGEST_SECONDS = 1.0
_PAUSE_SECONDS = 0.002
_QUIET_LOOKS = 3
"""One that is about to enter Python, as for a request that was cancelled, is not in it yet."""


@functools.cache
def await_native_threads() -> None:
    """Have the interpreter wait for such threads when it ends. Call this when a package that has some is first used."""
    atexit.register(_await)


def _await() -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)  # gives up the interpreter, so that they can finish
        quiet = 0 if _are_in_python() else quiet + 1


def _are_in_python() -> bool:
    started_here = {thread.ident for thread in threading.enumerate()}
    return any(number not in started_here for number in sys._current_frames())  # pyright: ignore[reportPrivateUsage]
