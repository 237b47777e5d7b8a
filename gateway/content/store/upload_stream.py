"""Upload a stream to an object store: fed in one task, written by obstore in another."""

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Self

import anyio

from gateway.content.store.obstore_errors import failing

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Objects

PART_BYTES = 5 * 1024 * 1024
"""The size of the parts of an upload: the minimum that S3 accepts."""

_PARTS_AT_ONCE = 2
_ABORT_SECONDS = 5.0


class _BrokenOff(Exception):
    """The stream ended early."""


class ObjectUpload:
    """The upload of one stream: fed in one task, written in another."""

    def __init__(self, objects: "Objects", name: str, where: str, timeout: float) -> None:
        self.failure: Exception | None = None
        self._objects, self._name, self._where, self._timeout = objects, name, where, timeout
        self._send, self._receive = anyio.create_memory_object_stream[bytes](0)
        self._is_whole = self._is_broken = False
        self._done = anyio.Event()
        # Shielded: a broken upload has to be aborted at the store, not just dropped.
        self._writing = anyio.CancelScope(shield=True)

    async def feed(self, chunks: AsyncIterable[bytes]) -> None:
        """Pass on every chunk, and wait until everything is written."""
        async with self._send:
            async for chunk in chunks:
                try:
                    with failing(self._where), anyio.fail_after(self._timeout):
                        await self._send.send(chunk)
                except anyio.BrokenResourceError:
                    break  # writing failed, and says why
            else:
                self._is_whole = True
        # At most the parts in progress are still to be written.
        with failing(self._where), anyio.fail_after((_PARTS_AT_ONCE + 1) * self._timeout):
            await self._done.wait()

    def end(self) -> None:
        """End the writing, after a grace period if it is still in progress."""
        self._send.close()
        self._writing.deadline = anyio.current_time() + _ABORT_SECONDS

    async def write(self) -> None:
        """Write the chunks as they are fed."""
        import obstore

        try:
            with self._writing, failing(self._where):
                await obstore.put_async(
                    self._objects,
                    self._name,
                    self,
                    use_multipart=True,
                    chunk_size=PART_BYTES,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except Exception as error:  # raised later by the caller of the upload
            if not self._is_broken:
                self.failure = error
        finally:
            self._receive.close()
            self._done.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk to obstore, which asks in tasks of its own."""
        try:
            return await self._receive.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            if self._is_whole:
                raise StopAsyncIteration from None
            self._is_broken = True
            raise _BrokenOff from None
