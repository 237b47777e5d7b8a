"""Decompress responses, which some servers compress unasked, piece by piece, however large they become."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from gateway.core.fact_words import plain
from gateway.errors import FetchFailed

_PIECE = 64 * 1024
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The `wbits` of zlib for each coding (RFC 9110, 8.4.1)."""


async def decompressed(chunks: AsyncIterator[bytes], coding: str, where: str) -> AsyncGenerator[bytes]:
    """Yield the content in pieces. A chunk that expands to many is unpacked only as fast as they are consumed.

    Raises FetchFailed if it cannot be unpacked.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if name not in _WINDOWS:
        raise FetchFailed(f"{where} sends content packed as {plain(name, 40)!r}, which was not asked for")
    unpacking = zlib.decompressobj(_WINDOWS[name])
    try:
        async for chunk in chunks:
            packed = chunk
            while packed and not unpacking.eof:
                piece = unpacking.decompress(packed, _PIECE)
                packed = unpacking.unconsumed_tail
                if piece:
                    yield piece
    except zlib.error:
        raise FetchFailed(f"{where} sends content that cannot be unpacked") from None
    if not unpacking.eof:
        raise FetchFailed(f"the answer of {where} broke off")
