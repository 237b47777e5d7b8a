"""What every store is: the Protocol, and what is known of a piece of content without reading it."""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from gateway.content.store.handles import URI_SCHEME
from gateway.core.model.kinds import Kind
from gateway.errors import ContentTooLarge

CHUNK_BYTES = 1024 * 1024
"""The most bytes that are given out at once."""

UNTOLD_TYPE = "application/octet-stream"
"""The type of content whose type nobody told."""


@dataclass(frozen=True)
class Stored:
    """What is known of stored content: `size` in bytes, `sha256` in hex, `expires_at` in seconds since 1970."""

    handle: str
    media_type: str
    name: str | None
    size: int
    sha256: str
    kind: Kind
    """Text is a `document`."""
    expires_at: float
    origin: str | None = None
    """The upstream whose result it came with; None: the host, its user or the operator put it in."""

    @property
    def uri(self) -> str:
        """The content as an MCP resource."""
        return f"{URI_SCHEME}{self.handle}"

    @property
    def etag(self) -> str:
        """What changes when the bytes do, as HTTP writes it: with its quotes."""
        return f'"{self.sha256}"'


@dataclass(frozen=True)
class Opened:
    """Content that is being read: what is known of it, and its bytes in pieces of at most CHUNK_BYTES, once."""

    stored: Stored
    chunks: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


class ContentStore(Protocol):
    """Content behind handles. Each piece belongs to one owner; to every other owner it does not exist.

    Wherever a handle is taken, its `content://` uri will do, and so will the handle as a model may have spelled it
    (`handle_from`). Each method that takes one raises UnknownHandle when the owner never had it (or deleted it), and
    ExpiredHandle when it was kept and is gone: expired, or evicted to make room. Each raises StoreUnavailable when
    the store cannot be reached, refuses, has no room left on its disk, or takes too long.
    """

    async def put(
        self,
        content: bytes | AsyncIterable[bytes],
        *,
        owner: str,
        media_type: str,
        name: str | None = None,
        origin: str | None = None,
    ) -> Stored:
        """Keep `content`, whole or as it comes. The same bytes of the same owner keep their handle, and live anew.

        Nothing is to be seen of it before all of it is kept; when its stream breaks off, or this is cancelled, nothing
        ever is. What was known first of the same bytes (type, name, origin) stays.

        Raises ContentTooLarge when it is larger than what may be kept, and whatever the stream raises.
        """
        ...

    def open(
        self, handle: str, *, owner: str, start: int = 0, end: int | None = None
    ) -> AbstractAsyncContextManager[Opened]:
        """The content from byte `start` up to `end` (None: the last); what lies outside of it is left out.

        Entering raises what is said above; StoreUnavailable may also come while it is read.
        """
        ...

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """What is known of the content."""
        ...

    async def delete(self, handle: str, *, owner: str) -> None:
        """Forget the content now."""
        ...

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Everything of this owner, the oldest first."""
        ...


async def fetch_bytes(
    store: ContentStore, handle: str, *, owner: str, start: int = 0, end: int | None = None, limit: int | None = None
) -> bytes:
    """The content, or the part of it from `start` up to `end`, in memory.

    Raises:
        ContentTooLarge: it has more than `limit` bytes; none of them was read.
        ContentError: as ContentStore.open.
    """
    async with store.open(handle, owner=owner, start=start, end=end) as opened:
        size = opened.stored.size
        wanted = max(0, min(size, size if end is None else end) - max(0, start))
        if limit is not None and wanted > limit:
            raise ContentTooLarge(
                f"the content of {opened.stored.handle} has {wanted:,} bytes, more than the {limit:,} taken here"
            )
        chunks = [chunk async for chunk in opened]
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
