"""Bars of ratios on a logarithmic scale, as an SVG that is readable on light and dark pages."""

import math
from collections.abc import Mapping
from html import escape
from typing import Final

from benchmarks.calls.figures import Ratio

WIDTH: Final = 760
LEFT: Final = 110
RIGHT: Final = 60
BAR: Final = 13
GAP: Final = 12
TOP: Final = 56
COLOURS: Final = ("#2563eb", "#60a5fa", "#d97706", "#7c8794", "#059669", "#be185d")
INK: Final = "#57606a"
TICKS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def svg(title: str, cases: Mapping[str, Mapping[str, Ratio]]) -> str:
    """For each case, a bar for each way: its median, and a line from the lowest round to the highest."""
    ways = list(dict.fromkeys(way for bars in cases.values() for way in bars))
    ratios = [ratio for bars in cases.values() for ratio in bars.values()]
    scale = _Scale(min([0.5, *(ratio.low for ratio in ratios)]), max([2.0, *(ratio.high for ratio in ratios)]))
    parts: list[str] = [_text(8, 18, title, size=14)]
    parts += _legend(ways)
    y = TOP
    for case, bars in cases.items():
        y += GAP
        parts.append(_text(LEFT - 10, y + len(bars) * BAR / 2 + 4, case, anchor="end"))
        for way, ratio in bars.items():
            parts += _bar(scale, y, ratio, COLOURS[ways.index(way) % len(COLOURS)])
            y += BAR
    bottom = y + GAP
    grid = [part for tick in TICKS if scale.low <= tick <= scale.high for part in _tick(scale, tick, bottom)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24:g}" role="img" '
            f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>',
            *grid,
            *parts,
            "</svg>\n",
        ]
    )


class _Scale:
    """Ratios to places, logarithmically, from a power of ten's half or fifth to another."""

    def __init__(self, low: float, high: float) -> None:
        self.low = max([tick for tick in TICKS if tick <= low], default=TICKS[0])
        self.high = min([tick for tick in TICKS if tick >= high], default=TICKS[-1])

    def x(self, ratio: float) -> float:
        """The place of a ratio; what is beyond the scale is at its end."""
        inside = min(max(ratio, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _legend(ways: list[str]) -> list[str]:
    parts, x = list[str](), 8.0
    for number, way in enumerate(ways):
        parts.append(f'<rect x="{x:g}" y="28" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(_text(x + 15, 37, way))
        x += 40 + 7 * len(way)
    return parts


def _bar(scale: _Scale, y: float, ratio: Ratio, colour: str) -> list[str]:
    start, end = sorted((scale.x(1), scale.x(ratio.median)))
    middle = y + BAR / 2 - 1
    return [
        f'<rect x="{start:g}" y="{y:g}" width="{max(end - start, 1):g}" height="{BAR - 2}" fill="{colour}"/>',
        f'<path d="M{scale.x(ratio.low):g} {middle:g}H{scale.x(ratio.high):g}" stroke="{INK}" stroke-width="1.5"/>',
    ]


def _tick(scale: _Scale, tick: float, bottom: float) -> list[str]:
    x, width = scale.x(tick), 1.5 if tick == 1 else 0.5
    return [
        f'<path d="M{x:g} {TOP}V{bottom:g}" stroke="{INK}" stroke-opacity=".6" stroke-width="{width}"/>',
        _text(x, bottom + 16, f"{tick:g}", anchor="middle"),
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{INK}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
