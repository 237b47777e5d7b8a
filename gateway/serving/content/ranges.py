"""Range and conditional requests for content (RFC 9110, sections 13 and 14)."""

import re
from dataclasses import dataclass

from starlette.datastructures import Headers

_RANGE = re.compile(r"\s*bytes\s*=\s*(?:(\d{1,18})\s*-\s*(\d{1,18})?|-\s*(\d{1,18}))\s*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True)
class Part:
    """The bytes to send: from `start` up to `end`, of content of `size` bytes. `status` is 200, 206 or 416."""

    status: int
    start: int
    end: int
    size: int

    def headers(self) -> dict[str, str]:
        """The headers for this part."""
        if self.status == 416:
            return {"Content-Range": f"bytes */{self.size}", "Content-Length": "0"}
        length = {"Content-Length": str(self.end - self.start)}
        return {**length, "Content-Range": f"bytes {self.start}-{self.end - 1}/{self.size}"} if self.is_part else length

    @property
    def is_part(self) -> bool:
        """Whether only a part was requested."""
        return self.status == 206


def part_of(headers: Headers, size: int, etag: str) -> Part:
    """Return the part that a GET requests.

    Several ranges at once, other units and invalid ranges give the whole, as the standard allows; so does an `If-Range`
    that names anything but the present content. Times are not compared, because content never changes.
    """
    whole = Part(200, 0, size, size)
    wanted = _RANGE.fullmatch(headers.get("range", ""))
    if wanted is None or headers.get("if-range", etag).strip() != etag:
        return whole
    first, last, suffix = (int(one) if one is not None else None for one in wanted.groups())
    if first is None:
        start, end = size - min(suffix or 0, size), size
    elif last is not None and last < first:
        return whole
    else:
        start, end = first, size if last is None else min(last + 1, size)
    return Part(206, start, end, size) if start < end else Part(416, 0, 0, size)


def is_known(headers: Headers, etag: str) -> bool:
    """Whether the client already has the content (`If-None-Match`)."""
    return _names(headers, "if-none-match", etag)


def is_another(headers: Headers, etag: str) -> bool:
    """Whether the client accepts only different content (`If-Match`)."""
    return "if-match" in headers and not _names(headers, "if-match", etag)


def _names(headers: Headers, header: str, etag: str) -> bool:
    given = ",".join(headers.getlist(header)).strip()
    return given == "*" or etag in _TAG.findall(given)
