"""Fit one image to a target. Runs in a worker, on hostile bytes: nothing here may be called in the gateway itself.

Only the first frame is decoded, if the header's pixel count is within the limit, by the decoder for the type found in
the bytes. `gateway.content.media.animations` handles animations that have to change but keep moving.
"""

import math
import warnings
from importlib import import_module
from io import BytesIO
from typing import NamedTuple, TypeAlias

from PIL import Image

from gateway.content.media import colours, pillow
from gateway.content.media.encode_image import ENCODABLE, LARGEST_EDGE, encode
from gateway.core.model.effects import Crop, ImageTarget
from gateway.core.model.media_types import PixelSize
from gateway.core.model.png import without_broken_extras
from gateway.errors import MediaError

_PLUGINS = {
    "image/png": ("PNG", "PngImagePlugin"),
    "image/jpeg": ("JPEG", "JpegImagePlugin"),
    "image/gif": ("GIF", "GifImagePlugin"),
    "image/webp": ("WEBP", "WebPImagePlugin"),
    "image/bmp": ("BMP", "BmpImagePlugin"),
    "image/tiff": ("TIFF", "TiffImagePlugin"),
    "image/avif": ("AVIF", "AvifImagePlugin"),
}
_HEIF = frozenset({"image/heic", "image/heif"})
_MANY_FRAMES = frozenset({"image/gif", "image/webp", "image/png", "image/avif", "image/tiff"})
"""Types that can hold several frames of an animation or, in a TIFF, several pages."""

