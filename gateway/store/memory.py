"""Content in this process's memory: bounded, with expiry, gone when the process ends."""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import anyio.to_thread

from gateway.config.schema import StoreSettings
from gateway.core.model.media_types import family, normalise
from gateway.errors import ContentTooLarge, ExpiredHandle, UnknownHandle
from gateway.store.content import Stored
from gateway.store.handles import KEY_BYTES, content_id, id_in, new_handle

MOST_ENTRIES = 65_536
"""So many pieces are kept at most: small ones cost more than their bytes."""

MOST_GONE = 16_384
"""Of so many pieces that are gone it is still known that they were there, and why they went."""

_UNTOLD_TYPE = "application/octet-stream"
_HASHED_AT_ONCE = 256 * 1024
_SHOWN = 80


class _Entry(NamedTuple):
    owner: str
    content: bytes
    stored: Stored


class MemoryStore:
    """A ContentStore in memory: at most `settings.max_bytes`, each piece for `settings.expires` seconds.

    What was put or read least recently is evicted first. `clock` gives seconds; `key` is for tests that need the same
    handles again, and is otherwise random for each store.
    """

    def __init__(
        self, settings: StoreSettings, *, clock: Callable[[], float] = time.monotonic, key: bytes | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._key = key if key is not None else secrets.token_bytes(KEY_BYTES)
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By id, the least recently used first."""
        self._by_age: OrderedDict[str, None] = OrderedDict()
        """The ids in the order in which they expire: every piece lives equally long from its last put on."""
        self._gone: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Why the content of (owner, id) is no more, the longest gone first."""
        self._size = 0

    @property
    def usage(self) -> tuple[int, int]:
        """What is kept now: bytes, and how many pieces they are."""
        return self._size, len(self._entries)

    def resize(self, settings: StoreSettings) -> None:
        """Keep to other bounds from now on; what is kept already counts as if it had been put under them."""
        later = settings.expires - self._settings.expires
        self._settings = settings
        for ident, entry in self._entries.items():
            stored = replace(entry.stored, expires_at=entry.stored.expires_at + later)
            self._entries[ident] = entry._replace(stored=stored)
        self._forget_expired()
        self._make_room_for(0)

    async def put(self, content: bytes, *, owner: str, media_type: str, name: str | None = None) -> Stored:
        """Keep `content`; see ContentStore."""
        limit = self._settings.max_bytes
        if len(content) > limit:
            raise ContentTooLarge(
                f"the content has {len(content):,} bytes, more than the {limit:,} that the store holds",
                remedy="see store.max_bytes",
            )
        sha256 = await _sha256(content)
        ident = content_id(self._key, owner, sha256)
        self._forget_expired()
        expires_at = self._clock() + self._settings.expires
        if known := self._entries.get(ident):
            stored = replace(known.stored, name=known.stored.name or name, expires_at=expires_at)
            self._entries[ident] = known._replace(stored=stored)
        else:
            media_type = normalise(media_type) or _UNTOLD_TYPE
            handle, kind = new_handle(media_type, ident), family(media_type)
            stored = Stored(handle, media_type, name, len(content), sha256.hex(), kind, expires_at)
            self._make_room_for(len(content))
            self._entries[ident] = _Entry(owner, content, stored)
            self._size += len(content)
            self._gone.pop((owner, ident), None)
        self._entries.move_to_end(ident)
        self._by_age[ident] = None
        self._by_age.move_to_end(ident)
        return stored

    async def read(self, handle: str, *, owner: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to `end`; see ContentStore."""
        entry = self._find(handle, owner)
        return entry.content[max(0, start) : None if end is None else max(0, end)]

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """What is known of the content; see ContentStore."""
        return self._find(handle, owner).stored

    async def delete(self, handle: str, *, owner: str) -> None:
        """Forget the content now; see ContentStore."""
        self._find(handle, owner)
        self._drop(id_in(handle))

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Everything of this owner, the oldest first; see ContentStore."""
        self._forget_expired()
        mine = (self._entries[ident] for ident in self._by_age)
        return tuple(entry.stored for entry in mine if entry.owner == owner)

    def _find(self, handle: str, owner: str) -> _Entry:
        self._forget_expired()
        ident = id_in(handle)
        entry = self._entries.get(ident)
        if entry is not None and entry.owner == owner:
            self._entries.move_to_end(ident)
            return entry
        shown = handle[:_SHOWN]
        if why := self._gone.get((owner, ident)):
            raise ExpiredHandle(f"the content of {shown!r} is gone: {why}", remedy="call the tool that made it again")
        # The same words whether it never was or is someone else's.
        raise UnknownHandle(f"there is no content with the handle {shown!r}", remedy="copy the handle exactly")

    def _forget_expired(self) -> None:
        now = self._clock()
        while self._by_age:
            ident = next(iter(self._by_age))
            if self._entries[ident].stored.expires_at > now:
                break
            self._lose(ident, f"it was kept for {self._settings.expires:g} s")

    def _make_room_for(self, size: int) -> None:
        while self._entries and (self._size + size > self._settings.max_bytes or len(self._entries) >= MOST_ENTRIES):
            self._lose(next(iter(self._entries)), "it had to make room for newer content")

    def _lose(self, ident: str, why: str) -> None:
        self._gone[self._drop(ident).owner, ident] = why
        while len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    def _drop(self, ident: str) -> _Entry:
        entry = self._entries.pop(ident)
        del self._by_age[ident]
        self._size -= len(entry.content)
        return entry


async def _sha256(content: bytes) -> bytes:
    if len(content) <= _HASHED_AT_ONCE:
        return hashlib.sha256(content).digest()
    # A second for a large store's worth: not on the event loop, and hashlib lets other threads run meanwhile.
    return await anyio.to_thread.run_sync(lambda: hashlib.sha256(content).digest())
