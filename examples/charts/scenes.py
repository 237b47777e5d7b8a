"""Pictures that are not charts: a landscape with the grain of a photograph (JPEG) and weather stickers (WebP)."""

import math
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Literal

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from .canvas import Point, drawable, encode, font

Hour = Literal["dawn", "noon", "dusk", "night"]
Weather = Literal["sun", "cloud", "rain", "snow", "storm"]
Colour = tuple[int, int, int]

LARGE = 2
"""Scenes are drawn twice too large and reduced."""


@dataclass(frozen=True)
class _Light:
    """The colours of an hour: the sky from top to horizon, near and far hills, the sun or moon and its height."""

    sky: tuple[Colour, Colour, Colour]
    far: Colour
    near: Colour
    disc: Colour
    height: float
    glow: float


_LIGHTS: dict[Hour, _Light] = {
    "dawn": _Light(
        ((86, 120, 170), (190, 176, 200), (255, 214, 178)), (196, 172, 190), (44, 52, 74), (255, 240, 214), 0.38, 0.8
    ),
    "noon": _Light(
        ((42, 112, 190), (112, 172, 224), (214, 234, 246)), (168, 196, 216), (36, 74, 62), (255, 253, 240), 0.20, 0.5
    ),
    "dusk": _Light(
        ((48, 42, 92), (190, 88, 104), (255, 186, 106)), (176, 104, 124), (26, 24, 46), (255, 232, 176), 0.43, 0.9
    ),
    "night": _Light(((6, 10, 28), (18, 30, 62), (52, 72, 112)), (44, 60, 96), (6, 10, 20), (236, 240, 250), 0.26, 0.45),
}


def landscape(width: int, height: int, hour: Hour, seed: int, quality: int) -> bytes:
    """Mountains above a lake as a JPEG file; the same arguments give the same picture."""
    random = Random(seed)
    light = _LIGHTS[hour]
    wide, shore = width * LARGE, round(height * 0.70) * LARGE
    land = _sky(wide, shore, light)
    if hour == "night":
        _stars(land, random)
    _disc(land, light, random.uniform(0.3, 0.7))
    _hills(land, light, random)
    picture = Image.new("RGB", (wide, height * LARGE))
    picture.paste(land, (0, 0))
    picture.paste(_lake(land, height * LARGE - shore, light), (0, shore))
    small = picture.reduce(LARGE)
    return encode(_grain(small, random), "JPEG", quality=quality, progressive=True)


def _sky(width: int, height: int, light: _Light) -> Image.Image:
    column = Image.new("RGB", (1, 64))
    for row in range(64):
        share = row / 63
        first, second, part = (0, 1, share / 0.55) if share < 0.55 else (1, 2, (share - 0.55) / 0.45)
        column.putpixel((0, row), _mix(light.sky[first], light.sky[second], part))
    return column.resize((width, height), Image.Resampling.BICUBIC)


def _stars(sky: Image.Image, random: Random) -> None:
    draw = ImageDraw.Draw(sky)
    for _ in range(260):
        x, y = random.uniform(0, sky.width), random.uniform(0, sky.height * 0.8)
        size, shine = random.choice((1, 1, 1, 2)), random.randint(120, 255)
        draw.ellipse((x - size, y - size, x + size, y + size), fill=(shine, shine, min(255, shine + 20)))


def _disc(sky: Image.Image, light: _Light, place: float) -> None:
    """The sun or the moon, with its glow added to the sky."""
    x, y = sky.width * place, sky.height * light.height
    reach = round(sky.height * 0.9)
    glow = ImageChops.invert(Image.radial_gradient("L")).resize((2 * reach, 2 * reach), Image.Resampling.BICUBIC)
    # Pillow's gradient is at 181 where it meets the edge of its square, 74 when inverted: there the glow must end.
    glow = glow.point([round(255 * light.glow * (max(0, level - 74) / 181) ** 2) for level in range(256)])
    halo = Image.new("RGB", sky.size)
    halo.paste(Image.new("RGB", glow.size, light.disc), (round(x) - reach, round(y) - reach), glow)
    sky.paste(ImageChops.screen(sky, halo))
    radius = sky.height * 0.052
    ImageDraw.Draw(sky).ellipse((x - radius, y - radius, x + radius, y + radius), fill=light.disc)


