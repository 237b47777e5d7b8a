"""Charts as PNG: bars, lines, pies, a heat map, and a series with its bad readings marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, radians, sin

from .canvas import Canvas, Point, fit_text, text_width
from .data import Chart, Reading, amount, amounts, temperatures, ticks

PALETTE = (
    "#2f6db5",
    "#e8833a",
    "#3b9a72",
    "#c84b57",
    "#8367b8",
    "#9a7351",
    "#d977ae",
    "#6b7785",
    "#a8a02b",
    "#2fa3b4",
    "#4b5d8f",
    "#86bb6a",
)
INK = "#1f2933"
SOFT = "#66727f"
GRID = "#e5e9ed"
AXIS = "#aab4be"
ALARM = "#d12f3d"

WIDTH, HEIGHT = 960, 600
MARGIN = 40


@dataclass(frozen=True)
class Frame:
    """Where values and labels lie in the picture: the plot's edges, the range of values, the number of places."""

    left: float
    top: float
    right: float
    bottom: float
    low: float
    high: float
    places: int

    @property
    def slot(self) -> float:
        """The width of one place."""
        return (self.right - self.left) / self.places

    def x(self, place: float) -> float:
        """The middle of a place, counted from 0."""
        return self.left + (place + 0.5) * self.slot

    def y(self, value: float) -> float:
        """The height of a value."""
        return self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top)


