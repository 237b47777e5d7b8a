"""A content store in a folder or a bucket: it outlives the process, and several gateways may share it."""

import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from weakref import WeakValueDictionary

import anyio

from gateway.config.locations import location
from gateway.config.store_settings import StoreSettings
from gateway.content.store import store_errors
from gateway.content.store.backend import Backend
from gateway.content.store.content import CHUNK_BYTES, UNKNOWN_TYPE, Opened, Stored
from gateway.content.store.digest import Hashing, sha256_of
from gateway.content.store.handles import content_id, id_in
from gateway.content.store.keys import key_of
from gateway.content.store.object_index import ContentKey, ObjectIndex
from gateway.content.store.records import ContentRecord, is_id, new_object, owner_id
from gateway.content.store.upload_stream import PART_BYTES
from gateway.core.model.media_types import normalise
from gateway.errors import StoreUnavailable

_READ_BYTES = 4 * CHUNK_BYTES
"""Bytes read per request: few requests to a bucket, and little memory."""

_ABORT_SECONDS = 5.0


class ObjectStore:
    """A ContentStore through obstore, at `settings.url`: files, S3, Google Cloud Storage or Azure.

    The records in the store are authoritative. `tidy` refreshes what this process knows of sizes and last uses, and
    removes what is expired, over the limits, or left over. `clock` returns seconds since 1970.
    """

    def __init__(self, settings: StoreSettings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._backend = Backend(location(settings.url), settings.timeout)
        self._index = ObjectIndex(self._backend, clock)
        self._key: bytes | None = None
        self._finding_key = anyio.Lock()
        self._numbers = count()
        self._locks: WeakValueDictionary[ContentKey, anyio.Lock] = WeakValueDictionary()

    @property
    def where(self) -> str:
        """The store's URL without its secrets."""
        return self._backend.where

    @property
    def usage(self) -> tuple[int, int]:
        """The number of bytes and the number of pieces stored, as far as this process knows."""
        return self._index.quota.size, len(self._index.quota)

    def resize(self, settings: StoreSettings) -> None:
        """Apply other limits from now on; the next `put` or `tidy` removes what exceeds them."""
        self._settings = settings
        self._backend.timeout = settings.timeout

    async def tidy(self) -> None:
        """Go through everything in the store, of any gateway, and remove what has to go.

        Raises:
            StoreUnavailable: the store failed; what was removed until then stays removed.
        """
        await self._index.tidy(self._settings)

    async def put(
        self,
        content: bytes | AsyncIterable[bytes],
        *,
        owner: str,
        media_type: str,
        name: str | None = None,
        origin: str | None = None,
    ) -> Stored:
        """Keep `content`; see ContentStore."""
        key = await self._keyed()
        media_type = normalise(media_type) or UNKNOWN_TYPE
        record = ContentRecord("", media_type, name, 0, "", new_object(), 0.0, next(self._numbers), origin)
        if isinstance(content, bytes):
            store_errors.check_size(len(content), self._settings)
            sha256 = await sha256_of(content)
            record = replace(record, size=len(content), sha256=sha256.hex(), ident=content_id(key, owner, sha256))
            return await self._keep(record, owner_id(key, owner), content)
        arriving = Hashing(content, self._settings)
        bytes_name = ContentKey(owner_id(key, owner), "").bytes_name(record.object)
        async with aclosing(aiter(arriving)) as chunks:
            await self._backend.upload(bytes_name, chunks)
        try:
            ident = content_id(key, owner, arriving.sha256)
            record = replace(record, size=arriving.size, sha256=arriving.sha256.hex(), ident=ident)
            return await self._keep(record, owner_id(key, owner), None)
        except BaseException:
            await self._forget(bytes_name)
            raise

    @asynccontextmanager
    async def open(self, handle: str, *, owner: str, start: int = 0, end: int | None = None) -> AsyncGenerator[Opened]:
        """Open the content from byte `start` up to `end`; see ContentStore."""
        piece, record = await self._find(handle, owner)
        start, end = max(0, start), record.size if end is None else min(end, record.size)
        name = piece.bytes_name(record.object)
        first = b""
        if start < end:
            part = await self._backend.get(name, start=start, end=min(start + _READ_BYTES, end))
            if part is None:
                await self._index.lose(piece, store_errors.LOST)
                raise store_errors.gone(handle, store_errors.LOST)
            first = part
        self._index.use(piece)
        async with aclosing(self._chunks(name, first, start, end)) as chunks:
            yield Opened(record.stored(self._settings.expires), chunks)

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """Return the metadata of the content; see ContentStore."""
        _, record = await self._find(handle, owner)
        return record.stored(self._settings.expires)

    async def delete(self, handle: str, *, owner: str) -> None:
        """Delete the content now; see ContentStore."""
        piece, record = await self._find(handle, owner)
        await self._index.remove(piece, record)

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Return all content of this owner, the oldest first; see ContentStore."""
        found = await self._index.all_of(owner_id(await self._keyed(), owner))
        kept = sorted((one for one in found if not self._is_expired(one)), key=lambda one: (one.put_at, one.order))
        return tuple(one.stored(self._settings.expires) for one in kept)

    async def holds(self, owner: str) -> bool:
        """Return whether anything is kept for this owner, without reading it: some of it may have just expired."""
        return await self._index.has_any(owner_id(await self._keyed(), owner))

    async def close(self) -> None:
        """Write the last uses to the store for the next process. Never raises."""
        with anyio.move_on_after(_ABORT_SECONDS, shield=True):
            # A failure only makes the order of eviction slightly out of date.
            with suppress(StoreUnavailable):
                await self._index.mark_used()

    async def _keep(self, record: ContentRecord, owner: str, content: bytes | None) -> Stored:
        """Write the bytes (unless they were uploaded) and their record, or renew the record of existing content."""
        piece = ContentKey(owner, record.ident)
        async with self._locks.setdefault(piece, anyio.Lock()):
            record = replace(record, put_at=self._clock())
            known = await self._index.read(piece)
            # Expired content cannot be relied on: any gateway may be removing it just now.
            lives = known is not None and not self._is_expired(known)
            if lives and known is not None and await self._backend.size(piece.bytes_name(known.object)) == known.size:
                if content is None:
                    await self._forget(piece.bytes_name(record.object))
                record = replace(known, put_at=record.put_at, order=record.order, name=known.name or record.name)
            elif content is not None:
                await self._write(piece.bytes_name(record.object), content)
            try:
                await self._index.keep(piece, record, self._settings)
            except BaseException:
                if known is None or record.object != known.object:
                    # The record may have been written even though the response was lost.
                    await self._forget(piece.record_name, piece.bytes_name(record.object))
                raise
        return record.stored(self._settings.expires)

    async def _write(self, name: str, content: bytes) -> None:
        if len(content) <= PART_BYTES:
            await self._backend.put(name, content)
            return
        async with aclosing(_slices(content)) as chunks:
            await self._backend.upload(name, chunks)

    async def _find(self, handle: str, owner: str) -> tuple[ContentKey, ContentRecord]:
        ident = id_in(handle)
        if not is_id(ident):
            raise store_errors.unknown(handle)
        piece = ContentKey(owner_id(await self._keyed(), owner), ident)
        record = await self._index.read(piece)
        if record is None:
            why = await self._index.why_gone(piece)
            raise store_errors.unknown(handle) if why is None else store_errors.gone(handle, why)
        if self._is_expired(record):
            raise store_errors.gone(handle, store_errors.expired_after(self._settings.expires))
        return piece, record

    def _is_expired(self, record: ContentRecord) -> bool:
        return record.put_at + self._settings.expires <= self._clock()

    async def _chunks(self, name: str, first: bytes, start: int, end: int) -> AsyncGenerator[bytes]:
        at, part = start, first
        while at < end:
            if len(part) != min(_READ_BYTES, end - at):
                raise StoreUnavailable(
                    f"the store {self.where} returned only {len(part):,} bytes of a larger part",
                    remedy="call the tool that made it again",
                )
            for offset in range(0, len(part), CHUNK_BYTES):
                yield part[offset : offset + CHUNK_BYTES]
            at += len(part)
            if at < end:
                part = await self._backend.get(name, start=at, end=min(at + _READ_BYTES, end)) or b""

    async def _forget(self, *names: str) -> None:
        """Remove objects that are not needed; if that fails, `tidy` removes them later."""
        with anyio.move_on_after(_ABORT_SECONDS, shield=True):
            with suppress(StoreUnavailable):
                await self._backend.delete(*names)

    async def _keyed(self) -> bytes:
        if self._key is None:
            async with self._finding_key:
                if self._key is None:
                    self._key = await key_of(self._backend, self._settings.key)
        return self._key


async def _slices(content: bytes) -> AsyncGenerator[bytes]:
    for at in range(0, len(content), CHUNK_BYTES):
        yield content[at : at + CHUNK_BYTES]
