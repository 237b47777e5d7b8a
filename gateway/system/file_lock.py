"""Locks on open files, which other processes respect. Standard library only."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_LOOKS = 0.02


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or this process ends. Return False if another process holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def locked(path: Path, seconds: float) -> Generator[None]:
    """Hold the lock on a file of its own, created if necessary, inside the context. Blocks.

    Raises:
        TimeoutError: another process holds it, and did not release it within `seconds`.
        OSError: the file cannot be opened.
    """
    until = time.monotonic() + seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not try_lock(descriptor):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} is locked by another process")
            time.sleep(_LOOKS)
        yield
    finally:
        os.close(descriptor)
