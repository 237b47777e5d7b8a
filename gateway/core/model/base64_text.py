"""Base64 as text: mending what is only badly wrapped, measuring it, and looking at its beginning."""

import binascii
import re
from typing import NamedTuple

_BROKEN = re.compile(r"[^A-Za-z0-9+/]")
_SPACE = re.compile(r"\s+")
URI_PREFIX = "a data: prefix"
URL_SAFE = "the URL-safe alphabet"
_DATA_URI = re.compile(r"\Adata:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


class Mended(NamedTuple):
    """Well-formed standard base64 (None: not base64 at all), the type that a `data:` prefix named, what was mended."""

    data: str | None
    media_type: str | None
    mended: tuple[str, ...]


def mend(text: str) -> Mended:
    """Standard, padded, unbroken base64 from what upstreams really send.

    Takes off a `data:` prefix and white space, turns the URL-safe alphabet into the standard one, and adds missing
    padding (RFC 4648 sections 3.2, 4 and 5). Anything else that is not base64 gives `data=None`.
    """
    media_type: str | None = None
    mended: list[str] = []
    data = text
    if prefix := _DATA_URI.match(data[:1024]):
        if ";base64" not in prefix[2].lower():
            return Mended(None, prefix[1] or None, ())
        media_type, data = prefix[1] or None, data[prefix.end() :]
        mended.append(URI_PREFIX)
    if _SPACE.search(data):
        data = _SPACE.sub("", data)
        mended.append("white space")
    body = data.rstrip("=")
    if _BROKEN.search(body):
        if "+" in body or "/" in body:
            return Mended(None, media_type, ())
        body = body.replace("-", "+").replace("_", "/")
        if _BROKEN.search(body):
            return Mended(None, media_type, ())
        mended.append(URL_SAFE)
    if len(body) % 4 == 1 or not body:
        return Mended(None, media_type, ())
    whole = body + "=" * (-len(body) % 4)
    if len(whole) != len(data):
        mended.append("its padding")
    # Nothing was changed: hand back the very string that came, not a copy of it.
    return Mended(whole if mended else text, media_type, tuple(mended))


def decoded_size(data: str) -> int:
    """How many bytes well-formed base64 stands for."""
    return len(data) // 4 * 3 - (2 if data.endswith("==") else 1 if data.endswith("=") else 0)


def head(data: str, size: int) -> bytes:
    """At most the first `size` bytes of well-formed base64; empty when it is not."""
    try:
        return binascii.a2b_base64(data[: (size + 2) // 3 * 4])[:size]
    except ValueError:
        return b""
