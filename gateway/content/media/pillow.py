"""Typed wrappers for Pillow functions whose own annotations need numpy or are missing."""

from io import BytesIO
from typing import Any, cast

from PIL import Image, ImageCms


def resized(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float] | None = None
) -> Image.Image:
    """Resize `image`, or its `box`, to `size`; each pixel is the average of what it covers."""
    return cast(Any, image).resize(size, Image.Resampling.LANCZOS, box=box, reducing_gap=2.0)


def sampled(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Sample the image at `size`, using its own pixels."""
    return cast(Any, image).resize(size, Image.Resampling.NEAREST)


def linear(image: Image.Image, scale: float, offset: float) -> Image.Image:
    """Multiply each pixel of a grey image of more than 8 bits by `scale`, and add `offset`."""

    def line(value: Any) -> Any:
        return value * scale + offset

    return cast(Any, image).point(line)


def profile_space(profile: ImageCms.ImageCmsProfile) -> str:
    """Return an ICC profile's colour space: `RGB `, `CMYK`, `GRAY`, ... (ICC.1:2022, table 19)."""
    return str(cast(Any, profile).profile.xcolor_space)


def srgb() -> ImageCms.ImageCmsProfile:
    """Return the sRGB profile."""
    return ImageCms.ImageCmsProfile(cast(Any, ImageCms).createProfile("sRGB"))


def read_profile(profile: bytes) -> ImageCms.ImageCmsProfile:
    """Read an ICC profile. Raises ImageCms.PyCMSError or OSError if it is broken."""
    return ImageCms.ImageCmsProfile(BytesIO(profile))
