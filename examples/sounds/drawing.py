"""A sound as a picture: its waveform over time, and a close view of the first waves."""

from __future__ import annotations  # array takes its parameter at run time only from Python 3.12 on

import unicodedata
from array import array
from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from .synthesis import RATE

WIDTH, HEIGHT, SCALE = 1_000, 460, 3
LEFT, RIGHT = 60, 970
INK, SOFT, GRID, WAVE, CORE = "#1f2933", "#66727f", "#e5e9ed", "#3b7dc4", "#1d4f8c"
_STEPS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5)


def draw_waveform(samples: array[int], title: str) -> bytes:
    """The picture as a PNG file: above the whole sound, below thirty milliseconds from its loudest moment."""
    large = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), "#ffffff")
    draw = ImageDraw.Draw(large)
    marks = _overview(draw, samples)
    start, few = _loudest(samples)
    _close_view(draw, few)
    picture = large.reduce(SCALE)
    seconds = len(samples) / RATE
    pen = ImageDraw.Draw(picture)
    _write(pen, (40, 36), title, 22, INK)
    for mark in marks:
        text = f"{mark:g} s"
        _write(pen, (LEFT + (RIGHT - LEFT) * mark / seconds, 262), text, 13, SOFT, "mm")
    _write(pen, (40, 300), f"From {start / RATE:.2f} s, {len(few) / RATE * 1000:.0f} milliseconds:", 14, SOFT)
    for y, text in ((84, "1"), (160, "0"), (236, "-1")):
        _write(pen, (LEFT - 12, y), text, 13, SOFT, "rm")
    file = BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def _overview(draw: ImageDraw.ImageDraw, samples: Sequence[int]) -> list[float]:
    """Draw the whole sound; for each column its extremes, and darker its mean loudness. Returns the marks of time."""
    middle, reach, seconds = 160, 76, len(samples) / RATE
    step = next((step for step in _STEPS if seconds / step <= 10), _STEPS[-1])
    marks = [round(step * index, 3) for index in range(int(seconds / step + 1e-6) + 1)]
    for mark in marks:
        x = LEFT + (RIGHT - LEFT) * mark / seconds
        _line(draw, [(x, middle - reach), (x, middle + reach)], GRID, 1)
    for y in (middle - reach, middle, middle + reach):
        _line(draw, [(LEFT, y), (RIGHT, y)], GRID, 1)
    columns = (RIGHT - LEFT) * SCALE
    for column in range(columns):
        part = samples[column * len(samples) // columns : max(1, (column + 1) * len(samples) // columns)]
        if not part:
            continue
        high, low = max(part) / 32_767, min(part) / 32_767
        mean = sum(map(abs, part)) / len(part) / 32_767
        x = LEFT * SCALE + column
        for upper, lower, colour in ((high, low, WAVE), (min(mean, high), max(-mean, low), CORE)):
            draw.line([(x, (middle - upper * reach) * SCALE), (x, (middle - lower * reach) * SCALE)], fill=colour)
    return marks


def _close_view(draw: ImageDraw.ImageDraw, few: Sequence[int]) -> None:
    middle, reach = 378, 56
    _line(draw, [(LEFT, middle), (RIGHT, middle)], GRID, 1)
    wide = (RIGHT - LEFT) / max(1, len(few) - 1)
    points = [(LEFT + index * wide, middle - sample / 32_767 * reach) for index, sample in enumerate(few)]
    _line(draw, points, WAVE, 2)


def _loudest(samples: array[int]) -> tuple[int, array[int]]:
    """The loudest moment, and thirty milliseconds from it (or from earlier, where the sound ends before)."""
    count = min(len(samples), RATE * 30 // 1000)
    peak = max(range(len(samples)), key=lambda index: abs(samples[index]))
    start = min(peak, len(samples) - count)
    return start, samples[start : start + count]


def _line(draw: ImageDraw.ImageDraw, points: Sequence[tuple[float, float]], colour: str, width: int) -> None:
    draw.line([(x * SCALE, y * SCALE) for x, y in points], fill=colour, width=width * SCALE, joint="curve")


def _write(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, colour: str, anchor: str = "lm"
) -> None:
    # The font that Pillow brings has no accented letters.
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    draw.text(at, plain, font=ImageFont.load_default(size), fill=colour, anchor=anchor)
