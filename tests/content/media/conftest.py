"""Pictures of every kind that the tests of media need, made here: none of them is a file."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any, TypeAlias

import pytest
from PIL import Image, ImageDraw, ImageFont

Encode: TypeAlias = Callable[..., bytes]
Decode: TypeAlias = Callable[[bytes], Image.Image]


def _encode(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def encode() -> Encode:
    """(image, Pillow's name of the type, options of its encoder) -> bytes"""
    return _encode


@pytest.fixture(scope="session")
def decode() -> Decode:
    """bytes -> the image, wholly decoded"""

    def decoded(content: bytes) -> Image.Image:
        image = Image.open(BytesIO(content))
        image.load()
        return image

    return decoded


@pytest.fixture(scope="session")
def photo() -> Callable[[int, int], Image.Image]:
    """(width, height) -> something like a photo: light that falls off smoothly, and grain."""

    def drawn(width: int, height: int) -> Image.Image:
        across = Image.linear_gradient("L").rotate(90).resize((width, height))
        down = Image.linear_gradient("L").resize((width, height))
        around = Image.radial_gradient("L").resize((width, height))
        light = Image.merge("RGB", (across, down, around))
        grain = Image.merge("RGB", [Image.effect_noise((width, height), 40)] * 3)
        return Image.blend(light, grain, 0.15)

    return drawn


@pytest.fixture(scope="session")
def screenshot() -> Callable[[int, int], Image.Image]:
    """(width, height) -> something like a screenshot: a window with lines of text."""

    def drawn(width: int, height: int) -> Image.Image:
        image = Image.new("RGB", (width, height), "#f4f4f4")
        draw = ImageDraw.Draw(image)
        font = ImageFont.load_default(size=28)
        draw.rectangle((0, 0, width, 60), fill="#205080")
        for line, top in enumerate(range(80, height - 40, 40)):
            draw.text(
                (40, top), f"{line:04} total 1,284.50 EUR  status: OK  host-{line % 7}.example " * 3, "#202020", font
            )
        return image

    return drawn


@pytest.fixture(scope="session")
def bomb() -> bytes:
    """A valid PNG of 30,000 x 30,000 grey pixels in less than a megabyte."""
    return grey_png(30_000, 30_000)


def grey_png(width: int, height: int, strips: int = 100) -> bytes:
    """A black PNG. Its rows are deflated in equal strips, of which only the first has to be computed."""
    size = (width + 1) * height
    packer = zlib.compressobj(9, wbits=-15)
    strip = packer.compress(bytes(size // strips)) + packer.flush(zlib.Z_FULL_FLUSH)
    adler_of_zeros = struct.pack(">HH", size % 65_521, 1)
    data = b"\x78\xda" + strip * strips + b"\x03\x00" + adler_of_zeros
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.fixture(scope="session")
def animation_bomb() -> bytes:
    """A GIF of 5,000 frames, each of 2,000 x 2,000 pixels: 20 gigapixels in 20 megabytes."""
    first, second = (Image.new("P", (2_000, 2_000), colour) for colour in (0, 1))
    two = _encode(first, "GIF", save_all=True, append_images=[second], duration=20, loop=0)
    # From the last graphic control extension up to the trailer: the second frame, over and over.
    return two[:-1] + two[two.rindex(b"\x21\xf9") : -1] * 5_000 + b";"


@pytest.fixture(scope="session")
def uses_bomb() -> bytes:
    """An SVG of 2 KB that draws a rectangle 10^9 times, through nine levels of `<use>`."""
    levels = "".join(
        f'<g id="l{level}">' + f'<use href="#l{level - 1}" x="{level}"/>' * 10 + "</g>" for level in range(1, 10)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600"><defs>'
        f'<g id="l0"><rect width="9" height="9"/></g>{levels}</defs><use href="#l9"/></svg>'
    ).encode()


@pytest.fixture(scope="session")
def endless() -> bytes:
    """An SVG of half a KB that takes minutes to draw, all of them within the renderer."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="2000">'
        '<filter id="f" x="0" y="0" width="1" height="1"><feTurbulence baseFrequency="0.9" numOctaves="10"/></filter>'
        + '<rect width="2000" height="2000" filter="url(#f)"/>' * 60
        + "</svg>"
    ).encode()
