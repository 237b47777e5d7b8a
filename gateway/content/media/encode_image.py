"""Encode images: choose the type and the quality. The result has no metadata: no EXIF, no GPS.

Encodings are tried from the best to the smallest, until one is within the target's bytes. The source's own type comes
first if it can be written, then:

    drawings   PNG, lossless WebP, PNG with a palette, WebP, JPEG
    photos     JPEG, WebP (whose quality 60 needs fewer bytes than JPEG's), PNG

Lossy types are encoded at the best quality that fits. If nothing fits, all are tried again on a smaller image.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

from PIL import Image, ImageChops

from gateway.content.media import pillow
from gateway.content.media.colours import is_grey, on_white
from gateway.core.model.effects import ImageTarget
from gateway.errors import MediaError

LARGEST_EDGE = {"image/png": 1_000_000, "image/jpeg": 65_500, "image/webp": 16_383, "image/gif": 65_535}
"""The types that can be encoded, and the longest edge that each type (or its encoder) supports."""

ENCODABLE = frozenset(LARGEST_EDGE)

_BEST, _LEAST = 90, 60
"""Qualities of JPEG and WebP: without a limit, and the lowest for photos, below which a smaller image is better."""

_LEAST_OF_DRAWINGS = 25
"""The lowest quality for drawings: text is far more legible in it than smaller text of the same bytes."""

_CLOSE_ENOUGH = 6
"""The difference in quality at which the search ends, because nobody sees it."""

_PALETTES = (256, 64, 16)
_WORTH_A_PALETTE = 256 * 256
"""The number of pixels below which a palette saves almost nothing."""

_FAR = 1.5
_SMALLEST_EDGE = 16
_STRIPS, _STRIP = 12, 8
"""The number of strips that the size of a PNG is estimated from, and their height. A PNG is compressed row by row."""

_CERTAIN = 1.25
"""How far above the limit an estimate must be for the encoding itself to be left out."""

_FULL_CHROMA = 0
"""4:4:4, for drawings: half the colour resolution blurs coloured text."""


class Encoded(NamedTuple):
    """An encoded image."""

    content: bytes
    media_type: str
    size: tuple[int, int]


def encode(image: Image.Image, source_type: str, target: ImageTarget, *, graphic: bool) -> Encoded:
    """Encode `image` (L, LA, RGB or RGBA) in the most suitable type of `target`, scaled down further if necessary.

    `graphic` means a drawing or a screenshot. Raises MediaError if even a tiny image exceeds `max_bytes`.
    """
    rungs = _ladder(image, source_type, target.types, graphic)
    limit = target.max_bytes or math.inf
    # Pillow writes the contents of `info`, including comments and profiles, and copies it to derived images.
    image.info = {}
    whole, scale = image, 1.0
    sizes: dict[Rung, float] = {}
    while True:
        made: dict[Rung, float] = {}
        for rung, attempt in _attempts(image, rungs, graphic, limit, sizes):
            if isinstance(attempt, bytes) and len(attempt) <= limit:
                return Encoded(attempt, rung.media_type, image.size)
            size = len(attempt) if isinstance(attempt, bytes) else attempt
            made[rung] = min(size, made.get(rung, math.inf))
        sizes |= made
        smallest = min(sizes.values(), default=math.inf)
        # Bytes shrink about as fast as the area; too large a step would cost sharpness for nothing.
        step = min(0.85, max(0.5, 0.95 * math.sqrt(limit / smallest))) if smallest < math.inf else 0.8
        scale *= step
        sizes = {rung: size * step * step for rung, size in sizes.items()}
        smaller = (max(1, round(whole.width * scale)), max(1, round(whole.height * scale)))
        if max(smaller) < _SMALLEST_EDGE:
            named = " or ".join(dict.fromkeys(rung.media_type for rung in rungs))
            raise MediaError(f"it cannot be made to fit {limit:,} bytes as {named}")
        image = pillow.resized(whole, smaller)


Attempt: TypeAlias = bytes | float
"""An encoded image, or its estimated size in bytes if encoding it was not worth the time."""


class Rung(NamedTuple):
    """One way to encode: its type, and a function that tries it on an image (image, graphic, limit in bytes)."""

    media_type: str
    attempts: Callable[[Image.Image, bool, float], Iterator[Attempt]]


def _ladder(image: Image.Image, source_type: str, types: tuple[str, ...], graphic: bool) -> tuple[Rung, ...]:
    """Return the ways to try, best first. GIF is used only if there is nothing else."""
    if graphic:
        suitable = (_PNG, _WEBP_LOSSLESS, _PNG_PALETTE, _WEBP, _JPEG)
    elif image.mode in ("LA", "RGBA"):
        suitable = (_PNG, _WEBP, _JPEG)
    else:
        suitable = (_JPEG, _WEBP, _PNG)
    taken = [rung for rung in suitable if rung.media_type in types]
    own = next((rung for rung in taken if rung.media_type == source_type), None)
    return tuple(([own] if own else []) + [rung for rung in taken if rung is not own]) or (_GIF,)


def _attempts(
    image: Image.Image, rungs: tuple[Rung, ...], graphic: bool, limit: float, expected: Mapping[Rung, float]
) -> Iterator[tuple[Rung, Attempt]]:
    """Try the ways to encode, except those that are far from fitting, judged by their sizes for a larger image."""
    for rung in rungs:
        if max(image.size) <= LARGEST_EDGE[rung.media_type] and expected.get(rung, 0) <= _FAR * limit:
            for attempt in rung.attempts(image, graphic, limit):
                yield rung, attempt


def _png(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if graphic:
        yield _saved(_lean(image), "PNG")
        return
    expected = _expected_png(image)
    yield expected if expected > _CERTAIN * limit else _saved(image, "PNG")


def _png_palette(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if image.mode == "L":
        return
    for colours in _PALETTES:
        attempt = _saved(_with_palette(image, colours), "PNG")
        yield attempt
        if len(attempt) > 2 * limit:
            return


def _expected_png(image: Image.Image) -> float:
    """Estimate the bytes of a photo's PNG from some of its rows: encoding all of it may take seconds."""
    width, height = image.size
    apart = height // _STRIPS
    if apart < 2 * _STRIP:
        return 0.0
    strips = Image.new(image.mode, (width, _STRIPS * _STRIP))
    for index in range(_STRIPS):
        top = index * apart + (apart - _STRIP) // 2
        strips.paste(image.crop((0, top, width, top + _STRIP)), (0, index * _STRIP))
    return len(_saved(strips, "PNG")) * height / strips.height


