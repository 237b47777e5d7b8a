"""From pixels to bytes: which type, and how small. What is encoded here has no metadata: no EXIF, no GPS.

Attempts are made from the best to the smallest, until one is within the target's bytes. The source's own type comes
first where it can be made, then:

    drawings   PNG, WebP without loss, PNG with a palette, WebP, JPEG
    photos     JPEG, WebP (whose 60 needs fewer bytes than JPEG's), PNG

Where there is loss, the best quality that fits is searched for. When nothing fits, all of it again on a smaller image.
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
"""What can be encoded, and the longest edge that the type (or its encoder) takes."""

ENCODABLE = frozenset(LARGEST_EDGE)

_BEST, _LEAST = 90, 60
"""Qualities of JPEG and WebP: of what is not limited, and of a photo that would be no worse if it were smaller."""

_LEAST_OF_DRAWINGS = 25
"""Text of this quality is more legible than smaller text of a better one with the same bytes, by far."""

_CLOSE_ENOUGH = 6
"""When the search for a quality ends: nobody sees a difference of so much."""

_PALETTES = (256, 64, 16)
_WORTH_A_PALETTE = 256 * 256
"""Pixels below which a palette saves next to nothing."""

_FAR = 1.5
_SMALLEST_EDGE = 16
_TILE = 128
_FULL_CHROMA = 0
"""4:4:4, for drawings: halved colour resolution frays coloured text."""


class Encoded(NamedTuple):
    """An encoded image."""

    content: bytes
    media_type: str
    size: tuple[int, int]


def encode(image: Image.Image, source_type: str, target: ImageTarget, *, graphic: bool) -> Encoded:
    """`image` (L, LA, RGB or RGBA) in the type of `target` that suits it, scaled down further if it must be.

    `graphic` says that it is a drawing or a screenshot. Raises MediaError when even a tiny image is over `max_bytes`.
    """
    rungs = _ladder(image, source_type, target.types, graphic)
    limit = target.max_bytes or math.inf
    # Pillow writes what `info` holds, comments and profiles among it, and hands it on to each image made from this.
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
        # Bytes go down about as fast as the area does; a step that is too bold would cost sharpness for nothing.
        step = min(0.85, max(0.5, 0.95 * math.sqrt(limit / smallest))) if smallest < math.inf else 0.8
        scale *= step
        sizes = {rung: size * step * step for rung, size in sizes.items()}
        smaller = (max(1, round(whole.width * scale)), max(1, round(whole.height * scale)))
        if max(smaller) < _SMALLEST_EDGE:
            named = " or ".join(dict.fromkeys(rung.media_type for rung in rungs))
            raise MediaError(f"it cannot be made to fit {limit:,} bytes as {named}")
        image = pillow.resized(whole, smaller)


Attempt: TypeAlias = bytes | float
"""An encoding, or how many bytes it would have had, where it was not worth the time."""


class Rung(NamedTuple):
    """One way to encode: the type it makes, and its attempts at an image (is it graphic?, how many bytes?)."""

    media_type: str
    attempts: Callable[[Image.Image, bool, float], Iterator[Attempt]]


def _ladder(image: Image.Image, source_type: str, types: tuple[str, ...], graphic: bool) -> tuple[Rung, ...]:
    """The ways to try, best first. GIF only where there is nothing else."""
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
    """Attempts at the image, but of the ways that are far from what fits, going by what they made of a larger one."""
    for rung in rungs:
        if max(image.size) <= LARGEST_EDGE[rung.media_type] and expected.get(rung, 0) <= _FAR * limit:
            for attempt in rung.attempts(image, graphic, limit):
                yield rung, attempt


def _png(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if graphic:
        yield _saved(_lean(image), "PNG")
        return
    expected = _expected_png(image)
    yield expected if expected > 2 * limit else _saved(image, "PNG")


def _png_palette(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if image.mode == "L":
        return
    for colours in _PALETTES:
        attempt = _saved(_with_palette(image, colours), "PNG")
        yield attempt
        if len(attempt) > 2 * limit:
            return


def _expected_png(image: Image.Image) -> float:
    """About how many bytes the PNG of a photo will have, from some tiles of it: all of it may take seconds."""
    width, height = image.size
    if min(width, height) < 4 * _TILE:
        return 0.0
    tiles = Image.new(image.mode, (_TILE, 4 * _TILE))
    for index in range(4):
        left, top = (width - _TILE) * index // 3, (height - _TILE) * (index * 2 % 4) // 3
        tiles.paste(image.crop((left, top, left + _TILE, top + _TILE)), (0, index * _TILE))
    return len(_saved(tiles, "PNG")) * (width * height) / (4 * _TILE * _TILE)


def _jpeg(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    flat = on_white(image)
    options: dict[str, Any] = {"subsampling": _FULL_CHROMA} if graphic else {}
    yield _best_quality(lambda quality: _saved(flat, "JPEG", quality=quality, **options), _least(graphic), limit)


def _webp(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    # WebP halves the resolution of colours; for drawings at least with care for sharp edges.
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
    """What `save` makes at the highest quality from `_BEST` to `least` that is within `limit`; else its length."""
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
    """The image in grey or with a palette where that loses nothing, and is worth it."""
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
