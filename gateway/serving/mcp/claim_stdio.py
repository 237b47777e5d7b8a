"""Standard input and output reserved for the protocol, on any operating system. Standard library only."""

import os
import select
import stat
import sys
from collections.abc import Callable


def claim(fd: int, diversion: Callable[[], int]) -> int:
    """Return a private copy of `fd`, and redirect `fd` itself. Raises OSError if `fd` is not open."""
    private = _copy_above_standard(fd)
    if os.name == "posix":
        os.set_blocking(private, True)
    elsewhere = diversion()
    os.dup2(elsewhere, fd)
    os.close(elsewhere)
    if sys.platform == "win32":
        _claim_on_windows(fd, private)
    return private


def _copy_above_standard(fd: int) -> int:
    """Return a copy, not inherited by children, with a number above 2 even if stdin, stdout or stderr is closed."""
    low: list[int] = []
    try:
        while (copy := os.dup(fd)) <= 2:
            low.append(copy)
        return copy
    finally:
        for unused in low:
            os.close(unused)


def size_that_fits(fd: int) -> int:
    """Return how many bytes a pipe surely takes without waiting once it is ready for writing; 0 if not known."""
    if sys.platform == "win32" or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return 0
    return select.PIPE_BUF


def is_ready(pipe: int) -> bool:
    """Whether a pipe is ready for writing."""
    if sys.platform == "win32":
        return False
    waiting = select.poll()
    waiting.register(pipe, select.POLLOUT)
    return any(event & select.POLLOUT for _, event in waiting.poll(0))


def nothing() -> int:
    """Return a descriptor from which nothing can be read."""
    return os.open(os.devnull, os.O_RDONLY)


def stderr() -> int:
    """Return a copy of stderr, or a descriptor that takes everything if that is closed."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _claim_on_windows(fd: int, private: int) -> None:
        """Turn off newline translation, and redirect `fd` for children too: they ask Windows, not the C library."""
        msvcrt.setmode(private, os.O_BINARY)
        ctypes.windll.kernel32.SetStdHandle(-10 - fd, msvcrt.get_osfhandle(fd))
