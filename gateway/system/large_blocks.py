"""Reuse of memory for large blocks: by default, glibc returns a result of 8 MB to the system and asks for it again.

The system then clears every page again, which took more than half of the time that such a result needed on the event
loop. What is kept is bounded, and a gateway that never sees a large result keeps nothing.

Source: https://www.gnu.org/software/libc/manual/html_node/Malloc-Tunable-Parameters.html
"""

import sys
from contextlib import suppress
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3

_REUSED: Final = 64 * 1024 * 1024
"""Bytes of a block up to which its memory is reused."""

_KEPT: Final = 2 * _REUSED
"""Bytes of free memory that are kept at most."""


def reuse_large_blocks() -> None:
    """Keep the memory of large blocks for the next ones, where the C library can be told (glibc)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # a gateway on stdio has no use for it

    with suppress(OSError, AttributeError):  # musl has no such function
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _REUSED)
        mallopt(_TRIM_THRESHOLD, _KEPT)
