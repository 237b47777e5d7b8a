"""A content store in this process's memory: bounded, with expiry, and gone when the process ends."""

import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

from gateway.config.store_settings import StoreSettings
from gateway.content.store import store_errors
from gateway.content.store.content import CHUNK_BYTES, UNKNOWN_TYPE, Opened, Stored
from gateway.content.store.digest import Hashing, sha256_of
from gateway.content.store.handles import KEY_BYTES, content_id, id_in, new_handle
from gateway.content.store.lru_quota import Held, LruQuota
from gateway.core.model.kinds import kind_of
from gateway.core.model.media_types import normalise

MOST_GONE = 16_384
"""The number of removed pieces for which the store remembers the reason."""


class _Entry(NamedTuple):
    owner: str
    content: bytes
    stored: Stored


class MemoryStore:
    """A ContentStore in memory: at most `settings.max_bytes`, each piece for `settings.expires` seconds.

    The default is 256 MiB and one hour.

    The least recently stored or read piece is evicted first. `clock` returns seconds since 1970. `key` is for tests
    that need reproducible handles; by default each store has a random one.
    """

    where = "memory://"

    def __init__(
        self, settings: StoreSettings | None = None, *, clock: Callable[[], float] = time.time, key: bytes | None = None
    ) -> None:
        self._settings = settings or StoreSettings()
        self._clock = clock
        self._key = key if key is not None else secrets.token_bytes(KEY_BYTES)
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By id, in the order in which they expire: every piece lives equally long after it was last stored."""
        self._quota: LruQuota[str] = LruQuota()
        self._gone: OrderedDict[tuple[str, str], str] = OrderedDict()
        """The reason why the content of (owner, id) was removed, the earliest removed first."""

    @property
    def usage(self) -> tuple[int, int]:
        """The number of bytes and the number of pieces stored now."""
        return self._quota.size, len(self._quota)

    def resize(self, settings: StoreSettings) -> None:
        """Apply other limits from now on, also to existing content, as if it had been stored under them."""
        later = settings.expires - self._settings.expires
        self._settings = settings
        for ident, entry in self._entries.items():
            stored = replace(entry.stored, expires_at=entry.stored.expires_at + later)
            self._entries[ident] = entry._replace(stored=stored)
        self._forget_expired()
        self._make_room()

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
        content, sha256 = await self._whole(content)
        ident = content_id(self._key, owner, sha256)
        self._forget_expired()
        expires_at = self._clock() + self._settings.expires
        if known := self._entries.get(ident):
            stored = replace(known.stored, name=known.stored.name or name, expires_at=expires_at)
            self._entries[ident] = known._replace(stored=stored)
            self._quota.use(ident)
        else:
            media_type = normalise(media_type) or UNKNOWN_TYPE
            handle, kind = new_handle(media_type, ident, name), kind_of(media_type, name)
            stored = Stored(handle, media_type, name, len(content), sha256.hex(), kind, expires_at, origin)
            held = Held(owner, len(content))
            self._make_room(held)
            self._entries[ident] = _Entry(owner, content, stored)
            self._quota.hold(ident, held)
            self._gone.pop((owner, ident), None)
        self._entries.move_to_end(ident)
        return stored

    @asynccontextmanager
    async def open(self, handle: str, *, owner: str, start: int = 0, end: int | None = None) -> AsyncGenerator[Opened]:
        """Open the content from byte `start` up to `end`; see ContentStore."""
        entry = self._find(handle, owner)
        last = entry.stored.size if end is None else min(end, entry.stored.size)
        async with aclosing(_chunks(entry.content, max(0, start), last)) as chunks:
            yield Opened(entry.stored, chunks)

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """Return the metadata of the content; see ContentStore."""
        return self._find(handle, owner).stored

    async def delete(self, handle: str, *, owner: str) -> None:
        """Delete the content now; see ContentStore."""
        self._find(handle, owner)
        self._drop(id_in(handle))

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Return all content of this owner, the oldest first; see ContentStore."""
        self._forget_expired()
        return tuple(entry.stored for entry in self._entries.values() if entry.owner == owner)

    async def holds(self, owner: str) -> bool:
        """Return whether anything is kept for this owner."""
        self._forget_expired()
        return any(entry.owner == owner for entry in self._entries.values())

    async def _whole(self, content: bytes | AsyncIterable[bytes]) -> tuple[bytes, bytes]:
        """Return the content and its SHA-256, computed while it arrives. Raises if it is too large for the store."""
        if isinstance(content, bytes):
            store_errors.check_size(len(content), self._settings)
            return content, await sha256_of(content)
        arriving = Hashing(content, self._settings)
        kept = [chunk async for chunk in arriving]
        return b"".join(kept), arriving.sha256

    def _find(self, handle: str, owner: str) -> _Entry:
        self._forget_expired()
        ident = id_in(handle)
        entry = self._entries.get(ident)
        if entry is not None and entry.owner == owner:
            self._quota.use(ident)
            return entry
        if why := self._gone.get((owner, ident)):
            raise store_errors.gone(handle, why)
        raise store_errors.unknown(handle)

    def _forget_expired(self) -> None:
        now = self._clock()
        while self._entries:
            ident, entry = next(iter(self._entries.items()))
            if entry.stored.expires_at > now:
                break
            self._lose(ident, store_errors.expired_after(self._settings.expires))

    def _make_room(self, more: Held | None = None) -> None:
        for ident in self._quota.surplus(self._settings, more):
            self._lose(ident, store_errors.EVICTED)

    def _lose(self, ident: str, why: str) -> None:
        self._gone[self._drop(ident).owner, ident] = why
        while len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    def _drop(self, ident: str) -> _Entry:
        self._quota.drop(ident)
        return self._entries.pop(ident)


async def _chunks(content: bytes, start: int, end: int) -> AsyncGenerator[bytes]:
    if start == 0 and 0 < end == len(content) <= CHUNK_BYTES:
        yield content  # itself: nothing is copied
        return
    for at in range(start, end, CHUNK_BYTES):
        yield content[at : min(at + CHUNK_BYTES, end)]
