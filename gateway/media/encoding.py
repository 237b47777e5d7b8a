"""From pixels to bytes: which type, and how small. What is encoded here has no metadata: no EXIF, no GPS.

The order of attempts, until one is within the target's bytes: the type that suits best, without loss; without loss and
slower; with a palette (drawings only); JPEG from quality 90 down to 50; then all of it again on a smaller image.
"""

import math
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

from PIL import Image

from gateway.core.model.effects import ImageTarget
from gateway.errors import MediaError
from gateway.media import pillow
from gateway.media.colours import on_white

LARGEST_EDGE = {"image/png": 1_000_000, "image/jpeg": 65_500, "image/webp": 16_383, "image/gif": 65_535}
"""What can be encoded, and the longest edge that the type (or its encoder) takes."""

ENCODABLE = frozenset(LARGEST_EDGE)

_QUALITIES = (90, 80, 70, 60, 50)
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
    order = _order(source_type, target.types, lossless=graphic or image.mode in ("LA", "RGBA"))
    limit = target.max_bytes or math.inf
    # Pillow writes what `info` holds, comments and profiles among it, and hands it on to each image made from this.
    image.info = {}
    whole, scale = image, 1.0
    while True:
        smallest = math.inf
        for media_type, attempt in _attempts(image, order, graphic, limit):
            if isinstance(attempt, bytes) and len(attempt) <= limit:
                return Encoded(attempt, media_type, image.size)
            smallest = min(smallest, len(attempt) if isinstance(attempt, bytes) else attempt)
        # Bytes go down about as fast as the area does; a step that is too bold would cost sharpness for nothing.
        scale *= min(0.8, max(0.5, 0.95 * math.sqrt(limit / smallest))) if smallest < math.inf else 0.8
        size = (max(1, round(whole.width * scale)), max(1, round(whole.height * scale)))
        if max(size) < _SMALLEST_EDGE:
            raise MediaError(f"it cannot be made to fit {limit:,} bytes as {' or '.join(order)}")
        image = pillow.resized(whole, size)


def _order(source_type: str, types: tuple[str, ...], *, lossless: bool) -> tuple[str, ...]:
    """The types to try: the source's own, then what suits the image. GIF only where there is nothing else."""
    suitable = ("image/png", "image/webp", "image/jpeg") if lossless else ("image/jpeg", "image/webp", "image/png")
    own = (source_type,) if source_type in suitable else ()
    rest = tuple(name for name in suitable if name not in own)
    return tuple(name for name in (*own, *rest) if name in types) or ("image/gif",)


Attempt: TypeAlias = bytes | float
"""An encoding, or how many bytes it would have had, where it was not worth the time."""


def _attempts(image: Image.Image, order: tuple[str, ...], graphic: bool, limit: float) -> Iterator[tuple[str, Attempt]]:
    for media_type in order:
        if max(image.size) <= LARGEST_EDGE[media_type]:
            for attempt in _ENCODERS[media_type](image, graphic, limit):
                yield media_type, attempt


def _png(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if not graphic:
        expected = _expected_png(image)
        yield expected if expected > 2 * limit else _saved(image, "PNG")
        return
    plain = _saved(image, "PNG")
    yield plain
    # What each of these can save at the most, about.
    if len(plain) <= 1.5 * limit:
        yield _saved(image, "PNG", optimize=True)
    if len(plain) <= 6 * limit and image.mode != "L":
        yield _saved(_with_palette(image), "PNG", optimize=True)


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
    for quality in _QUALITIES:
        yield _saved(flat, "JPEG", quality=quality, **options)


def _webp(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    if graphic:
        yield _saved(image, "WEBP", lossless=True)
    for quality in _QUALITIES:
        yield _saved(image, "WEBP", quality=quality)


def _gif(image: Image.Image, graphic: bool, limit: float) -> Iterator[Attempt]:
    yield _saved(image, "GIF")


_ENCODERS = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp, "image/gif": _gif}


def _with_palette(image: Image.Image) -> Image.Image:
    method = Image.Quantize.MEDIANCUT if image.mode == "RGB" else Image.Quantize.FASTOCTREE
    source = image.convert("RGBA") if image.mode == "LA" else image
    return source.quantize(256, method=method, dither=Image.Dither.NONE)


def _saved(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()
