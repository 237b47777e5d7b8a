"""Repair the event streams of Streamable HTTP for the SDK's parser.

The SDK's parser is strict: half of a surrogate pair in one description, or one schema that nests 200 levels deep, costs
the whole response. So the lines that contain messages are repaired, as in the gateway's own transports.
"""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

from gateway.upstream.transports.messages import mended
from gateway.upstream.transports.parts import Parts

_DATA = b"data:"


class MendedEvents(httpx2.AsyncByteStream):
    """The body of an event stream with its `data` lines repaired (`messages.mended`).

    A message that spans several lines is left unchanged, and so is a line of more than `limit` bytes, which the SDK
    refuses.
    """

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._inner = cast("httpx2.AsyncByteStream", response.stream)
        self._limit = limit
        self._held = b""  # a carriage return at the end of a chunk: the line feed may follow

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = Parts()
        size = 0
        async for chunk in self._inner:
            *lines, rest = self._with_plain_ends(chunk).split(b"\n")
            if lines:
                parts.append(lines[0])
                lines[0], size = parts.take(), 0
                yield b"".join(_mended(line) + b"\n" for line in lines)
            parts.append(rest)
            size += len(rest)
            if size > self._limit:
                yield parts.take()
                size = 0
        yield _mended(parts.take()) + (b"\n" if self._held else b"")

    async def aclose(self) -> None:
        """Close the body, read or not."""
        await self._inner.aclose()

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if not self._held and b"\r" not in chunk:
            return chunk
        text = self._held + chunk
        self._held = b"\r" if text.endswith(b"\r") else b""
        return text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _mended(line: bytes) -> bytes:
    if not line.startswith(_DATA):
        return line
    message = line[len(_DATA) :]
    return line if (sound := mended(message)) is message else _DATA + sound
