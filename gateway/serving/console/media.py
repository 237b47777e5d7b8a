"""Media of results for the console: kept while they are looked at, and sent so that they can do nothing."""

import base64
import hashlib
import threading
from collections import OrderedDict
from typing import NamedTuple

from starlette.responses import Response

from gateway.core.model.effects import FitImage, Fitted, ImageTarget, MediaWork, ReadDocument, RenderPages
from gateway.core.model.media_types import PixelSize
from gateway.errors import MediaError

SHOWN_AS_IT_IS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that browsers draw themselves, in a size that costs them little."""
PLAYED = frozenset(
    {"audio/wav", "audio/x-wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac", "audio/webm"}
)
PDF = "application/pdf"

MOST_PIXELS = 25_000_000
"""The number of pixels above which a browser gets a smaller picture."""
DRAWN_EDGE = 2_000
_MOST_BYTES = 128 * 1024 * 1024
_PAGES = 200

INERT = {
    "Cache-Control": "private, max-age=3600, immutable",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of content from upstreams: it is data, whatever is in it."""

_DRAWN = ImageTarget(types=("image/png", "image/jpeg", "image/webp"), max_edge=DRAWN_EDGE)


class Medium(NamedTuple):
    """Content: its base64, and its media type as sniffed, or else as declared."""

    data: str
    media_type: str
    pixels: PixelSize | None = None


class MediaShelf:
    """The media of what was looked at last, by their SHA-256, within a number of bytes. Threads may share it."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._media: OrderedDict[str, Medium] = OrderedDict()
        self._bytes = 0
        self._one_at_a_time = threading.Lock()

    def put(self, medium: Medium) -> str:
        """Keep the medium, and return the name that it is found by."""
        name = hashlib.sha256(f"{medium.media_type}\n{medium.data}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._one_at_a_time:
            if name in self._media:
                self._media.move_to_end(name)
                return name
            self._media[name] = medium
            self._bytes += len(medium.data)
            while self._bytes > self._most and len(self._media) > 1:
                _, dropped = self._media.popitem(last=False)
                self._bytes -= len(dropped.data)
            return name

    def find(self, name: str) -> Medium | None:
        """Return the medium, if it is still here."""
        return self._media.get(name)


def is_drawn_as_it_is(media_type: str, pixels: PixelSize | None) -> bool:
    """Whether a browser can be given this image itself."""
    return media_type in SHOWN_AS_IT_IS and pixels is not None and pixels[0] * pixels[1] <= MOST_PIXELS


def as_it_is(medium: Medium) -> Response:
    """Return the response with the bytes themselves: to be drawn or played if that is safe, else to be saved."""
    content = _bytes(medium)
    if is_drawn_as_it_is(medium.media_type, medium.pixels) or medium.media_type in PLAYED:
        return Response(content, media_type=medium.media_type, headers=INERT)
    return saved(medium)


def saved(medium: Medium) -> Response:
    """Return the response with the bytes as a file to be saved."""
    suffix = medium.media_type.rpartition("/")[2].partition("+")[0].partition(";")[0]
    ending = suffix if suffix.isascii() and suffix.isalnum() and len(suffix) < 12 else "bin"
    headers = {**INERT, "Content-Disposition": f'attachment; filename="content.{ending}"'}
    return Response(_bytes(medium), media_type="application/octet-stream", headers=headers)


async def drawn(medium: Medium, media: MediaWork) -> Response:
    """Return the response with a picture of an image: small enough, and only pixels. Raises MediaError."""
    fitted = await media.run(FitImage("console", medium.data, medium.media_type, _DRAWN))
    return _picture(fitted)


async def drawn_page(medium: Medium, page: int, media: MediaWork) -> Response:
    """Return the response with a picture of a page of a document, counted from 1. Raises MediaError."""
    if medium.media_type != PDF or not 1 <= page <= _PAGES:
        raise MediaError("there is no such page to draw")
    rendered = await media.run(RenderPages("console", medium.data, (page,), _DRAWN))
    image = rendered.images[0]
    if not isinstance(image, Fitted):
        raise MediaError(image.reason)
    return _picture(image)


async def page_count(medium: Medium, media: MediaWork) -> int:
    """Return the number of a document's pages that can be drawn. Raises MediaError."""
    read = await media.run(ReadDocument("console", medium.data, max_pages=1, max_chars=1))
    return min(read.pages, _PAGES)


def _picture(image: Fitted) -> Response:
    return Response(base64.b64decode(image.data), media_type=image.media_type, headers=INERT)


def _bytes(medium: Medium) -> bytes:
    try:
        return base64.b64decode(medium.data)
    except ValueError:
        return b""
