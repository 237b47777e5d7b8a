"""A canvas for smooth drawings: shapes are drawn four times too large and reduced, text is drawn last at its own size.

Coordinates are those of the finished picture, in pixels from its top left corner, and may be fractions.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

SCALE = 4
"""How much larger shapes are drawn: sixteen samples for each pixel of the finished picture."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's own outline font (no font of the system is needed), at `size` pixels.

    Raises RuntimeError if Pillow was built without FreeType.
    """
    found = ImageFont.load_default(size)
    if not isinstance(found, ImageFont.FreeTypeFont):
        raise RuntimeError("this Pillow was built without FreeType, so it has no scalable font")
    return found


_NEAREST = str.maketrans(
    {"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "ł": "l", "Ł": "L"}
    | dict.fromkeys("\N{EN DASH}\N{EM DASH}\N{MINUS SIGN}", "-")
)


@lru_cache(maxsize=1_024)
def drawable(text: str) -> str:
    """`text` in the letters that the font has: accents are left off where needed, other letters become `?`."""
    shown = ""
    for letter in text:
        plain = letter if _known(letter) else unicodedata.normalize("NFKD", letter.translate(_NEAREST))
        shown += "".join(part if _known(part) else "?" for part in plain if not unicodedata.combining(part))
    return shown


def _known(letter: str) -> bool:
    """Whether the font has a shape for a letter: it draws all that it does not have in the same way."""
    return letter == " " or (letter.isprintable() and _shape(letter) != _shape("\uffff"))


@lru_cache(maxsize=1_024)
def _shape(letter: str) -> bytes:
    picture = Image.new("L", (32, 32))
    ImageDraw.Draw(picture).text((4, 4), letter, font=font(16), fill=255)
    return picture.tobytes()


def text_width(text: str, size: int) -> float:
    """The width of `text` in pixels."""
    return font(size).getlength(drawable(text))


def fit_text(text: str, size: int, width: float) -> str:
    """`text`, or its beginning with an ellipsis, so that it is at most `width` pixels wide."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


@dataclass(frozen=True)
class _Label:
    at: Point
    text: str
    size: int
    colour: str
    anchor: str


class Canvas:
    """A picture in the making."""

    def __init__(self, width: int, height: int, background: str = "#ffffff") -> None:
        self.width = width
        self.height = height
        self._shapes = Image.new("RGB", (width * SCALE, height * SCALE), background)
        self._draw = ImageDraw.Draw(self._shapes, "RGBA")
        self._labels: list[_Label] = []

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A line through `points`, with round joints and ends."""
        self._draw.line([_scaled(point) for point in points], fill=colour, width=round(width * SCALE), joint="curve")
        for point in (points[0], points[-1]):
            self.circle(point, width / 2, colour)

    def rule(self, start: Point, end: Point, colour: str, width: float = 1) -> None:
        """A straight line with square ends: for axes and grids."""
        self._draw.line([_scaled(start), _scaled(end)], fill=colour, width=round(width * SCALE))

    def dashes(self, start: Point, end: Point, colour: str, width: float = 1, dash: float = 6) -> None:
        """A dashed straight line."""
        length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
        for begin in range(0, int(length), round(dash * 2)):
            a, b = begin / length, min(begin + dash, length) / length
            self.rule(_between(start, end, a), _between(start, end, b), colour, width)

    def rectangle(self, box: Box, colour: str, radius: float = 0) -> None:
        """A filled rectangle, its corners rounded."""
        left, top, right, bottom = (value * SCALE for value in box)
        # Pillow draws the last row and column as well, so a box ends one large pixel earlier.
        corners = (left, top, max(left, right - 1), max(top, bottom - 1))
        self._draw.rounded_rectangle(corners, radius=radius * SCALE, fill=colour)

    def polygon(self, points: Sequence[Point], colour: str) -> None:
        """A filled polygon."""
        self._draw.polygon([_scaled(point) for point in points], fill=colour)

    def circle(self, centre: Point, radius: float, colour: str) -> None:
        """A filled circle."""
        self._draw.ellipse(_around(centre, radius), fill=colour)

    def ring(self, centre: Point, radius: float, colour: str, width: float) -> None:
        """The outline of a circle."""
        self._draw.ellipse(_around(centre, radius), outline=colour, width=round(width * SCALE))

    def slice(self, centre: Point, radius: float, start: float, end: float, colour: str) -> None:
        """A slice of a pie between two angles in degrees, clockwise from the right."""
        self._draw.pieslice(_around(centre, radius), start, end, fill=colour)

    def text(self, at: Point, text: str, size: int = 14, colour: str = "#1f2933", anchor: str = "lm") -> None:
        """Text; `anchor` is Pillow's: `l`, `m` or `r` for the side that `at` is on, then `a`, `m` or `s`."""
        self._labels.append(_Label(at, drawable(text), size, colour, anchor))

    def finish(self) -> Image.Image:
        """The finished picture."""
        picture = self._shapes.reduce(SCALE)
        draw = ImageDraw.Draw(picture)
        for label in self._labels:
            draw.text(label.at, label.text, font=font(label.size), fill=label.colour, anchor=label.anchor)
        return picture

    def png(self) -> bytes:
        """The finished picture as a PNG file."""
        return encode(self.finish(), "PNG", optimize=True)


def encode(picture: Image.Image, kind: str, **options: object) -> bytes:
    """The picture as a file of a kind that Pillow writes: PNG, JPEG, WEBP."""
    file = BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def _scaled(point: Point) -> Point:
    return (point[0] * SCALE, point[1] * SCALE)


def _around(centre: Point, radius: float) -> Box:
    x, y = centre
    return ((x - radius) * SCALE, (y - radius) * SCALE, (x + radius) * SCALE, (y + radius) * SCALE)


def _between(start: Point, end: Point, share: float) -> Point:
    return (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
