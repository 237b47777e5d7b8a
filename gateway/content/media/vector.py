"""Render SVG. Runs in a worker.

resvg reads every file that an SVG names by its path, including other SVGs. So it never gets the original SVG, but one
rewritten by `gateway.content.media.svg`, in which nothing refers to anything outside.
"""

import math
import threading
import zlib
from typing import NamedTuple

import resvg_py

from gateway.content.media.fonts import fonts
from gateway.content.media.images import clamped
from gateway.content.media.svg import Cleaned, clean
from gateway.core.model.effects import Crop
from gateway.core.model.media_types import PixelSize, inspect
from gateway.errors import MediaError

MOST_EDGE = 2_000
"""The longer edge in pixels if the target does not limit it."""

LEAST_EDGE = 512
"""The minimum for the longer edge: icons cost nothing, and nobody recognises 16 pixels."""

USUAL_EDGE = 1_024
"""The longer edge of a drawing without a declared size."""

_STACK = 64 * 1024 * 1024
"""Bytes of stack for rendering: 300 nested groups overflow the 8 MB (on some systems 1 MB) of a main thread."""

_ROUNDING = 1e-6
MOST_UNPACKED = 32 * 1024 * 1024


class Drawn(NamedTuple):
    """The PNG, the size that the SVG declares, and whether the PNG shows only the requested part.

    An SVG that declares no size has the size of the PNG.
    """

    png: bytes
    natural: PixelSize
    is_part: bool


def draw(content: bytes, max_edge: int | None, crop: Crop | None, max_pixels: int) -> Drawn:
    """Render the SVG (or gzipped SVG) as PNG on white; only the part in `crop` if the SVG declares its size.

    The longer edge has the SVG's own pixels, at least `LEAST_EDGE`, at most `max_edge` (None: `MOST_EDGE`). Raises
    MediaError if it is not an SVG, declares entities, or has nothing in `crop`.
    """
    cleaned = clean(gunzipped(content), max_pixels)
    max_edge = max_edge or MOST_EDGE
    if cleaned.size is None:
        png = _drawn(cleaned, cleaned.text, PixelSize(min(USUAL_EDGE, max_edge), min(USUAL_EDGE, max_edge)))
        return Drawn(png, inspect(png).size or PixelSize(1, 1), is_part=False)
    if crop is None:
        return Drawn(_drawn(cleaned, cleaned.text, _size(cleaned.size, max_edge, max_pixels)), cleaned.size, False)
    left, top, right, bottom = clamped(crop, cleaned.size)
    part = PixelSize(right - left, bottom - top)
    # The whole is wrapped in an svg whose view box is the part, so that the part is sharp however large the whole is.
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {top} {part.width} {part.height}"'
    framed = f'{frame} width="{part.width}" height="{part.height}">{cleaned.text}</svg>'
    return Drawn(_drawn(cleaned, framed, _size(part, max_edge, max_pixels)), cleaned.size, is_part=True)


def _drawn(cleaned: Cleaned, text: str, box: PixelSize) -> bytes:
    """Render `text` as large as fits into `box`, on a stack that is deep enough for its nesting."""
    results: list[bytes | BaseException] = []

    def draw_here() -> None:
        try:
            results.append(_rasterized(cleaned, text, box))
        except BaseException as error:  # raised again by the waiting thread
            results.append(error)

    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=draw_here)
        thread.start()
    except RuntimeError as error:
        raise MemoryError from error
    finally:
        threading.stack_size(before)
    thread.join()
    if isinstance(result := results[0], BaseException):
        raise result
    return result


def _rasterized(cleaned: Cleaned, text: str, box: PixelSize) -> bytes:
    available = fonts() if cleaned.has_text else None
    try:
        return resvg_py.svg_to_bytes(
            svg_string=text,
            background="white",
            width=box.width,
            height=box.height,
            skip_system_fonts=available is None,
            font_files=available.files if available else None,
            font_family=available.sans if available else None,
            # resvg falls back to its serif family for every missing family, and most of those are sans.
            serif_family=available.sans if available else None,
            sans_serif_family=available.sans if available else None,
            monospace_family=available.monospace if available else None,
        )
    except ValueError as error:
        raise MediaError(f"it cannot be drawn: {' '.join(str(error).split())[:200]}") from error


def gunzipped(content: bytes) -> bytes:
    """Decompress `content` if it is gzipped (svgz). Raises MediaError beyond `MOST_UNPACKED` bytes."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    gunzip = zlib.decompressobj(wbits=31)
    try:
        plain = gunzip.decompress(content, MOST_UNPACKED + 1)
    except zlib.error as error:
        raise MediaError("it begins like gzip but cannot be unpacked") from error
    if len(plain) > MOST_UNPACKED:
        raise MediaError(f"it unpacks to more than {MOST_UNPACKED:,} bytes")
    return plain


def _size(size: PixelSize, max_edge: int, max_pixels: int) -> PixelSize:
    """Return the box to render `size` into. Drawings keep their proportions, so the shorter side is rounded up."""
    longer, shorter = max(size), min(size)
    scale = min(max_edge / longer, max(LEAST_EDGE / longer, 1.0), math.sqrt(max_pixels / (longer * shorter)))
    long = max(1, math.floor(longer * scale + _ROUNDING))
    short = max(1, min(math.ceil(shorter * scale - _ROUNDING), max_pixels // long))
    return PixelSize(long, short) if size.width >= size.height else PixelSize(short, long)
