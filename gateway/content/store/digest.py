"""The sha256 of content, made while it arrives, and never on the event loop for long."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable

import anyio.to_thread

from gateway.config.schema import StoreSettings
from gateway.content.store.content import CHUNK_BYTES
from gateway.content.store.store_errors import check_size

_HASHED_AT_ONCE = 256 * 1024


async def sha256_of(content: bytes) -> bytes:
    """The digest."""
    if len(content) <= _HASHED_AT_ONCE:
        return hashlib.sha256(content).digest()
    # A second for a large store's worth: hashlib lets other threads run meanwhile.
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).digest())


class Hashing:
    """A stream in pieces of at most CHUNK_BYTES, counted and hashed as they pass; to be gone through once.

    Raises ContentTooLarge as soon as there is more of it than `settings` let anybody keep.
    """

    def __init__(self, content: AsyncIterable[bytes], settings: StoreSettings) -> None:
        self.size = 0
        self._content = content
        self._settings = settings
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> bytes:
        """The digest of what has passed."""
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
