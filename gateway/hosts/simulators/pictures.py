"""Examining pictures: whether bytes are an image at all, its size, and whether two images show the same."""

import base64
import binascii
import io
import warnings
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image

from gateway.core.model.png import without_broken_extras

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif", "BMP": "image/bmp"}
MAX_PIXELS = 80_000_000
GRID = 24
"""A picture is compared by its average colours in this many rows and columns."""


@dataclass(frozen=True)
class Picture:
    """A decoded raster image: the type of its bytes, width and height in pixels, and its colours in a coarse grid.

    The colours are RGB over white, 0 to 255, row by row.
    """

    media_type: str
    pixels: tuple[int, int]
    colours: bytes

    @property
    def aspect(self) -> float:
        """Width divided by height."""
        return self.pixels[0] / self.pixels[1]

    @property
    def is_blank(self) -> bool:
        """Whether it has only one colour, like a picture that failed to be drawn."""
        return all(max(self.colours[i::3]) - min(self.colours[i::3]) <= 2 for i in range(3))

    def difference(self, other: "Picture") -> float:
        """Return the average distance of the colours, from 0 (the same) to 255."""
        return sum(abs(a - b) for a, b in zip(self.colours, other.colours, strict=True)) / len(self.colours)


@lru_cache(maxsize=32)
def look(data: str) -> Picture | None:
    """Decode the picture in base64 `data` completely; None for anything that is not a raster image."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(without_broken_extras(content)), formats=tuple(MEDIA_TYPES)) as image:
                if image.width * image.height > MAX_PIXELS:
                    return None
                # Decoding may change the size and loses the format, so both are read first.
                media_type, pixels = MEDIA_TYPES[image.format or ""], image.size
                return Picture(media_type, pixels, _colours(image))
    # Pillow's decoders raise whatever their parsing encounters; to a host, all of it is "no image".
    except (OSError, ValueError, SyntaxError, EOFError, KeyError, IndexError, TypeError, Image.DecompressionBombError):
        return None


def _colours(image: Image.Image) -> bytes:
    # Halving while decoding costs a JPEG a fraction; other formats ignore it.
    image.draft("RGB", (max(GRID, image.width // 4), max(GRID, image.height // 4)))
    image.load()
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    whole = image.convert("RGBA" if has_alpha else "RGB")
    # Its signature refers to numpy, which is not a dependency of ours.
    small = whole.resize((GRID, GRID), Image.Resampling.BOX)  # pyright: ignore[reportUnknownMemberType]
    if has_alpha:
        paper = Image.new("RGBA", small.size, "white")
        paper.alpha_composite(small)
        small = paper.convert("RGB")
    return small.tobytes()
