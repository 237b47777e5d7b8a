"""Compute the SHA-256 of content, also while it arrives, without blocking the event loop for long."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable

import anyio.to_thread

from gateway.config.store_settings import StoreSettings
from gateway.content.store.content import CHUNK_BYTES
from gateway.content.store.store_errors import check_size

_HASHED_AT_ONCE = 256 * 1024


async def sha256_of(content: bytes) -> bytes:
    """Return the SHA-256 digest of `content`."""
    if len(content) <= _HASHED_AT_ONCE:
        return hashlib.sha256(content).digest()
    # Large content takes about a second; hashlib lets other threads run meanwhile.
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).digest())


class Hashing:
    """A stream in chunks of at most CHUNK_BYTES, counted and hashed as they pass. It can be iterated over once.

    Raises ContentTooLarge as soon as the stream exceeds what `settings` allow to be kept.
    """

    def __init__(self, content: AsyncIterable[bytes], settings: StoreSettings) -> None:
        self.size = 0
        self._content = content
        self._settings = settings
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> bytes:
        """The digest of the chunks so far."""
        return self._hash.digest()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        async for given in self._content:
            for at in range(0, len(given), CHUNK_BYTES):
                chunk = bytes(given[at : at + CHUNK_BYTES])
                self.size += len(chunk)
                check_size(self.size, self._settings)
                if len(chunk) <= _HASHED_AT_ONCE:
                    self._hash.update(chunk)
                else:
                    await anyio.to_thread.run_sync(self._hash.update, chunk)
                yield chunk
