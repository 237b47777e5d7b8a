"""Find the type of streamed content by its first bytes."""

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


def typed(head: bytes, declared: str | None) -> str:
    """Return the media type of content that begins with `head`: by its bytes, else as declared."""
    return inspect(head).media_type or normalise(declared) or _UNKNOWN_TYPE


async def _all(head: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    if head:
        yield head
    async for chunk in rest:
        yield chunk
