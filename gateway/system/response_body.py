"""Reading the body of an HTTP response within a bound, also if it is compressed."""

import httpx2

ACCEPTED_ENCODINGS = "gzip, deflate"
"""For the header `accept-encoding` of requests whose responses are read here."""

_DECODED = frozenset({"", "identity", "gzip", "deflate"})


async def body_of(response: httpx2.Response, most: int) -> bytes | None:
    """Read a body, decompressed, of at most `most` bytes; None if it is larger. Raises httpx2's errors."""
    if response.headers.get("content-encoding", "").strip().lower() not in _DECODED:
        raise httpx2.DecodingError("compressed in a way that was not asked for")
    parts: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes(64 * 1024):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return None
    return b"".join(parts)
