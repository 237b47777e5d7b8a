"""The index of an object store: records, sizes and last uses of its content, and removal of what is due."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import anyio
import anyio.lowlevel

from gateway.config.store_settings import StoreSettings
from gateway.content.store import store_errors
from gateway.content.store.backend import Backend, FoundObject
from gateway.content.store.lru_quota import Held, LruQuota
from gateway.content.store.records import ABOUT, BYTES, GONE, USED, ContentRecord, newer_record, read_record
from gateway.errors import StoreUnavailable

MOST_GONE = 16_384
"""The number of removed pieces for which the store remembers the reason."""

GONE_SECONDS = 7 * 86_400.0
"""How long the reason is remembered."""

LEFT_OVER_SECONDS = 3_600.0
"""Bytes that have no record after this time belong to an interrupted `put`."""


_READ_AT_ONCE = 200
"""The number of records parsed before other tasks get a turn."""


class ContentKey(NamedTuple):
    """The owner and the id of a piece of content, both as they appear in object names."""

    owner: str
    ident: str

    @property
    def record_name(self) -> str:
        """The name of the object with its record."""
        return f"{ABOUT}/{self.owner}/{self.ident}"

    @property
    def gone_name(self) -> str:
        """The name of the object that says why it is gone."""
        return f"{GONE}/{self.owner}/{self.ident}"

    @property
    def used_name(self) -> str:
        """The name of the object that marks its last use."""
        return f"{USED}/{self.owner}/{self.ident}"

    def bytes_name(self, last: str) -> str:
        """The name of the object with its bytes."""
        return f"{BYTES}/{self.owner}/{last}"


class _Known(NamedTuple):
    stamp: str | None
    """The stamp of the object that was read; None if this process wrote it."""
    record: ContentRecord


class ObjectIndex:
    """The records of one store, with what this process remembers of them."""

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        self.quota: LruQuota[ContentKey] = LruQuota()
        self._backend = backend
        self._clock = clock
        self._known: dict[ContentKey, _Known] = {}
        self._used: dict[ContentKey, float] = {}
        self._unmarked: set[ContentKey] = set()
        """Pieces whose last use is not written to the store yet."""
        self._tidying = anyio.Lock()
        self._changed: dict[ContentKey, ContentRecord | None] = {}
        """Changes that this process made while `tidy` runs; None for a removed piece."""

    async def read(self, piece: ContentKey) -> ContentRecord | None:
        """Return the record of a piece; None if there is none, or none that can be read.

        Raises:
            StoreUnavailable: a newer version of the gateway has written it.
        """
        content = await self._backend.get(piece.record_name)
        if content is None:
            return None
        if (record := read_record(content)) is None and (newer := newer_record(content)) is not None:
            raise StoreUnavailable(f"the content {piece.ident} cannot be read: {newer}", remedy="update the gateway")
        return record

    async def why_gone(self, piece: ContentKey) -> str | None:
        """Return the recorded reason why a piece is gone; None if there is none."""
        content = await self._backend.get(piece.gone_name)
        return None if content is None else content.decode("utf-8", "replace")

    async def all_of(self, owner: str) -> list[ContentRecord]:
        """Return the records of all pieces of an owner, in arbitrary order."""
        found = await self._backend.list(f"{ABOUT}/{owner}")
        contents = await self._backend.get_each([one.name for one in found])
        return [record for content in contents.values() if (record := read_record(content)) is not None]

    async def has_any(self, owner: str) -> bool:
        """Return whether there is a record of a piece of this owner."""
        return bool(await self._backend.list(f"{ABOUT}/{owner}"))

    async def keep(self, piece: ContentKey, record: ContentRecord, settings: StoreSettings) -> None:
        """Write the record of a piece whose bytes are stored, which makes it visible, and evict others to make room."""
        self.quota.drop(piece)
        surplus = self.quota.surplus(settings, Held(piece.owner, record.size))
        going = [(other, self._known[other].record) for other in surplus]
        self._remember(piece, record)
        try:
            for other, known in going:
                await self.lose(other, store_errors.EVICTED, known)
            await self._backend.put(piece.record_name, record.written())
        except BaseException:
            self._remember(piece, None)
            raise

    def use(self, piece: ContentKey) -> None:
        """Mark a piece as used just now."""
        self.quota.use(piece)
        self._used[piece] = self._clock()
        self._unmarked.add(piece)

    async def lose(self, piece: ContentKey, why: str, known: ContentRecord | None = None) -> None:
        """Remove a piece and record why, unless it differs from `known` because it was stored again."""
        record = await self.read(piece)
        if record is not None and known is not None and record != known:
            self._remember(piece, record)
            return
        await self._backend.put(piece.gone_name, why.encode())
        if await self.read(piece) != record:  # stored again meanwhile
            await self._backend.delete(piece.gone_name)
            return
        await self._take_away(piece, record)

    async def remove(self, piece: ContentKey, record: ContentRecord) -> None:
        """Remove a piece without recording that it existed."""
        await self._backend.delete(piece.gone_name)
        await self._take_away(piece, record)

    async def mark_used(self) -> None:
        """Write the uses since the last call to the store."""
        while self._unmarked:
            piece = self._unmarked.pop()
            if piece in self._known:
                await self._backend.put(piece.used_name, b"")

    async def tidy(self, settings: StoreSettings) -> None:
        """Go through the whole store and remove what is expired, over the limits, or left over."""
        async with self._tidying:
            await self._tidy(settings)

    async def _tidy(self, settings: StoreSettings) -> None:
        await self.mark_used()
        self._changed = {}
        # Bytes are listed first: a record written after this listing is younger than anything left over.
        bytes_found = await self._backend.list(BYTES)
        whole = await self._look(await self._backend.list(ABOUT))
        for mark in await self._backend.list(USED):
            await self._see_mark(mark)
        self._count()
        now = self._clock()
        for piece, known in list(self._known.items()):
            if known.record.put_at + settings.expires <= now:
                await self.lose(piece, store_errors.expired_after(settings.expires), known.record)
        for piece in self.quota.surplus(settings):
            await self.lose(piece, store_errors.EVICTED, self._known[piece].record)
        await self._forget_gone(await self._backend.list(GONE))
        await self._backend.remove_staged(LEFT_OVER_SECONDS)
        if whole:  # otherwise bytes may belong to records that could not be read
            await self._remove_left_over(bytes_found)

    async def _look(self, found: Iterable[FoundObject]) -> bool:
        """Read the records that are new or changed. Return whether all of them could be read."""
        stamps = {piece: one for one in found if (piece := _piece_named(one.name)) is not None}
        new = [
            piece for piece, one in stamps.items() if piece not in self._known or self._known[piece].stamp != one.stamp
        ]
        contents = await self._backend.get_each([piece.record_name for piece in new])
        read: dict[ContentKey, _Known] = {}
        for place, piece in enumerate(new):
            if place % _READ_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
            if (record := read_record(contents.get(piece.record_name, b""))) is not None:
                read[piece] = _Known(stamps[piece].stamp, record)
        # A changed record that cannot be read, as a newer gateway writes them, is not known any more.
        unchanged = stamps.keys() - set(new)
        known = {**{piece: self._known[piece] for piece in stamps if piece in unchanged}, **read}
        for piece, record in self._changed.items():
            known.pop(piece, None)
            if record is not None:
                known[piece] = _Known(None, record)
        self._known = known
        self._used = {piece: at for piece, at in self._used.items() if piece in known}
        return len(read) == len(contents)

    async def _see_mark(self, mark: FoundObject) -> None:
        piece = _piece_named(mark.name)
        if piece is None or piece not in self._known:
            await self._backend.delete(mark.name)
        else:
            self._used[piece] = max(self._used.get(piece, 0.0), mark.written)

    def _count(self) -> None:
        def last_use(piece: ContentKey) -> tuple[float, float, int]:
            record = self._known[piece].record
            return max(record.put_at, self._used.get(piece, 0.0)), record.put_at, record.order

        self.quota = LruQuota(
            (piece, Held(piece.owner, self._known[piece].record.size)) for piece in sorted(self._known, key=last_use)
        )

    async def _forget_gone(self, found: Iterable[FoundObject]) -> None:
        newest = sorted(found, key=lambda one: one.written, reverse=True)
        oldest = time.time() - GONE_SECONDS
        await self._backend.delete(
            *(one.name for place, one in enumerate(newest) if place >= MOST_GONE or one.written < oldest)
        )

    async def _remove_left_over(self, found: Iterable[FoundObject]) -> None:
        wanted = {piece.bytes_name(known.record.object) for piece, known in self._known.items()}
        before = time.time() - LEFT_OVER_SECONDS
        await self._backend.delete(*(one.name for one in found if one.name not in wanted and one.written < before))

    async def _take_away(self, piece: ContentKey, record: ContentRecord | None) -> None:
        self._remember(piece, None)
        # The record goes first: bytes without a record are left over, a record without bytes would be a false promise.
        await self._backend.delete(piece.record_name)
        if record is not None:
            await self._backend.delete(piece.bytes_name(record.object))
        if self._used.pop(piece, None) is not None:
            await self._backend.delete(piece.used_name)
        self._unmarked.discard(piece)

    def _remember(self, piece: ContentKey, record: ContentRecord | None) -> None:
        self._changed[piece] = record
        if record is None:
            self.quota.drop(piece)
            self._known.pop(piece, None)
        else:
            self.quota.hold(piece, Held(piece.owner, record.size))
            self._known[piece] = _Known(None, record)
            self._used[piece] = record.put_at


def _piece_named(name: str) -> ContentKey | None:
    parts = name.split("/")
    return ContentKey(parts[1], parts[2]) if len(parts) == 3 else None