_SVG = "image/svg+xml"
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The transposition that undoes each EXIF orientation except 1 (Exif 2.32, tag 0x0112)."""

_SWAPPING = frozenset(_UPRIGHT[orientation] for orientation in (5, 6, 7, 8))
Region: TypeAlias = tuple[int, int, int, int]
"""Left, top, right, bottom, in pixels of the upright original."""


class DecodedImage(NamedTuple):
    """An encoded image, its type and size, and the upright size of its source.

    `frames` is the number of frames in the source if only the first is shown, else 1.
    """

    content: bytes
    media_type: str
    pixels: PixelSize
    original: PixelSize
    frames: int = 1


def limit_pixels(max_pixels: int) -> None:
    """Make Pillow refuse images (and later frames) above `max_pixels` everywhere in this process."""
    Image.MAX_IMAGE_PIXELS = max_pixels
    # Pillow only warns above the limit; it raises above twice the limit.
    warnings.simplefilter("error", Image.DecompressionBombWarning)


def fit_image(content: bytes, media_type: str, target: ImageTarget, crop: Crop | None, max_pixels: int) -> DecodedImage:
    """Fit `content`, whose actual type is `media_type`, to `target`.

    Bytes that fit are returned unchanged. Raises MediaError if the cause is known, MemoryError, and whatever else a
    decoder raises on broken input.
    """
    if not set(target.types) & ENCODABLE:
        raise MediaError(f"it cannot be converted to {' or '.join(target.types) or 'no type'}")
    if media_type == _SVG:
        return _fit_vector(content, target, crop, max_pixels)
    image = opened(content, media_type, max_pixels)
    if media_type != "image/jpeg":
        image.load()
    turn = _UPRIGHT.get(_orientation(image))
    original = PixelSize(*image.size)
    if turn in _SWAPPING:
        original = PixelSize(original.height, original.width)
    region = clamped(crop, original) if crop else None
    if media_type == "image/jpeg":
        _draft(image, target.max_edge, region or (0, 0, original.width, original.height))
        image.load()
    frames = _frames(content, media_type, max_pixels)
    as_it_is = region is None and turn is None and (frames == 1 or target.animation)
    if as_it_is and _fits_already(image, content, media_type, target, original):
        return DecodedImage(content, media_type, original, original)
    if frames > 1 and target.animation and region is None and media_type != "image/tiff":
        from gateway.content.media import animations

        if moved := animations.refit(opened(content, media_type, max_pixels), media_type, target, turn, max_pixels):
            return DecodedImage(moved.content, moved.media_type, PixelSize(*moved.size), original)
    return _refit(image, original, turn, media_type, target, region)._replace(frames=frames)


def _frames(content: bytes, media_type: str, max_pixels: int) -> int:
    """Return the number of frames; 1 if it is unknown."""
    if media_type not in _MANY_FRAMES:
        return 1
    try:
        # On a separate image: counting reads through a whole GIF, and may stop anywhere in a broken one.
        return max(1, int(getattr(opened(content, media_type, max_pixels), "n_frames", 1)))
    except Exception:  # Decoders raise anything on hostile bytes, and the first frame was decoded successfully.
        return 1


def opened(content: bytes, media_type: str, max_pixels: int) -> Image.Image:
    """Open an image and read its header. Raises MediaError if it has too many pixels or is not of its apparent type."""
    if media_type in _HEIF:
        name = _with_heif()
    else:
        name, plugin = _PLUGINS[media_type]
        # Register only this decoder; Image.open would otherwise load all of them to find it.
        module = import_module(f"PIL.{plugin}")
        if media_type == "image/avif":
            # One thread per processor would need more address space than a worker may have.
            vars(module)["DEFAULT_MAX_THREADS"] = 1
    try:
        image = Image.open(BytesIO(without_broken_extras(content)), formats=[name])
    except Image.UnidentifiedImageError as error:
        raise MediaError(f"it begins like {media_type} but cannot be decoded as one") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise MediaError(f"it has more pixels than the limit of {max_pixels:,}") from error
    # The gateway has checked the header before, but may read it differently from the decoder.
    if image.width * image.height > max_pixels:
        raise MediaError(f"it has {image.width:,} x {image.height:,} pixels, more than the limit of {max_pixels:,}")
    return image


def _with_heif() -> str:
    """Register the HEIF decoder and return its name in Pillow. Raises MediaError if the extra is not installed."""
    try:
        heif = import_module("pillow_heif")
    except ImportError as error:
        raise MediaError(
            "HEIC and HEIF images need an extra", remedy='pip install "mcp-multimodal-gateway[heic]"'
        ) from error
    heif.register_heif_opener(thumbnails=False)
    heif.options.DECODE_THREADS = 1
    return "HEIF"


def _draft(image: Image.Image, max_edge: int | None, region: Region) -> None:
    """Make the JPEG decoder scale down by 2, 4 or 8 if the result is at most 1/2, 1/4 or 1/8 as large anyway."""
    left, top, right, bottom = region
    scale = max_edge / max(right - left, bottom - top) if max_edge else 1.0
    if scale < 1:
        # The box has the image's shape: a square box would exceed the short edge of a wide image, and have no effect.
        width, height = image.size
        image.draft(None, (max(1, math.ceil(width * scale)), max(1, math.ceil(height * scale))))


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # Broken EXIF data raises nearly anything; the picture does not depend on it.
        return 1


def _fits_already(
    image: Image.Image, content: bytes, media_type: str, target: ImageTarget, original: PixelSize
) -> bool:
    return (
        media_type in target.types
        and image.mode in colours.COMMON_MODES
        and (target.max_edge is None or max(original) <= target.max_edge)
        and (target.max_bytes is None or len(content) <= target.max_bytes)
    )


def _refit(
    image: Image.Image,
    original: PixelSize,
    turn: Image.Transpose | None,
    media_type: str,
    target: ImageTarget,
    region: Region | None,
) -> DecodedImage:
    profile = colours.icc_profile(image)
    graphic = media_type != "image/jpeg" and colours.is_graphic(image)
    image = colours.scalable(image)
    if region and turn is not None:
        image, turn = image.transpose(turn), None
    image = _scaled(image, _box(image, original, region), _edge(target))
    # Turned when it is small. A region refers to the upright image, so with one the image was turned before.
    if turn is not None:
        image = image.transpose(turn)
    encoded = encode(colours.to_srgb(image, profile), media_type, target, graphic=graphic)
    return DecodedImage(encoded.content, encoded.media_type, PixelSize(*encoded.size), original)


def _edge(target: ImageTarget) -> int:
    possible = max(LARGEST_EDGE[name] for name in target.types if name in ENCODABLE)
    return min(possible, target.max_edge or possible)


def _box(image: Image.Image, original: PixelSize, region: Region | None) -> tuple[float, float, float, float]:
    """Return the region in the pixels of `image`, which may have been decoded at a size other than `original`."""
    if region is None:
        return (0, 0, *image.size)
    left, top, right, bottom = region
    across, down = image.width / original.width, image.height / original.height
    return (left * across, top * down, right * across, bottom * down)


def clamped(crop: Crop, size: PixelSize) -> Region:
    """Return the part of `crop` within an image of `size`. Raises MediaError if there is none."""
    left, right = max(0, crop.left), min(size.width, crop.left + crop.width)
    top, bottom = max(0, crop.top), min(size.height, crop.top + crop.height)
    if left >= right or top >= bottom:
        raise MediaError(
            f"the crop of {crop.width} x {crop.height} pixels at {crop.left}, {crop.top} is outside"
            f" an image of {size.width} x {size.height} pixels"
        )
    return left, top, right, bottom


def _scaled(image: Image.Image, box: tuple[float, float, float, float], edge: int) -> Image.Image:
    """Return the `box` of `image`, scaled down to a longer edge of at most `edge`; never enlarged."""
    width, height = box[2] - box[0], box[3] - box[1]
    scale = min(1.0, edge / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    whole = (round(box[0]), round(box[1]), round(box[2]), round(box[3]))
    if size == (whole[2] - whole[0], whole[3] - whole[1]):
        return image if whole == (0, 0, *image.size) else image.crop(whole)
    return pillow.resized(image, size, box)


def _fit_vector(content: bytes, target: ImageTarget, crop: Crop | None, max_pixels: int) -> DecodedImage:
    # Imported only now: most workers never see a vector graphic.
    from gateway.content.media import vector

    drawn = vector.draw(content, target.max_edge, crop, max_pixels)
    image = opened(drawn.png, "image/png", max_pixels)
    image.load()
    natural = drawn.natural
    region = clamped(crop, natural) if crop and not drawn.is_part else None
    if region is None and _fits_already(image, drawn.png, "image/png", target, PixelSize(*image.size)):
        return DecodedImage(drawn.png, "image/png", PixelSize(*image.size), natural)
    return _refit(image, natural, None, "image/png", target, region)
