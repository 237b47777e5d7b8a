"""The index of an object store: records, sizes and last uses of its content, and removal of what is due."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import anyio
import anyio.lowlevel

from gateway.config.schema import StoreSettings
from gateway.content.store import store_errors
from gateway.content.store.backend import Backend, FoundObject
from gateway.content.store.lru_quota import Held, Ledger
from gateway.content.store.records import ABOUT, BYTES, GONE, USED, ContentRecord, read_about

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
    def about(self) -> str:
        """The name of the object with its record."""
        return f"{ABOUT}/{self.owner}/{self.ident}"

    @property
    def gone(self) -> str:
        """The name of the object that says why it is gone."""
        return f"{GONE}/{self.owner}/{self.ident}"

    @property
    def used(self) -> str:
        """The name of the object that marks its last use."""
        return f"{USED}/{self.owner}/{self.ident}"

    def bytes(self, last: str) -> str:
        """The name of the object with its bytes."""
        return f"{BYTES}/{self.owner}/{last}"


class _Known(NamedTuple):
    stamp: str | None
    """The stamp of the object that was read; None if this process wrote it."""
    about: ContentRecord


class ObjectIndex:
    """The records of one store, with what this process remembers of them."""

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        self.ledger: Ledger[ContentKey] = Ledger()
        self._backend = backend
        self._clock = clock
        self._known: dict[ContentKey, _Known] = {}
        self._used: dict[ContentKey, float] = {}
        self._unmarked: set[ContentKey] = set()
        """Pieces whose last use is not written to the store yet."""
        self._tidying = anyio.Lock()
        self._changed: dict[ContentKey, ContentRecord | None] = {}
        """Changes that this process made while `tidy` runs; None for a removed piece."""

    async def about(self, spot: ContentKey) -> ContentRecord | None:
        """Return the record of a piece; None if there is none, or none that can be read."""
        content = await self._backend.get(spot.about)
        return None if content is None else read_about(content)

    async def why_gone(self, spot: ContentKey) -> str | None:
        """Return the recorded reason why a piece is gone; None if there is none."""
        content = await self._backend.get(spot.gone)
        return None if content is None else content.decode("utf-8", "replace")

    async def all_of(self, owner: str) -> list[ContentRecord]:
        """Return the records of all pieces of an owner, in arbitrary order."""
        found = await self._backend.list(f"{ABOUT}/{owner}")
        contents = await self._backend.get_each([one.name for one in found])
        return [about for content in contents.values() if (about := read_about(content)) is not None]

    async def keep(self, spot: ContentKey, about: ContentRecord, settings: StoreSettings) -> None:
        """Write the record of a piece whose bytes are stored, which makes it visible, and evict others to make room."""
        self.ledger.drop(spot)
        surplus = self.ledger.surplus(settings, Held(spot.owner, about.size))
        going = [(other, self._known[other].about) for other in surplus]
        self._remember(spot, about)
        try:
            for other, known in going:
                await self.lose(other, store_errors.EVICTED, known)
            await self._backend.put(spot.about, about.written())
        except BaseException:
            self._remember(spot, None)
            raise

    def use(self, spot: ContentKey) -> None:
        """Mark a piece as used just now."""
        self.ledger.use(spot)
        self._used[spot] = self._clock()
        self._unmarked.add(spot)

    async def lose(self, spot: ContentKey, why: str, known: ContentRecord | None = None) -> None:
        """Remove a piece and record why, unless it differs from `known` because it was stored again."""
        about = await self.about(spot)
        if about is not None and known is not None and about != known:
            self._remember(spot, about)
            return
        await self._backend.put(spot.gone, why.encode())
        if await self.about(spot) != about:  # stored again meanwhile
            await self._backend.delete(spot.gone)
            return
        await self._take_away(spot, about)

    async def remove(self, spot: ContentKey, about: ContentRecord) -> None:
        """Remove a piece without recording that it existed."""
        await self._backend.delete(spot.gone)
        await self._take_away(spot, about)

    async def mark_used(self) -> None:
        """Write the uses since the last call to the store."""
        while self._unmarked:
            spot = self._unmarked.pop()
            if spot in self._known:
                await self._backend.put(spot.used, b"")

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
        for spot, known in list(self._known.items()):
            if known.about.put_at + settings.expires <= now:
                await self.lose(spot, store_errors.expired_after(settings.expires), known.about)
        for spot in self.ledger.surplus(settings):
            await self.lose(spot, store_errors.EVICTED, self._known[spot].about)
        await self._forget_gone(await self._backend.list(GONE))
        await self._backend.remove_staged(LEFT_OVER_SECONDS)
        if whole:  # otherwise bytes may belong to records that could not be read
            await self._remove_left_over(bytes_found)

    async def _look(self, found: Iterable[FoundObject]) -> bool:
        """Read the records that are new or changed. Return whether all of them could be read."""
        stamps = {spot: one for one in found if (spot := _spot(one.name)) is not None}
        new = [spot for spot, one in stamps.items() if spot not in self._known or self._known[spot].stamp != one.stamp]
        contents = await self._backend.get_each([spot.about for spot in new])
        read: dict[ContentKey, _Known] = {}
        for place, spot in enumerate(new):
            if place % _READ_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
            if (about := read_about(contents.get(spot.about, b""))) is not None:
                read[spot] = _Known(stamps[spot].stamp, about)
        known = {**{spot: self._known[spot] for spot in stamps if spot in self._known}, **read}
        for spot, about in self._changed.items():
            known.pop(spot, None)
            if about is not None:
                known[spot] = _Known(None, about)
        self._known = known
        self._used = {spot: at for spot, at in self._used.items() if spot in known}
        return len(read) == len(contents)

    async def _see_mark(self, mark: FoundObject) -> None:
        spot = _spot(mark.name)
        if spot is None or spot not in self._known:
            await self._backend.delete(mark.name)
        else:
            self._used[spot] = max(self._used.get(spot, 0.0), mark.written)

    def _count(self) -> None:
        def last_use(spot: ContentKey) -> tuple[float, float, int]:
            about = self._known[spot].about
            return max(about.put_at, self._used.get(spot, 0.0)), about.put_at, about.order

        self.ledger = Ledger(
            (spot, Held(spot.owner, self._known[spot].about.size)) for spot in sorted(self._known, key=last_use)
        )

    async def _forget_gone(self, found: Iterable[FoundObject]) -> None:
        newest = sorted(found, key=lambda one: one.written, reverse=True)
        oldest = time.time() - GONE_SECONDS
        await self._backend.delete(
            *(one.name for place, one in enumerate(newest) if place >= MOST_GONE or one.written < oldest)
        )

    async def _remove_left_over(self, found: Iterable[FoundObject]) -> None:
        wanted = {spot.bytes(known.about.object) for spot, known in self._known.items()}
        before = time.time() - LEFT_OVER_SECONDS
        await self._backend.delete(*(one.name for one in found if one.name not in wanted and one.written < before))

    async def _take_away(self, spot: ContentKey, about: ContentRecord | None) -> None:
        self._remember(spot, None)
        # The record goes first: bytes without a record are left over, a record without bytes would be a false promise.
        await self._backend.delete(spot.about)
        if about is not None:
            await self._backend.delete(spot.bytes(about.object))
        if self._used.pop(spot, None) is not None:
            await self._backend.delete(spot.used)
        self._unmarked.discard(spot)

    def _remember(self, spot: ContentKey, about: ContentRecord | None) -> None:
        self._changed[spot] = about
        if about is None:
            self.ledger.drop(spot)
            self._known.pop(spot, None)
        else:
            self.ledger.hold(spot, Held(spot.owner, about.size))
            self._known[spot] = _Known(None, about)
            self._used[spot] = about.put_at


def _spot(name: str) -> ContentKey | None:
    parts = name.split("/")
    return ContentKey(parts[1], parts[2]) if len(parts) == 3 else None
