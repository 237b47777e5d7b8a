"""Find the type of streamed content by its first bytes."""

import mimetypes
from collections.abc import AsyncGenerator, AsyncIterator

from gateway.core.model.media_types import HEAD_BYTES, inspect, normalise

_UNKNOWN_TYPE = "application/octet-stream"


async def peeked(chunks: AsyncIterator[bytes]) -> tuple[bytes, AsyncGenerator[bytes]]:
    """Return the beginning of the content, up to what its type needs, and a stream of the whole content."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    return head, _all(head, chunks)


def typed(head: bytes, declared: str | None, name: str | None = None) -> str:
    """Return the media type of content that begins with `head`: by its bytes, else as declared, else by its name.

    A declared type that says nothing (`application/octet-stream`) counts as none.
    """
    said = normalise(declared)
    known = inspect(head).media_type or (said if said != _UNKNOWN_TYPE else None)
    return known or _by_name(name) or _UNKNOWN_TYPE


def _by_name(name: str | None) -> str | None:
    media_type, encoding = mimetypes.guess_type(name) if name else (None, None)
    return None if encoding else normalise(media_type)  # `data.csv.gz` is not CSV


async def _all(head: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    if head:
        yield head
    async for chunk in rest:
        yield chunk