def _hills(land: Image.Image, light: _Light, random: Random) -> None:
    """Six ridges, the nearer the darker and the smoother; haze lies at the foot of each."""
    layers = 6
    for layer in range(layers):
        near = layer / (layers - 1)
        colour = _mix(light.far, light.near, near**1.15)
        base = land.height * (0.60 + 0.36 * near)
        ridge = _ridge(random, peaks=5 - layer // 2, roughness=0.56 - 0.12 * near)
        swing = land.height * (0.36 - 0.24 * near)
        step = land.width / (len(ridge) - 1)
        outline: list[Point] = [(index * step, base - value * swing) for index, value in enumerate(ridge)]
        shape = Image.new("L", land.size)
        ImageDraw.Draw(shape).polygon([(0, land.height), *outline, (land.width, land.height)], fill=255)
        top = max(0, round(min(y for _, y in outline)))
        land.paste(_slope(land.size, top, colour, light.sky[2], 0.5 * (1 - near)), (0, 0), shape)


def _slope(size: tuple[int, int], top: int, colour: Colour, haze: Colour, thick: float) -> Image.Image:
    """A hillside that fades into haze towards its foot."""
    column = Image.new("RGB", (1, 32))
    for row in range(32):
        column.putpixel((0, row), _mix(colour, haze, thick * (row / 31) ** 1.4))
    fill = Image.new("RGB", size, colour)
    fill.paste(column.resize((size[0], max(1, size[1] - top)), Image.Resampling.BICUBIC), (0, top))
    return fill


def _ridge(random: Random, peaks: int, roughness: float) -> list[float]:
    """A jagged line by midpoint displacement: peaks and saddles in turn, heights from about -0.2 to 1."""
    heights: list[float] = []
    for _ in range(peaks):
        heights += [random.uniform(-0.1, 0.25), random.uniform(0.35, 1.0)]
    if random.random() < 0.5:
        heights.reverse()
    swing = 0.34
    for _ in range(7):
        finer: list[float] = []
        for left, right in pairwise(heights):
            finer += [left, (left + right) / 2 + random.uniform(-swing, swing) / 2]
        heights = [*finer, heights[-1]]
        swing *= roughness
    return heights


def _lake(land: Image.Image, depth: int, light: _Light) -> Image.Image:
    """The land upside down, darker, and broken by ripples that grow towards the shore of the viewer."""
    mirror = land.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize((land.width, round(land.height * 0.6)))
    mirror = mirror.crop((0, 0, land.width, depth)).filter(ImageFilter.GaussianBlur(2 * LARGE))
    lake = mirror.copy()
    for row in range(depth):
        near = row / depth
        shift = round(math.sin(row * (0.55 - 0.35 * near)) * (1 + 9 * near) * LARGE)
        lake.paste(mirror.crop((0, row, land.width, row + 1)), (shift, row))
    water = Image.new("RGB", lake.size, _mix(_mix(light.sky[0], light.sky[1], 0.5), (10, 16, 30), 0.55))
    fade = Image.linear_gradient("L").resize(lake.size).point([60 + level * 90 // 255 for level in range(256)])
    return Image.composite(water, lake, fade)


def _grain(picture: Image.Image, random: Random) -> Image.Image:
    """The picture with the noise of a sensor."""
    noise = Image.frombytes("L", picture.size, random.randbytes(picture.width * picture.height))
    noise = noise.point([119 + level // 14 for level in range(256)]).filter(ImageFilter.GaussianBlur(0.5))
    grain = Image.merge("RGB", (noise, noise, noise))
    return ImageChops.add(picture, grain, scale=1, offset=-128)


def _mix(first: Colour, second: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * min(max(share, 0), 1)) for a, b in zip(first, second, strict=True))
    return red, green, blue


SIDE = 512
_STICKER = 3
_SKIES: dict[Weather, tuple[str, str]] = {
    "sun": ("#4aa8e8", "#a9dcf8"),
    "cloud": ("#7fa6c9", "#c9dcea"),
    "rain": ("#4d6a8f", "#93acc4"),
    "snow": ("#7d93b8", "#d4e0ee"),
    "storm": ("#3a3f63", "#7c7fa3"),
}


def sticker(weather: Weather, caption: str) -> bytes:
    """A round weather sticker with a white border, 512 pixels square, as a lossless WebP file with transparency."""
    side = SIDE * _STICKER
    face = _sky_disc(weather, side)
    draw = ImageDraw.Draw(face)
    if weather == "sun":
        _sun(draw, (side * 0.5, side * 0.41), side * 0.14)
    else:
        if weather == "cloud":
            _sun(draw, (side * 0.63, side * 0.30), side * 0.095)
        _falling(draw, weather, side)
        _cloud(draw, side, "#f7fafc" if weather != "storm" else "#d5d7e3")
    badge = Image.new("RGBA", (side, side))
    shadow = _circle(side, 0.485).filter(ImageFilter.GaussianBlur(side // 110))
    shadow = shadow.point([level * 70 // 255 for level in range(256)])
    badge.paste((20, 28, 40, 255), (0, 0), ImageChops.offset(shadow, 0, side // 160))
    border = Image.new("RGBA", badge.size)
    border.paste((255, 255, 255, 255), (0, 0), _circle(side, 0.482))
    badge.alpha_composite(border)
    badge.paste(face, (0, 0), _circle(side, 0.455))
    small = badge.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    if caption:
        _caption(small, caption)
    return encode(small, "WEBP", lossless=True, quality=80, method=4)


def _sky_disc(weather: Weather, side: int) -> Image.Image:
    top, bottom = _SKIES[weather]
    mask = Image.linear_gradient("L").resize((side, side))
    return Image.composite(Image.new("RGB", (side, side), bottom), Image.new("RGB", (side, side), top), mask)


def _circle(side: int, radius: float) -> Image.Image:
    mask = Image.new("L", (side, side))
    edges = (side * (0.5 - radius), side * (0.5 - radius), side * (0.5 + radius), side * (0.5 + radius))
    ImageDraw.Draw(mask).ellipse(edges, fill=255)
    return mask


def _sun(draw: ImageDraw.ImageDraw, centre: Point, radius: float) -> None:
    x, y = centre
    for ray in range(12):
        angle = ray * math.pi / 6
        start, end = radius * 1.28, radius * (1.72 if ray % 2 else 1.92)
        ends = [(x + math.cos(angle) * reach, y + math.sin(angle) * reach) for reach in (start, end)]
        draw.line(ends, fill="#ffd65a", width=round(radius * 0.2))
        for end_x, end_y in ends:
            dot = radius * 0.1
            draw.ellipse((end_x - dot, end_y - dot, end_x + dot, end_y + dot), fill="#ffd65a")
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill="#ffc62e")
    inner = radius * 0.86
    draw.ellipse((x - inner, y - inner, x + inner, y + inner), fill="#ffd65a")


def _cloud(draw: ImageDraw.ImageDraw, side: int, colour: str) -> None:
    for shade, drop in (("#b9c8d6", 0.014), (colour, 0.0)):
        for x, y, radius in ((0.34, 0.39, 0.09), (0.46, 0.32, 0.13), (0.60, 0.36, 0.11), (0.69, 0.41, 0.075)):
            box = (side * (x - radius), side * (y - radius + drop), side * (x + radius), side * (y + radius + drop))
            draw.ellipse(box, fill=shade)
        box = (side * 0.25, side * (0.36 + drop), side * 0.765, side * (0.485 + drop))
        draw.rounded_rectangle(box, radius=side * 0.0475, fill=shade)


def _falling(draw: ImageDraw.ImageDraw, weather: Weather, side: int) -> None:
    """What falls from the cloud."""
    places = [(0.36, 0.55), (0.47, 0.58), (0.58, 0.55), (0.67, 0.58)]
    if weather == "rain":
        for x, y in places:
            start, end = (side * x, side * y), (side * (x - 0.025), side * (y + 0.075))
            draw.line([start, end], fill="#cfe6fb", width=round(side * 0.018))
            for at_x, at_y in (start, end):
                dot = side * 0.009
                draw.ellipse((at_x - dot, at_y - dot, at_x + dot, at_y + dot), fill="#cfe6fb")
    elif weather == "snow":
        for x, y in places:
            for spoke in range(3):
                angle = spoke * math.pi / 3 + math.pi / 6
                dx, dy = math.cos(angle) * side * 0.034, math.sin(angle) * side * 0.034
                middle = (side * x, side * (y + 0.03))
                ends = [(middle[0] - dx, middle[1] - dy), (middle[0] + dx, middle[1] + dy)]
                draw.line(ends, fill="#ffffff", width=round(side * 0.011))
    elif weather == "storm":
        bolt = ((0.53, 0.46), (0.43, 0.58), (0.50, 0.58), (0.46, 0.70), (0.60, 0.54), (0.525, 0.54), (0.58, 0.46))
        draw.polygon([(side * x, side * y) for x, y in bolt], fill="#ffd65a")


def _caption(picture: Image.Image, caption: str) -> None:
    """The caption on a ribbon across the lower part."""
    text = drawable(caption)
    size = 40
    while size > 16 and font(size).getlength(text) > 300:
        size -= 2
    width = font(size).getlength(text) + 48
    ribbon = Image.new("RGBA", (SIDE * 2, SIDE * 2))
    box = (SIDE - width, 2 * 408 - 64, SIDE + width, 2 * 408 + 64)
    ImageDraw.Draw(ribbon).rounded_rectangle(box, radius=64, fill="#1f2c3d")
    picture.alpha_composite(ribbon.reduce(2))
    ImageDraw.Draw(picture).text((SIDE / 2, 408), text, font=font(size), fill="#ffffff", anchor="mm")
