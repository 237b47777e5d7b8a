"""Read the content that a request names by its caller's handles from the store: the newest, within limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio.to_thread
import pybase64

from gateway.content.store import ContentStore, Stored, fetch_bytes
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import Block
from gateway.core.model.contents import found_in
from gateway.core.model.notes import Note
from gateway.core.model_apis.requests.accepted_media import shows
from gateway.core.model_apis.requests.history_media import cut_to
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.results.rescue import block_for
from gateway.errors import ContentError

MOST_LOOKED_UP = 200
"""The number of handles of one request that are looked up, the newest first: anybody can write forged ones."""
MOST_OPENED = 50
"""The number of pieces of content that are put back into one request."""
_MOST_BYTES = 64_000_000


@dataclass(frozen=True)
class Room:
    """The room for content in a request: a number of pieces, and their bytes in all."""

    count: int = MOST_OPENED
    bytes: int = _MOST_BYTES

    @classmethod
    def of(cls, count: int | None, size: int) -> "Room":
        """Return the room within an API's limits on images (None: no limit) and on bytes (0: no limit)."""
        return cls(MOST_OPENED if count is None else min(MOST_OPENED, count), min(_MOST_BYTES, size or _MOST_BYTES))


@dataclass(frozen=True)
class NamedContent:
    """Content by handle as blocks, and a note if some was left out."""

    blocks: Mapping[str, Block] = field(default_factory=dict[str, Block])
    notes: tuple[Note, ...] = ()


async def open_named(
    store: ContentStore, named: Sequence[str], profile: ModelProfile, owner: str, room: Room, body: bytes
) -> NamedContent:
    """Return the content of these handles, in request order, if it belongs to `owner` and the model takes it.

    A handle is a keyed hash of its owner and its content, so only the gateway's store can have issued a handle that it
    finds for this owner. Only its exact spelling counts. Content that the request already contains is left out.
    """
    newest_last = list(dict.fromkeys(reversed(named)))[::-1]
    looked_up = newest_last[cut_to([1] * len(newest_last), MOST_LOOKED_UP) :]
    kept = [stored for handle in looked_up if (stored := await _stored(store, handle, profile, owner)) is not None]
    too_large = cut_to([stored.size for stored in kept], room.bytes)
    # A single piece is never too large: it is fitted to what the API takes.
    first = max(cut_to([1] * len(kept), room.count), min(too_large, len(kept) - 1), 0)
    blocks: dict[str, Block] = {}
    for stored in kept[first:]:
        block = await _block(store, stored, owner, body)
        if block is not None:
            blocks[stored.handle] = block
    left_out = len(newest_last) - len(looked_up) + first
    return NamedContent(blocks, (_left_out(left_out),) if left_out else ())


def _left_out(count: int) -> Note:
    return Note(kind="named", text=f"{count:,} older handles left out: more than is put into one request")


async def _stored(store: ContentStore, handle: str, profile: ModelProfile, owner: str) -> Stored | None:
    try:
        stored = await store.metadata(handle, owner=owner)
    except ContentError:
        return None  # forged, someone else's, or gone: the line stays, and says what it was
    return stored if stored.handle == handle and shows(stored.media_type, profile) else None


async def _block(store: ContentStore, stored: Stored, owner: str, body: bytes) -> Block | None:
    try:
        content = await fetch_bytes(store, stored.handle, owner=owner, limit=_MOST_BYTES)
    except ContentError:
        return None

    def read() -> Block | None:
        data = pybase64.b64encode(content)
        if data in body:
            return None
        found = found_in(mend(data.decode("ascii")), stored.media_type)
        return None if found is None else block_for(found)

    return await anyio.to_thread.run_sync(read)