def draw(chart: Chart, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    """The chart as a PNG file."""
    canvas = Canvas(width, height)
    _headline(canvas, chart.title)
    if chart.kind == "pie":
        _pie(canvas, chart)
        return canvas.png()
    top = 92.0
    if len(chart.series) > 1:
        _legend(canvas, [series.name for series in chart.series], 82)
        top = 118.0
    frame = _axes(canvas, chart, top)
    if chart.kind == "bar":
        _bars(canvas, chart, frame)
    else:
        _lines(canvas, chart, frame)
    return canvas.png()


def _headline(canvas: Canvas, title: str) -> None:
    canvas.text((MARGIN, 40), fit_text(title, 24, canvas.width - 2 * MARGIN), 24, INK, "lm")


def _legend(canvas: Canvas, names: Sequence[str], y: float) -> None:
    x = float(MARGIN)
    room = (canvas.width - 2 * MARGIN) / len(names)
    for index, name in enumerate(names):
        shown = fit_text(name, 14, room - 44)
        canvas.circle((x + 6, y), 6, PALETTE[index % len(PALETTE)])
        canvas.text((x + 20, y), shown, 14, INK)
        x += 44 + text_width(shown, 14)


def _axes(canvas: Canvas, chart: Chart, top: float) -> Frame:
    values = [value for series in chart.series for value in series.values]
    low, high = min(values), max(values)
    if chart.kind == "bar" or 0 <= low < (high - low) / 2:
        low, high = min(low, 0), max(high, 0)  # a bar's length is its value only if it begins at zero
    marks = ticks(low, high)
    return _grid(canvas, chart.labels, chart.unit, marks, top)


def _grid(canvas: Canvas, labels: Sequence[str], unit: str, marks: Sequence[float], top: float) -> Frame:
    written = amounts(marks)
    left = MARGIN + max(text_width(text, 14) for text in written) + 10
    frame = Frame(left, top + 18, canvas.width - MARGIN, canvas.height - 58, marks[0], marks[-1], len(labels))
    if unit:
        canvas.text((MARGIN, top - 6), unit, 14, SOFT, "lm")
    for mark, text in zip(marks, written, strict=True):
        base = mark == 0 or mark == marks[0]
        canvas.rule((frame.left, frame.y(mark)), (frame.right, frame.y(mark)), AXIS if base else GRID, 1)
        canvas.text((left - 10, frame.y(mark)), text, 14, SOFT, "rm")
    _places(canvas, labels, frame)
    return frame


def _places(canvas: Canvas, labels: Sequence[str], frame: Frame) -> None:
    """The labels below the axis: all of them if they fit, shortened if there are few, else every second, third..."""
    widest = max(text_width(label, 14) for label in labels)
    few = frame.slot >= 64
    step = 1 if few else max(1, -int(-(min(widest, 120) + 12) // frame.slot))
    for place in range(0, len(labels), step):
        shown = fit_text(labels[place], 14, frame.slot * step - 8)
        canvas.text((frame.x(place), frame.bottom + 20), shown, 14, INK, "mm")


def _bars(canvas: Canvas, chart: Chart, frame: Frame) -> None:
    count = len(chart.series)
    group = frame.slot * (0.62 if count == 1 else 0.8)
    thick = group / count
    gap = 1 if count > 1 and thick > 6 else 0
    room = thick + (frame.slot - group) * 0.8 if count == 1 else thick
    named = all(text_width(amount(value), 13) <= room for series in chart.series for value in series.values)
    for index, series in enumerate(chart.series):
        for place, value in enumerate(series.values):
            left = frame.x(place) - group / 2 + index * thick
            upper, lower = sorted((frame.y(0), frame.y(value)))
            bar = (left + gap, upper, left + thick - gap, lower)
            canvas.rectangle(bar, PALETTE[index % len(PALETTE)], min(3, thick / 4))
            if named:
                y = upper - 11 if value >= 0 else lower + 11
                canvas.text((left + thick / 2, y), amount(value), 13, INK, "mm")
    if frame.low < 0 < frame.high:
        canvas.rule((frame.left, frame.y(0)), (frame.right, frame.y(0)), SOFT, 1.5)


def _lines(canvas: Canvas, chart: Chart, frame: Frame) -> None:
    marked = len(chart.labels) <= 31
    for index, series in enumerate(chart.series):
        colour = PALETTE[index % len(PALETTE)]
        points = [(frame.x(place), frame.y(value)) for place, value in enumerate(series.values)]
        if len(points) > 1:
            canvas.line(points, colour, 3)
        if marked or len(points) == 1:
            for point in points:
                canvas.circle(point, 6, "#ffffff")
                canvas.circle(point, 4.5, colour)


def _pie(canvas: Canvas, chart: Chart) -> None:
    series = chart.series[0]
    total = sum(series.values)
    centre, radius = (canvas.width * 0.29, canvas.height * 0.54), canvas.height * 0.36
    angle = -90.0
    for index, value in enumerate(series.values):
        sweep = 360 * value / total
        if value:
            canvas.slice(centre, radius, angle, angle + sweep, PALETTE[index])
        angle += sweep
    _slice_borders(canvas, series.values, centre, radius)
    hole = radius * 0.54
    canvas.circle(centre, hole, "#ffffff")
    canvas.text((centre[0], centre[1] - 12), fit_text(amount(total), 34, hole * 1.7), 34, INK, "mm")
    canvas.text((centre[0], centre[1] + 22), fit_text(chart.unit or "in all", 15, hole * 1.6), 15, SOFT, "mm")
    _pie_legend(canvas, chart, total)


def _slice_borders(canvas: Canvas, values: Sequence[float], centre: Point, radius: float) -> None:
    if sum(1 for value in values if value) < 2:
        return
    angle = -90.0
    for value in values:
        edge = (centre[0] + (radius + 2) * cos(radians(angle)), centre[1] + (radius + 2) * sin(radians(angle)))
        canvas.rule(centre, edge, "#ffffff", 2.5)
        angle += 360 * value / sum(values)


def _pie_legend(canvas: Canvas, chart: Chart, total: float) -> None:
    left, right = canvas.width * 0.58, canvas.width - MARGIN
    count = len(chart.labels)
    height = min(44.0, (canvas.height - 130) / count)
    y = canvas.height * 0.54 - (count - 1) * height / 2
    for index, (label, value) in enumerate(zip(chart.labels, chart.series[0].values, strict=True)):
        share = f"{100 * value / total:.1f} %"
        canvas.rectangle((left, y - 8, left + 16, y + 8), PALETTE[index], 4)
        room = right - left - 76 - 28 - 14 - text_width(amount(value), 17)
        canvas.text((left + 28, y), fit_text(label, 17, room), 17, INK)
        canvas.text((right - 76, y), amount(value), 17, SOFT, "rm")
        canvas.text((right, y), share, 17, INK, "rm")
        y += height


def draw_check(readings: Sequence[Reading], title: str, unit: str) -> bytes:
    """A series as a PNG file: the line through its good readings, every bad one marked.

    The scale is that of the good readings, so that one wild value does not flatten the rest: a reading beyond the
    scale is marked at the edge, with its value.
    """
    canvas = Canvas(WIDTH, HEIGHT)
    _headline(canvas, title)
    good = [reading.value for reading in readings if reading.fault is None and reading.value is not None]
    marks = ticks(min(good), max(good)) if good else ticks(0, 1)
    bad = sum(1 for reading in readings if reading.fault)
    canvas.circle((MARGIN + 6, 82), 6, PALETTE[0])
    canvas.text((MARGIN + 20, 82), f"{len(good)} good", 14)
    if bad:
        x = MARGIN + 54 + text_width(f"{len(good)} good", 14)
        canvas.ring((x, 82), 6.5, ALARM, 2.5)
        canvas.text((x + 16, 82), f"{bad} bad", 14, ALARM)
    frame = _grid(canvas, [reading.label for reading in readings], unit, marks, 118)
    # Bands lie below the line, so they come first.
    for place, reading in enumerate(readings):
        if reading.fault:
            left, right = frame.x(place - 0.5), frame.x(place + 0.5)
            canvas.rectangle((left, frame.top - 14, right, frame.bottom), "#fbe3e4")
    _good_line(canvas, readings, frame)
    for place, reading in enumerate(readings):
        if reading.fault:
            _fault(canvas, reading, frame, place)
    return canvas.png()


def _good_line(canvas: Canvas, readings: Sequence[Reading], frame: Frame) -> None:
    known = [
        (place, (frame.x(place), frame.y(reading.value)))
        for place, reading in enumerate(readings)
        if reading.fault is None and reading.value is not None
    ]
    for (first, a), (second, b) in pairwise(known):
        if second == first + 1:
            canvas.line([a, b], PALETTE[0], 3)
        else:
            canvas.dashes(a, b, PALETTE[0], 1.5)
    for place, point in known:
        alone = all(abs(place - other) > 1 for other, _ in known if other != place)
        if alone:
            canvas.circle(point, 3, PALETTE[0])


def _fault(canvas: Canvas, reading: Reading, frame: Frame, place: int) -> None:
    x = frame.x(place)
    if reading.value is None:
        y = frame.bottom - 16
        for sign in (1, -1):
            canvas.line([(x - 5, y - 5 * sign), (x + 5, y + 5 * sign)], ALARM, 2.5)
        return
    if reading.value > frame.high:
        y = frame.top + 4
        canvas.polygon([(x, y - 10), (x - 8, y + 5), (x + 8, y + 5)], ALARM)
    elif reading.value < frame.low:
        y = frame.bottom - 16
        canvas.polygon([(x, y + 10), (x - 8, y - 5), (x + 8, y - 5)], ALARM)
    else:
        y = frame.y(reading.value)
        canvas.ring((x, y), 7.5, ALARM, 2.5)
        canvas.circle((x, y), 2.5, ALARM)
    right = x + 90 < frame.right
    canvas.text((x + 15 if right else x - 15, y - 1), amount(reading.value), 15, ALARM, "lm" if right else "rm")


def draw_heat_map(cities: Sequence[str]) -> bytes:
    """The temperatures of cities and months as coloured cells: a PNG file."""
    months, table = temperatures()
    left, top, cell, tall = 170, 108, 54, 44
    canvas = Canvas(left + cell * len(months) + MARGIN, top + tall * len(cities) + 74)
    _headline(canvas, "The year in temperatures (°C)")
    for column, month in enumerate(months):
        canvas.text((left + (column + 0.5) * cell, top - 16), month, 14, SOFT, "mm")
    for row, city in enumerate(cities):
        middle = top + (row + 0.5) * tall
        canvas.text((left - 16, middle), city, 15, INK, "rm")
        for column, value in enumerate(table[city]):
            x, y = left + column * cell, top + row * tall
            canvas.rectangle((x + 1, y + 1, x + cell - 1, y + tall - 1), heat(value), 5)
            ink = "#ffffff" if value < -6 or value > 23 else INK
            canvas.text((x + cell / 2, middle), amount(round(value)), 15, ink, "mm")
    _heat_scale(canvas, left, top + tall * len(cities) + 30)
    return canvas.png()


def _heat_scale(canvas: Canvas, left: float, y: float) -> None:
    for step in range(-20, 31):
        x = left + (step + 20) * 6
        canvas.rectangle((x, y - 6, x + 6.5, y + 6), heat(step))
    canvas.text((left - 10, y), "-20", 13, SOFT, "rm")
    canvas.text((left + 51 * 6 + 10, y), "30 °C", 13, SOFT, "lm")


HEAT = (
    (-20, "#27408b"),
    (-8, "#4f8cc9"),
    (2, "#b9dcea"),
    (10, "#f4f1d0"),
    (18, "#f7b267"),
    (25, "#e2603f"),
    (30, "#a3203a"),
)


def heat(value: float) -> str:
    """The colour of a temperature: blue for frost, pale in between, red for heat."""
    if value <= HEAT[0][0]:
        return HEAT[0][1]
    for (low, cold), (high, warm) in pairwise(HEAT):
        if value <= high:
            return mix(cold, warm, (value - low) / (high - low))
    return HEAT[-1][1]


def mix(first: str, second: str, share: float) -> str:
    """A colour between two, both as `#rrggbb`."""
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * share) for a, b in pairs).hex()
