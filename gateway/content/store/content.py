"""The `ContentStore` protocol that every store implements, and the metadata of stored content."""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from gateway.content.store.handles import URI_SCHEME
from gateway.core.model.kinds import Kind
from gateway.errors import ContentTooLarge

CHUNK_BYTES = 1024 * 1024
"""The maximum size of one chunk of content, in bytes."""

UNKNOWN_TYPE = "application/octet-stream"
"""The type of content that came without a type."""


@dataclass(frozen=True)
class Stored:
    """Metadata of stored content: `size` in bytes, `sha256` in hex, `expires_at` in seconds since 1970."""

    handle: str
    media_type: str
    name: str | None
    size: int
    sha256: str
    kind: Kind
    """Text is a `document`."""
    expires_at: float
    origin: str | None = None
    """The upstream whose result contained it; None if the host, its user or the operator stored it."""

    @property
    def uri(self) -> str:
        """The URI of the content as an MCP resource."""
        return f"{URI_SCHEME}{self.handle}"

    @property
    def etag(self) -> str:
        """The HTTP entity tag, with its quotes; it changes when the bytes do."""
        return f'"{self.sha256}"'


@dataclass(frozen=True)
class Opened:
    """Content that is open for reading: its metadata, and its bytes, once, in chunks of at most CHUNK_BYTES."""

    stored: Stored
    chunks: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


class ContentStore(Protocol):
    """Content behind handles. Each piece belongs to one owner; to every other owner it does not exist.

    Wherever a handle is expected, its `content://` URI also works, and so does the handle as a model may have
    misspelled it (`handle_from`). Each method that takes a handle raises UnknownHandle if the owner never had it (or
    deleted it), and ExpiredHandle if its content is gone: expired, or evicted to make room. All raise StoreUnavailable
    if the store cannot be reached, refuses, has no room left on its disk, or takes too long.
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
        """Keep `content`, given whole or as a stream. The same bytes of one owner keep their handle, with a new expiry.

        Nothing is visible before all of it is kept, and nothing is kept if its stream breaks off or the call is
        cancelled. Metadata first given for the same bytes (type, name, origin) stays.

        Raises ContentTooLarge if the content exceeds the store's limits, and whatever the stream raises.
        """
        ...

    def open(
        self, handle: str, *, owner: str, start: int = 0, end: int | None = None
    ) -> AbstractAsyncContextManager[Opened]:
        """Open the content from byte `start` up to `end` (None: the end); a range beyond the content is cut to it.

        Entering raises the errors named above; StoreUnavailable may also be raised during reading.
        """
        ...

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """Return the metadata of the content."""
        ...

    async def delete(self, handle: str, *, owner: str) -> None:
        """Delete the content now."""
        ...

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Return all content of this owner, the oldest first."""
        ...


async def fetch_bytes(
    store: ContentStore, handle: str, *, owner: str, start: int = 0, end: int | None = None, limit: int | None = None
) -> bytes:
    """Read the content, or its part from `start` up to `end`, into memory.

    Raises:
        ContentTooLarge: there are more than `limit` bytes; nothing was read.
        ContentError: as for `ContentStore.open`.
    """
    async with store.open(handle, owner=owner, start=start, end=end) as opened:
        size = opened.stored.size
        wanted = max(0, min(size, size if end is None else end) - max(0, start))
        if limit is not None and wanted > limit:
            raise ContentTooLarge(
                f"the content of {opened.stored.handle} has {wanted:,} bytes, more than the {limit:,} taken here",
                remedy="ask the tool that returned it for less at a time",
            )
        chunks = [chunk async for chunk in opened]
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
