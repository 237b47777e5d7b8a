"""Base64 as text: mending what is only badly wrapped, measuring it, and looking at its beginning."""

import binascii
import re
from typing import NamedTuple

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SPACE = bytes(code for code in range(128) if chr(code).isspace())
_URL_SAFE = str.maketrans("-_", "+/")
_WHITE_SPACE = "white space"
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
    if not data.isascii():  # there may be white space beyond ASCII
        data = "".join(data.split())
        if not data.isascii():
            return Mended(None, media_type, ())
        mended.append(_WHITE_SPACE)
    other = _outside(data)
    if (without := other.translate(None, _SPACE)) != other:
        data, other = "".join(data.split()), without
        mended.append(_WHITE_SPACE)
    body = data.rstrip("=")
    if other := other[: len(other) - (len(data) - len(body))]:
        if "+" in body or "/" in body or other.translate(None, b"-_"):
            return Mended(None, media_type, ())
        body = body.translate(_URL_SAFE)
        mended.append(URL_SAFE)
    if len(body) % 4 == 1 or not body:
        return Mended(None, media_type, ())
    whole = body + "=" * (-len(body) % 4)
    if len(whole) != len(data):
        mended.append("its padding")
    # Nothing was changed: hand back the very string that came, not a copy of it.
    return Mended(whole if mended else text, media_type, tuple(mended))


def _outside(text: str) -> bytes:
    """The characters of an ASCII text that are not in the standard alphabet, in order; the padding is none of it."""
    # One pass in C: a regular expression takes seventy times as long, and every picture passes here.
    return text.encode("ascii").translate(None, _ALPHABET)


def decoded_size(data: str) -> int:
    """How many bytes well-formed base64 stands for."""
    return len(data) // 4 * 3 - (2 if data.endswith("==") else 1 if data.endswith("=") else 0)


def head(data: str, size: int) -> bytes:
    """At most the first `size` bytes of well-formed base64; empty when it is not."""
    try:
        return binascii.a2b_base64(data[: (size + 2) // 3 * 4])[:size]
    except ValueError:
        return b""


def decode_tail(data: str, size: int) -> bytes:
    """At most the last `size` bytes of well-formed base64; empty when it is not."""
    try:
        return binascii.a2b_base64(data[-((size + 2) // 3 * 4 + 4) :])[-size:]
    except ValueError:
        return b""
