"""The same bar and line charts as SVG, written by hand: a few elements with attributes are all there is to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from .data import Chart, amount, amounts, ticks

WIDTH, HEIGHT = 960, 600
TOP, RIGHT, BOTTOM = 130, 920, 540
LETTER = 8.5
"""About the width of a letter: nothing can be measured where the fonts are the reader's."""
COLOURS = ("#2f6db5", "#e8833a", "#3b9a72", "#c84b57", "#8367b8", "#9a7351", "#d977ae", "#6b7785")
SOFT = "#66727f"


@dataclass(frozen=True)
class _Plot:
    """Where values and labels lie."""

    left: float
    marks: tuple[float, ...]
    places: int

    @property
    def slot(self) -> float:
        return (RIGHT - self.left) / self.places

    def x(self, place: float) -> float:
        return round(self.left + (place + 0.5) * self.slot, 1)

    def y(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        return round(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP), 1)


def svg(chart: Chart) -> bytes:
    """A bar or line chart as an SVG file: no scripts, no links, text as text."""
    values = [value for series in chart.series for value in series.values]
    marks = ticks(min(0, *values), max(0, *values)) if chart.kind == "bar" else ticks(min(values), max(values))
    left = 50 + LETTER * max(map(len, amounts(marks)))
    plot = _Plot(left, marks, len(chart.labels))
    drawn = _bars(chart, plot) if chart.kind == "bar" else _lines(chart, plot)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="15" fill="#1f2933">',
        f"<title>{_clean(chart.title)}</title>",
        f"<desc>{_clean(chart.summary())}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(40, 50, _short(chart.title, 66), size=24),
        _text(40, TOP - 18, chart.unit, colour=SOFT),
        *_legend(chart),
        *_axes(chart, plot),
        *drawn,
        "</svg>\n",
    ]
    return "\n".join(parts).encode()


def _axes(chart: Chart, plot: _Plot) -> Iterator[str]:
    for mark, written in zip(plot.marks, amounts(plot.marks), strict=True):
        colour, y = "#aab4be" if mark in (0, plot.marks[0]) else "#e5e9ed", plot.y(mark)
        yield f'<line x1="{plot.left:g}" y1="{y:g}" x2="{RIGHT}" y2="{y:g}" stroke="{colour}"/>'
        yield _text(plot.left - 10, y + 5, written, anchor="end", colour=SOFT)
    longest = min(14, max(map(len, chart.labels)))
    step = max(1, -int(-(longest + 1) * LETTER // plot.slot))
    for place in range(0, len(chart.labels), step):
        yield _text(plot.x(place), BOTTOM + 26, _short(chart.labels[place], 14), anchor="middle")


def _bars(chart: Chart, plot: _Plot) -> Iterator[str]:
    thick = plot.slot * 0.76 / len(chart.series)
    for index, series in enumerate(chart.series):
        for place, value in enumerate(series.values):
            x = plot.x(place - 0.38) + index * thick
            top, bottom = sorted((plot.y(value), plot.y(0)))
            where = f'x="{x:.1f}" y="{top:g}" width="{thick * 0.96:.1f}" height="{bottom - top:.1f}"'
            hint = _clean(f"{series.name}, {chart.labels[place]}: {amount(value, chart.unit)}")
            yield f'<rect {where} rx="2" fill="{COLOURS[index]}"><title>{hint}</title></rect>'


def _lines(chart: Chart, plot: _Plot) -> Iterator[str]:
    for index, series in enumerate(chart.series):
        colour = COLOURS[index]
        points = [(plot.x(place), plot.y(value)) for place, value in enumerate(series.values)]
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="3" stroke-linejoin="round"/>'
        for x, y in points:
            yield f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{colour}" stroke="#ffffff" stroke-width="1.5"/>'


def _legend(chart: Chart) -> Iterator[str]:
    x = 40.0
    for index, series in enumerate(chart.series if len(chart.series) > 1 else ()):
        yield f'<circle cx="{x + 6:g}" cy="82" r="6" fill="{COLOURS[index]}"/>'
        yield _text(x + 20, 87, series.name)
        x += 48 + LETTER * len(series.name)


def _text(
    x: float, y: float, text: str, size: int | None = None, anchor: str | None = None, colour: str | None = None
) -> str:
    given = {"font-size": size, "text-anchor": anchor, "fill": colour}
    extra = "".join(f" {name}={quoteattr(str(value))}" for name, value in given.items() if value is not None)
    return f'<text x="{x:g}" y="{y:g}"{extra}>{_clean(text)}</text>'


def _clean(text: str) -> str:
    """Text as XML takes it: escaped, and without control characters."""
    return escape("".join(letter for letter in text if letter.isprintable() or letter == "\n"))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
