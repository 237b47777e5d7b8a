"""Cover pictures: a motif for each document, drawn three times too large and reduced, 600 by 800 pixels."""

import math
from collections.abc import Callable
from functools import cache
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from .library import Document

WIDTH, HEIGHT = 600, 800
SCALE = 3

Draw = ImageDraw.ImageDraw


def cover(document: Document) -> bytes:
    """The cover of a document as a PNG file."""
    top, bottom, motif = _COVERS.get(document.name, ("#3a4a5c", "#8fa3b8", _waves))
    large = (WIDTH * SCALE, HEIGHT * SCALE)
    mask = Image.linear_gradient("L").resize(large)
    picture = Image.composite(Image.new("RGB", large, bottom), Image.new("RGB", large, top), mask)
    motif(ImageDraw.Draw(picture, "RGBA"))
    small = picture.reduce(SCALE)
    _title(ImageDraw.Draw(small, "RGBA"), document)
    file = BytesIO()
    small.save(file, "PNG", optimize=True)
    return file.getvalue()


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _title(draw: Draw, document: Document) -> None:
    """The title in white on a dark band, broken into lines."""
    lines = [""]
    for word in document.title.split():
        longer = f"{lines[-1]} {word}".strip()
        if _font(54).getlength(longer) <= WIDTH - 100:
            lines[-1] = longer
        else:
            lines.append(word)
    top = 70
    for number, line in enumerate(lines):
        draw.text((50, top + number * 64), line, font=_font(54), fill="#ffffff")
    draw.rectangle((50, top + len(lines) * 64 + 16, 130, top + len(lines) * 64 + 20), fill="#ffffff")
    draw.rectangle((0, HEIGHT - 96, WIDTH, HEIGHT), fill="#00000066")
    note = f"{document.words} words · {document.minutes} minute{'s' * (document.minutes > 1)}"
    draw.text((50, HEIGHT - 48), note, font=_font(22), fill="#ffffff", anchor="lm")


def _disc(draw: Draw, x: float, y: float, radius: float, colour: str) -> None:
    x, y, radius = x * SCALE, y * SCALE, radius * SCALE
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _clouds(draw: Draw) -> None:
    _disc(draw, 460, 335, 62, "#ffe28a")
    for x, y, size, colour in ((340, 400, 1.0, "#eef5fb"), (180, 500, 1.2, "#f7fafd"), (425, 600, 0.85, "#ffffff")):
        for dx, dy, radius in ((-90, 10, 42), (-35, -22, 62), (40, -8, 54), (95, 14, 38)):
            _disc(draw, x + dx * size, y + dy * size, radius * size, colour)
        box = [(x - 132 * size) * SCALE, (y - 12 * size) * SCALE, (x + 133 * size) * SCALE, (y + 52 * size) * SCALE]
        draw.rounded_rectangle(box, radius=26 * size * SCALE, fill=colour)


def _loaf(draw: Draw) -> None:
    _disc(draw, 300, 512, 182, "#7a4a1e")
    _disc(draw, 300, 505, 176, "#c98542")
    _disc(draw, 292, 494, 156, "#d99a55")
    for turn in range(-2, 3):
        x = 300 + turn * 56
        reach = math.sqrt(140**2 - (turn * 56) ** 2)
        for width, colour in ((20, "#8a5524"), (12, "#f6e3c0")):
            start, end = (x - 30, 495 + reach * 0.75), (x + 30, 495 - reach * 0.75)
            draw.line([(start[0] * SCALE, start[1] * SCALE), (end[0] * SCALE, end[1] * SCALE)], colour, width * SCALE)
            for at in (start, end):
                _disc(draw, *at, width / 2, colour)


def _tower(draw: Draw) -> None:
    lamp = (300, 400)
    for low, high in ((-0.16, 0.02), (math.pi - 0.02, math.pi + 0.16)):
        ends = [(lamp[0] + math.cos(angle) * 520, lamp[1] + math.sin(angle) * 520) for angle in (low, high)]
        draw.polygon([(x * SCALE, y * SCALE) for x, y in (lamp, *ends)], fill="#fff2b080")
    _waves(draw)
    for step in range(5):
        upper, lower = 432 + step * 56, 432 + (step + 1) * 56
        wide = [28 + step * 6.5, 28 + (step + 1) * 6.5]
        shape = [(300 - wide[0], upper), (300 + wide[0], upper), (300 + wide[1], lower), (300 - wide[1], lower)]
        draw.polygon([(x * SCALE, y * SCALE) for x, y in shape], fill="#f4f1ea" if step % 2 else "#c8443c")
    draw.rectangle([value * SCALE for value in (276, 380, 324, 424)], fill="#ffe9a0")
    draw.polygon([(x * SCALE, y * SCALE) for x, y in ((268, 382), (332, 382), (300, 346))], fill="#8e2f2a")
    draw.rectangle([value * SCALE for value in (258, 422, 342, 434)], fill="#3b3f4a")
    draw.polygon([(x * SCALE, y * SCALE) for x, y in ((170, 760), (215, 706), (390, 704), (440, 760))], fill="#3b3f4a")


def _waves(draw: Draw) -> None:
    for row, colour in enumerate(("#2d5873", "#264c66", "#1f4058")):
        level = 700 + row * 30
        crest = [(x, level + math.sin(x / 34 + row * 1.7) * 7) for x in range(0, WIDTH + 4, 4)]
        shape = [(0, HEIGHT), *crest, (WIDTH, HEIGHT)]
        draw.polygon([(x * SCALE, y * SCALE) for x, y in shape], fill=colour)


def _rope(draw: Draw) -> None:
    """A figure eight, which crosses over itself: the part on top is drawn again over a gap."""

    def at(turn: float) -> tuple[float, float]:
        return 300 + 150 * math.sin(turn), 500 + 120 * math.sin(turn) * math.cos(turn) * 1.5

    def strand(start: float, end: float, edge: float) -> None:
        points = [at(start + (end - start) * step / 400) for step in range(401)]
        inner = [at(start + edge + (end - start - 2 * edge) * step / 400) for step in range(401)]
        for x, y in inner:
            _disc(draw, x, y, 26, "#2b2f38")
        for x, y in points:
            _disc(draw, x, y, 21, "#d8b878")
        last = points[0]
        for x, y in points:
            if math.dist((x, y), last) >= 15:
                last = (x, y)
                ends = [((x - 8) * SCALE, (y + 13) * SCALE), ((x + 8) * SCALE, (y - 13) * SCALE)]
                draw.line(ends, "#a98746", 4 * SCALE)

    strand(0, 2 * math.pi, 0)
    strand(-0.45, 0.45, 0.14)


_COVERS: dict[str, tuple[str, str, Callable[[Draw], None]]] = {
    "clouds": ("#2f7fc1", "#bfe0f2", _clouds),
    "sourdough": ("#4d3524", "#b98d5e", _loaf),
    "lighthouse": ("#1b2540", "#e08f62", _tower),
    "knots": ("#1f5a5c", "#6aa39a", _rope),
}
