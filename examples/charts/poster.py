"""A wall map of an island that does not exist, 4,000 by 3,000 pixels, as a PNG file of moderate size.

A height field is made of noise at several scales, cut into bands of height, and coloured through a palette: one byte
for each pixel instead of three makes twelve megapixels quick to draw and small to keep.
"""

from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from .canvas import drawable, encode, font

WIDTH, HEIGHT = 4_000, 3_000
FRAME = 130
FOOT = 330
SEA_LEVEL = 112
_CELL = 20
"""The pixels of a cell of the coarse copy in which places are looked for."""

_DEEP = ("#7fb2cf", "#93c1d9", "#a8d0e2", "#bfdfea")
_LAND = ("#b7cf9f", "#c9d8a4", "#dde0ad", "#ecdfae", "#e6cd98", "#d9b483", "#c79a72", "#b48468", "#c9b4a6", "#f2efec")
_PAPER, _INK, _SOFT, _SHORE, _CONTOUR, _GRID = "#fbf8f0", "#22303c", "#5b6a76", "#3d6f8f", "#8d7a5e", "#6f93a8"
_PALETTE = (*_DEEP, *_LAND, _PAPER, _INK, _SOFT, _SHORE, _CONTOUR, _GRID)
_STEP = 150
"""Metres between two contour lines."""

_FIRST = ("Old", "Grey", "High", "Far", "Long", "Black", "White", "Lower", "Upper", "Salt", "Wind", "Stone")
_TOWN = ("haven", "wick", "mouth", "stead", "ness", "port", "ford")
_SUMMIT = ("fell", "cairn", "top", "pike", "horn")

_PIXELS_PER_KM = (WIDTH - 2 * FRAME) / 48
_KM_PER_MINUTE = 1.852
_COLUMNS = 8
"""Meridians are five minutes apart: 48 km are forty minutes of longitude at 50 degrees north."""


def poster(title: str, seed: int) -> bytes:
    """The map as a PNG file with a palette; the same title and seed give the same bytes."""
    random = Random(seed)
    inner = (WIDTH - 2 * FRAME, HEIGHT - FRAME - FOOT)
    heights = _heights(inner, random)
    bands = heights.point([_band(level) for level in range(256)])
    chart = _with_lines(heights, bands)
    sheet = Image.new("P", (WIDTH, HEIGHT), _colour(_PAPER))
    sheet.putpalette([value for colour in _PALETTE for value in bytes.fromhex(colour[1:])])
    sheet.paste(chart, (FRAME, FRAME))
    draw = ImageDraw.Draw(sheet)
    _graticule(draw)
    _places(draw, heights, random)
    _foot(draw, title)
    return encode(sheet, "PNG", compress_level=6)


def _colour(name: str) -> int:
    return _PALETTE.index(name)


