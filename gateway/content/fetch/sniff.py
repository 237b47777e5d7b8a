"""What streamed content is, by its first bytes."""

from collections.abc import AsyncGenerator, AsyncIterator

from gateway.core.model.media_types import HEAD_BYTES, inspect, normalise

_UNTOLD = "application/octet-stream"


async def peeked(chunks: AsyncIterator[bytes]) -> tuple[bytes, AsyncGenerator[bytes]]:
    """The beginning of the content (as much as is needed to tell its type, less where there is less), and all of it."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    return head, _all(head, chunks)


def typed(head: bytes, declared: str | None) -> str:
    """The media type of content that begins so: what it is, else what it is said to be."""
    return inspect(head).media_type or normalise(declared) or _UNTOLD


async def _all(head: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    if head:
        yield head
    async for chunk in rest:
        yield chunk
