"""Draw codes of digits as images: large and clear, on noise, so that only the pixels reveal them."""

import os
from io import BytesIO

from PIL import Image

DIGITS: dict[str, tuple[str, ...]] = {
    "0": (".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."),
    "1": ("..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."),
    "2": (".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"),
    "3": ("#####", "...#.", "..#..", "...#.", "....#", "#...#", ".###."),
    "4": ("...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."),
    "5": ("#####", "#....", "####.", "....#", "....#", "#...#", ".###."),
    "6": ("..##.", ".#...", "#....", "####.", "#...#", "#...#", ".###."),
    "7": ("#####", "....#", "...#.", "..#..", ".#...", ".#...", ".#..."),
    "8": (".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."),
    "9": (".###.", "#...#", "#...#", ".####", "....#", "...#.", ".##.."),
}
"""Each digit in 5 by 7 points."""

WIDE, HIGH = 5, 7
_STEP = WIDE + 1

_INK = (16, 24, 96)
_DOTS = 40
"""Number of noise patches along an image's longer edge: coarse noise keeps the files small."""


def mask(code: str) -> Image.Image:
    """Return the code as an image of one pixel per point: 255 where there is ink."""
    image = Image.new("L", (_STEP * len(code) - 1, HIGH), 0)
    for place, digit in enumerate(code):
        for row, line in enumerate(DIGITS[digit]):
            for column, point in enumerate(line):
                if point == "#":
                    image.putpixel((place * _STEP + column, row), 255)
    return image


def draw_code(code: str, size: tuple[int, int] = (480, 160), point: int = 12) -> Image.Image:
    """Return an image of this size with the code in the middle, each point a square of `point` pixels."""
    image = _noise(size)
    written(image, code, point, None)
    return image


def written(image: Image.Image, code: str, point: int, at: tuple[int, int] | None) -> None:
    """Draw the code on an image, with its upper left corner at `at`, or in the middle."""
    points = mask(code)
    stencil = points.resize((points.width * point, points.height * point), Image.Resampling.NEAREST)
    middle = ((image.width - stencil.width) // 2, (image.height - stencil.height) // 2)
    image.paste(_INK, at or middle, stencil)


def encoded(image: Image.Image, kind: str) -> bytes:
    """Return the image file without any metadata. `kind` is Pillow's name of the format."""
    buffer = BytesIO()
    image.save(buffer, kind, **({"quality": 90} if kind in ("JPEG", "WEBP") else {}))
    return buffer.getvalue()


def vector(code: str, point: int = 12) -> bytes:
    """Return an SVG of the code that has squares but no text."""
    points, margin = mask(code), 2 * point
    squares = "".join(
        f'<rect x="{margin + x * point}" y="{margin + y * point}" width="{point}" height="{point}"/>'
        for y in range(points.height)
        for x in range(points.width)
        if points.getpixel((x, y))
    )
    width, height = points.width * point + 2 * margin, points.height * point + 2 * margin
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#eee"/><g fill="#101860">{squares}</g></svg>'
    ).encode()


def _noise(size: tuple[int, int]) -> Image.Image:
    """Return a light background of random patches."""
    patch = max(1, max(size) // _DOTS)
    across, down = -(-size[0] // patch), -(-size[1] // patch)
    random = os.urandom(3 * across * down)
    ground = Image.frombytes("RGB", (across, down), bytes(200 + value % 48 for value in random))
    whole = ground.resize((across * patch, down * patch), Image.Resampling.NEAREST)
    return whole.crop((0, 0, *size))