def _heights(size: tuple[int, int], random: Random) -> Image.Image:
    """Heights from 0 to 255: noise of six scales, highest in the middle, so that the sea is all around."""
    small = (size[0] // 4, size[1] // 4)
    field = Image.new("L", small, 128)
    for octave in range(6):
        cells = (5 * 2**octave, 4 * 2**octave)
        noise = Image.frombytes("L", cells, random.randbytes(cells[0] * cells[1]))
        layer = noise.resize(small, Image.Resampling.BICUBIC)
        weight = 0.55 / 1.75**octave
        scaled = layer.point([round(128 + (level - 128) * weight) for level in range(256)])
        field = ImageChops.add(field, scaled, scale=1, offset=-128)
    middle = ImageChops.invert(Image.radial_gradient("L")).resize(small, Image.Resampling.BICUBIC)
    dome = middle.point([round(min(255, max(0, (level - 74) * 0.95))) for level in range(256)])
    field = ImageChops.add(field, dome, scale=1, offset=-92)
    return field.filter(ImageFilter.GaussianBlur(2)).resize(size, Image.Resampling.BICUBIC)


def _band(level: int) -> int:
    if level < SEA_LEVEL:
        return min(len(_DEEP) - 1, level * len(_DEEP) // SEA_LEVEL)
    share = (level - SEA_LEVEL) / (256 - SEA_LEVEL)
    return len(_DEEP) + min(len(_LAND) - 1, int(share * len(_LAND)))


def _with_lines(heights: Image.Image, bands: Image.Image) -> Image.Image:
    """The bands with contour lines on land and a bold shore."""
    picture = bands.copy()
    land = heights.point([255 if level >= SEA_LEVEL else 0 for level in range(256)])
    half = (256 - SEA_LEVEL) / (2 * len(_LAND))
    fine = heights.point([max(0, int((level - SEA_LEVEL) / half)) for level in range(256)])
    picture.paste(_colour(_CONTOUR), (0, 0), ImageChops.multiply(_edges(fine, 1), land))
    picture.paste(_colour(_CONTOUR), (0, 0), ImageChops.multiply(_edges(bands, 3), land))
    picture.paste(_colour(_SHORE), (0, 0), _edges(land, 6))
    return picture


def _edges(levels: Image.Image, width: int) -> Image.Image:
    """A mask of the places where a level meets another one, as lines `width` pixels wide."""
    across = ImageChops.difference(levels, ImageChops.offset(levels, width, 0))
    down = ImageChops.difference(levels, ImageChops.offset(levels, 0, width))
    edges = ImageChops.lighter(across, down).point([0] + [255] * 255)
    # What is moved out at one side comes in at the other: no line belongs there.
    edges.paste(0, (0, 0, width, edges.height))
    edges.paste(0, (0, 0, edges.width, width))
    return edges


def _graticule(draw: ImageDraw.ImageDraw) -> None:
    """The frame with its ticks of longitude and latitude, and thin lines across the map."""
    left, top, right, bottom = FRAME, FRAME, WIDTH - FRAME, HEIGHT - FOOT
    for index in range(1, _COLUMNS):
        x = left + (right - left) * index // _COLUMNS
        draw.line([(x, top), (x, bottom)], fill=_colour(_GRID), width=2)
        for y in (top - 58, bottom + 52):
            _lettering(draw, (x, y), f"{50 - index * 5}'W", 44, _SOFT)
    step = 5 * _KM_PER_MINUTE * _PIXELS_PER_KM
    for index in range(3):
        y = round((top + bottom) / 2 + (index - 1) * step)
        draw.line([(left, y), (right, y)], fill=_colour(_GRID), width=2)
        for x in (left - 66, right + 66):
            _lettering(draw, (x, y), f"{25 - index * 5}'N", 38, _SOFT)
    draw.rectangle((left - 8, top - 8, right + 8, bottom + 8), outline=_colour(_INK), width=8)
    draw.rectangle((left - 26, top - 26, right + 26, bottom + 26), outline=_colour(_INK), width=3)


def _lettering(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, colour: str, anchor: str = "mm"
) -> None:
    draw.text(at, drawable(text), font=font(size), fill=_colour(colour), anchor=anchor)


def _places(draw: ImageDraw.ImageDraw, heights: Image.Image, random: Random) -> None:
    """Summits and towns near the shore, each with its name, none too near to another."""
    coarse = heights.reduce(_CELL)
    levels = coarse.tobytes()

    def level(x: int, y: int) -> int:
        return levels[y * coarse.width + x]

    def highest(x: int, y: int) -> bool:
        return level(x, y) == max(level(x + dx, y + dy) for dx in range(-6, 7) for dy in range(-6, 7))

    cells = [(x, y) for y in range(7, coarse.height - 7) for x in range(8, coarse.width - 24)]
    land = sorted((cell for cell in cells if level(*cell) > SEA_LEVEL + 40), key=lambda cell: -level(*cell))
    shore = [cell for cell in cells if SEA_LEVEL + 4 <= level(*cell) <= SEA_LEVEL + 12]
    random.shuffle(shore)
    taken: list[tuple[float, float]] = []
    for spots, endings, most in (([cell for cell in land if highest(*cell)], _SUMMIT, 7), (shore, _TOWN, 12)):
        names = [first + last for first in _FIRST for last in endings]
        random.shuffle(names)
        free = most
        for x, y in spots:
            at = (FRAME + (x + 0.5) * _CELL, FRAME + (y + 0.5) * _CELL)
            if free and not any(abs(at[0] - a) < 600 and abs(at[1] - b) < 150 for a, b in taken):
                taken.append(at)
                _mark(draw, at, names[free], level(x, y) if endings is _SUMMIT else None)
                free -= 1


def _mark(draw: ImageDraw.ImageDraw, at: tuple[float, float], name: str, level: int | None) -> None:
    x, y = at
    if level is None:
        draw.ellipse((x - 13, y - 13, x + 13, y + 13), fill=_colour(_PAPER), outline=_colour(_INK), width=6)
        text = name
    else:
        draw.polygon([(x, y - 20), (x - 18, y + 13), (x + 18, y + 13)], fill=_colour(_INK))
        metres = round((level - SEA_LEVEL) / (256 - SEA_LEVEL) * len(_LAND) * _STEP)
        text = f"{name} {metres:,} m"
    draw.text(
        (x + 34, y - 2),
        text,
        font=font(52),
        fill=_colour(_INK),
        anchor="lm",
        stroke_width=6,
        stroke_fill=_colour(_PAPER),
    )


def _foot(draw: ImageDraw.ImageDraw, title: str) -> None:
    """The title, the key of heights and the scale bar below the map."""
    middle = HEIGHT - FOOT + 205
    shown, size = drawable(title), 150
    while size > 40 and font(size).getlength(shown) > 1_380:
        size -= 6
    _lettering(draw, (FRAME, middle - 20), shown, size, _INK, "lm")
    left, box = WIDTH - FRAME - 14 * 92, 92
    for index, colour in enumerate((*_DEEP, *_LAND)):
        x = left + index * box
        draw.rectangle((x, middle - 66, x + box, middle - 6), fill=_colour(colour))
    draw.rectangle((left, middle - 66, left + 14 * box, middle - 6), outline=_colour(_INK), width=3)
    for index in (0, 2, 4, 6, 10):
        x = left + (len(_DEEP) + index) * box
        anchor = "rm" if index == len(_LAND) else "mm"
        _lettering(draw, (x, middle + 34), f"{index * _STEP:,} m" if index else "sea level", 40, _SOFT, anchor)
    unit = round(5 * _PIXELS_PER_KM)
    start = left - 2 * unit - 180
    for index in range(2):
        box_colour = _INK if index == 0 else _PAPER
        edges = (start + index * unit, middle - 36, start + (index + 1) * unit, middle - 12)
        draw.rectangle(edges, fill=_colour(box_colour), outline=_colour(_INK), width=3)
        _lettering(draw, (start + (index + 1) * unit, middle + 34), f"{(index + 1) * 5} km", 40, _SOFT)
    _lettering(draw, (start, middle + 34), "0", 40, _SOFT)
