"""Pillow, where its own annotations lean on numpy's or say nothing: the same calls with types that hold."""

from io import BytesIO
from typing import Any, cast

from PIL import Image, ImageCms


def resized(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float] | None = None
) -> Image.Image:
    """The `box` of `image` (all of it) at `size`, each pixel the average of what it covers."""
    return cast(Any, image).resize(size, Image.Resampling.LANCZOS, box=box, reducing_gap=2.0)


def sampled(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Some of the image's own pixels, at `size`."""
    return cast(Any, image).resize(size, Image.Resampling.NEAREST)


def linear(image: Image.Image, scale: float, offset: float) -> Image.Image:
    """Each pixel of a grey image of more than 8 bits times `scale`, plus `offset`."""

    def line(value: Any) -> Any:
        return value * scale + offset

    return cast(Any, image).point(line)


def profile_space(profile: ImageCms.ImageCmsProfile) -> str:
    """What an ICC profile describes: `RGB `, `CMYK`, `GRAY`, ... (ICC.1:2022, table 19)."""
    return str(cast(Any, profile).profile.xcolor_space)


def srgb() -> ImageCms.ImageCmsProfile:
    """The profile of sRGB."""
    return ImageCms.ImageCmsProfile(cast(Any, ImageCms).createProfile("sRGB"))


def read_profile(profile: bytes) -> ImageCms.ImageCmsProfile:
    """An ICC profile. Raises ImageCms.PyCMSError or OSError when it is broken."""
    return ImageCms.ImageCmsProfile(BytesIO(profile))