def _jpeg(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    flat = on_white(image)
    options: dict[str, Any] = {"subsampling": _FULL_CHROMA} if graphic else {}
    yield _best_quality(lambda quality: _saved(flat, "JPEG", quality=quality, **options), _least(graphic), limit)


def _webp(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    # WebP halves the colour resolution; this option at least keeps the edges of drawings sharp.
    options: dict[str, Any] = {"use_sharp_yuv": True} if graphic else {}
    yield _best_quality(lambda quality: _saved(image, "WEBP", quality=quality, **options), _least(graphic), limit)


def _least(graphic: bool) -> int:
    return _LEAST_OF_DRAWINGS if graphic else _LEAST


def _webp_lossless(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    yield _saved(image, "WEBP", lossless=True)


def _gif(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    yield _saved(image, "GIF")


_PNG = Rung("image/png", _png)
_PNG_PALETTE = Rung("image/png", _png_palette)
_JPEG = Rung("image/jpeg", _jpeg)
_WEBP = Rung("image/webp", _webp)
_WEBP_LOSSLESS = Rung("image/webp", _webp_lossless)
_GIF = Rung("image/gif", _gif)


def _best_quality(save: Callable[[int], bytes], least: int, limit: float) -> Attempt:
    """Return the encoding of the highest quality from `_BEST` to `least` within `limit`, else the smallest length."""
    best = _BEST
    whole = save(best)
    if len(whole) <= limit:
        return whole
    found = save(least)
    if len(found) > limit:
        return float(len(found))
    while best - least > _CLOSE_ENOUGH:
        middle = (best + least) // 2
        attempt = save(middle)
        if len(attempt) <= limit:
            least, found = middle, attempt
        else:
            best = middle
    return found


def _lean(image: Image.Image) -> Image.Image:
    """Return the image in grey or with a palette if that is lossless and worthwhile."""
    colours = image.getcolors(256) if image.mode == "RGB" and image.width * image.height > _WORTH_A_PALETTE else None
    if colours is None:
        return image
    if all(is_grey(colour) for _, colour in colours):
        return image.convert("L")
    few = _with_palette(image, len(colours))
    return image if ImageChops.difference(few.convert("RGB"), image).getbbox() else few


def _with_palette(image: Image.Image, colours: int) -> Image.Image:
    method = Image.Quantize.MEDIANCUT if image.mode == "RGB" else Image.Quantize.FASTOCTREE
    source = image.convert("RGBA") if image.mode == "LA" else image
    return source.quantize(colours, method=method, dither=Image.Dither.NONE)


def _saved(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()
