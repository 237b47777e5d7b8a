"""Pillow's modes and colour profiles: convert any decoded image to grey or sRGB, with or without alpha."""

import math
from typing import cast

from PIL import Image, ImageCms

from gateway.content.media import pillow

COMMON_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
"""Modes that every decoder of the image's type handles reliably. CMYK and 16 bit are not among them."""

_SCALABLE = frozenset({"L", "LA", "RGB", "RGBA", "CMYK"})
_DEEP = ("I", "F")
"""Prefixes of the names of modes with more than 8 bits."""

_SAMPLE_EDGE = 256
_MANY_COLOURS = 4096
_MANY_GREYS = 64
_USUAL_GREYS = 8
_PROFILE_SPACES = {"RGB": "RGB ", "CMYK": "CMYK", "L": "GRAY"}


def is_graphic(image: Image.Image) -> bool:
    """Whether this is a drawing or a screenshot, not a photo: a sample of its pixels has few different colours.

    Even a photo has few colours in grey, so there it must have very few, or half of the sample must be of the same few,
    as paper and ink are.
    """
    if image.mode.startswith(_DEEP):
        return False
    width, height = image.size
    sample = pillow.sampled(image, (min(width, _SAMPLE_EDGE), min(height, _SAMPLE_EDGE)))
    found = sample.getcolors(_MANY_COLOURS)
    if found is None:
        return False
    if sample.mode != "L" and not (sample.mode == "RGB" and all(is_grey(colour) for _, colour in found)):
        return True
    counts = sorted((count for count, _ in found), reverse=True)
    return len(counts) <= _MANY_GREYS or sum(counts[:_USUAL_GREYS]) >= sum(counts) / 2


def is_grey(colour: object) -> bool:
    """Whether all channels of a colour from `Image.getcolors` are equal."""
    return not isinstance(colour, tuple) or len(frozenset(cast(tuple[int, ...], colour))) == 1


def scalable(image: Image.Image) -> Image.Image:
    """Return the image in a mode whose pixels can be averaged, without its alpha channel if that is opaque."""
    mode = image.mode
    if mode.startswith(_DEEP):
        return image if mode in ("I", "F", "I;16") else image.convert("I")
    if mode in ("1", "RGBX", "YCbCr", "LAB", "HSV", "RGBa", "La"):
        better = {"1": "L", "RGBa": "RGBA", "La": "LA"}.get(mode, "RGB")
        image = image.convert(better)
    elif mode in ("P", "PA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    elif mode in ("L", "RGB") and "transparency" in image.info:
        # A PNG's tRNS chunk: one colour that is transparent.
        image = image.convert("LA" if mode == "L" else "RGBA")
    if image.mode not in _SCALABLE:
        image = image.convert("RGB")
    return without_idle_alpha(image)


def without_idle_alpha(image: Image.Image) -> Image.Image:
    """Return the image without its alpha channel if that is opaque everywhere."""
    if image.mode in ("LA", "RGBA") and image.getchannel("A").getextrema() == (255, 255):
        return image.convert(image.mode[:-1])
    return image


def on_white(image: Image.Image) -> Image.Image:
    """Return the image on a white background, without alpha."""
    if image.mode not in ("LA", "RGBA"):
        return image
    plain = image.mode[:-1]
    paper = Image.new(plain, image.size, "white")
    paper.paste(image.convert(plain), mask=image.getchannel("A"))
    return paper


def icc_profile(image: Image.Image) -> bytes | None:
    """Return the image's ICC profile; None if it has none."""
    profile = image.info.get("icc_profile")
    return profile if isinstance(profile, bytes) and profile else None


def to_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Convert the image's colours to sRGB or grey. A profile that is broken or for another colour space is ignored."""
    image = _eight_bit(image) if image.mode.startswith(_DEEP) else image
    alpha = image.getchannel("A") if image.mode in ("LA", "RGBA") else None
    plain = image.convert(image.mode[:-1]) if alpha else image
    managed = _managed(plain, profile) if profile else None
    if managed is not None:
        plain = managed.convert("L") if plain.mode == "L" else managed
    elif plain.mode == "CMYK":
        plain = plain.convert("RGB")
    if alpha:
        plain.putalpha(alpha)
    return plain


def _managed(image: Image.Image, profile: bytes) -> Image.Image | None:
    try:
        source = pillow.read_profile(profile)
        if pillow.profile_space(source) != _PROFILE_SPACES.get(image.mode):
            return None
        return ImageCms.profileToProfile(image, source, pillow.srgb(), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
        return None


def _eight_bit(image: Image.Image) -> Image.Image:
    """Convert grey of 16 or 32 bits, or floating point, to grey of 8 bits.

    16 bits use their full range. Other modes do not declare a range: values within 0 to 1, 255 or 65,535 are taken to
    use that range, and anything else is stretched from the darkest to the brightest pixel.
    """
    low, high = (0.0, 65_535.0) if image.mode == "I;16" else _range(image)
    scale = 255.0 / (high - low)
    # Pillow's own conversion would clip everything above 255.
    return pillow.linear(image, scale, 0.5 - low * scale).convert("L")


def _range(image: Image.Image) -> tuple[float, float]:
    low, high = cast(tuple[float, float], image.getextrema())
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return (0.0, 255.0)
    if low >= 0:
        if image.mode == "F" and high <= 1:
            return (0.0, 1.0)
        for top in (255.0, 65_535.0):
            if high <= top:
                return (0.0, top)
    return (low, high)
