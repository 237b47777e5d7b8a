"""The model API's answer, passed back to the client; its beginning can be inspected first."""

import logging
import zlib
from collections.abc import AsyncIterator

import httpx2
from starlette.types import Send

from gateway.core.fact_words import plain
from gateway.serving.model_proxy.headers import REPAIRS, back

logger = logging.getLogger(__name__)

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
"""Makes zlib detect which of the two formats it is."""


class UpstreamAnswer:
    """An answer whose headers have arrived. It must be closed."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._chunks = response.aiter_raw()
        self._read: list[bytes] = []
        self._broken: httpx2.TransportError | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    async def text(self, most: int) -> str:
        """Return the whole body as text; empty if it is longer than `most` bytes, breaks off, or cannot be decoded."""
        size = 0
        try:
            async for chunk in self._chunks:
                self._read.append(chunk)
                size += len(chunk)
                if size > most:
                    return ""
        except httpx2.TransportError as error:
            self._broken = error
            return ""
        encoding = self._response.headers.get("content-encoding", "").lower()
        return _unpacked(b"".join(self._read), encoding, most).decode("utf-8", "replace")

    async def pass_back(self, send: Send, repairs: int | None) -> None:
        """Pass the answer to the client byte for byte, with the number of repairs if the request was examined."""
        headers = back(self._response.headers.raw)
        if repairs is not None:
            headers.append((REPAIRS, str(repairs).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        try:
            async for chunk in self._all():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except httpx2.TransportError as error:
            # The answer stays unfinished, and uvicorn closes the connection, so the client sees that it was cut off.
            logger.warning("the model API's answer broke off: %s", plain(str(error), 200))
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _all(self) -> AsyncIterator[bytes]:
        for chunk in self._read:
            yield chunk
        if self._broken is not None:
            raise self._broken
        async for chunk in self._chunks:
            yield chunk

    async def close(self) -> None:
        """Release the connection."""
        await self._response.aclose()


def _unpacked(content: bytes, encoding: str, most: int) -> bytes:
    """Decode the content, cut to `most` bytes; empty if the encoding is unknown or the content does not follow it."""
    if encoding in ("", "identity"):
        return content
    if encoding not in ("gzip", "deflate"):
        return b""
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, most)
    except zlib.error:
        return b""
