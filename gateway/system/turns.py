"""Giving way to other tasks while many small things are handled, none of which has anything to wait for."""

import time
from collections.abc import Iterator

import anyio.lowlevel

_LONGEST_TURN = 0.002
"""Seconds. A call of another host takes some thirty turns of the event loop."""

_MOST_LINES, _PIECE = 500, 8_192


class Turns:
    """The turns of one task that reads what may be a flood."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def give_way(self) -> None:
        """Let other tasks run if this one has had its turn."""
        if time.monotonic() - self._since >= _LONGEST_TURN:
            await anyio.lowlevel.checkpoint()
            self._since = time.monotonic()


def few_lines_each(chunk: bytes) -> Iterator[bytes]:
    """Yield a chunk of a stream as it is, or in pieces of 8 KiB if it has so many lines that each takes a while."""
    if chunk.count(b"\n") + chunk.count(b"\r") <= _MOST_LINES:
        yield chunk
    else:
        for start in range(0, len(chunk), _PIECE):
            yield chunk[start : start + _PIECE]
