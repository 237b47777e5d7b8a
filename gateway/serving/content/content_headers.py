"""Headers for content downloads, which keep browsers from executing the content."""

import re
from urllib.parse import quote

from gateway.content.store import Stored
from gateway.core.model.media_types import extension, family

RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif", "image/tiff"})
"""Types that a page may show inline, because they cannot contain scripts."""

_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_UNTOLD = "application/octet-stream"
_TOKENS = re.compile(r"[^A-Za-z0-9 !#$&+.^_`|~()\[\]{}@=,'-]")
_LONGEST = 200


def headers_of(stored: Stored) -> dict[str, str]:
    """Return the headers for this content, except its length."""
    is_plain = _TYPE.fullmatch(stored.media_type) is not None
    media_type = stored.media_type if is_plain else _UNTOLD
    charset = "; charset=utf-8" if family(media_type) == "text" else ""
    shown = media_type in RASTER
    headers = {
        "Content-Type": f"{media_type}{charset}",
        "Content-Disposition": _disposition("inline" if shown else "attachment", stored),
        "ETag": stored.etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=3600, immutable",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return headers if shown else {**headers, "Content-Security-Policy": "sandbox; default-src 'none'"}


def _disposition(how: str, stored: Stored) -> str:
    """RFC 6266: a name that every client can read, and the real one (RFC 8187) if it differs."""
    name = (stored.name or f"{stored.handle}.{extension(stored.media_type)}")[-_LONGEST:]
    name = re.split(r"[\\/]", name)[-1] or stored.handle
    simple = _TOKENS.sub("_", name)
    real = "" if simple == name else f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    return f'{how}; filename="{simple}"{real}'
