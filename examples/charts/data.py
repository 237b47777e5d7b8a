"""What is drawn: charts as values, the bundled tables, and the search for bad readings. No drawing here."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Literal

Kind = Literal["bar", "line", "pie"]

FOLDER = Path(__file__).parent
LARGEST = 1e12
MOST_POINTS = 60
MOST_SLICES = 12


class BadData(ValueError):
    """Data that cannot be drawn; the message says why and what would do."""


@dataclass(frozen=True)
class Series:
    """Named numbers, one for each label of a chart."""

    name: str
    values: tuple[float, ...]

    def summary(self, labels: Sequence[str], unit: str) -> str:
        """One line: the smallest, the largest and the mean value."""
        low, high = min(self.values), max(self.values)
        return (
            f"{self.name}: lowest {amount(low, unit)} ({labels[self.values.index(low)]}), "
            f"highest {amount(high, unit)} ({labels[self.values.index(high)]}), mean {amount(fmean(self.values), unit)}"
        )


@dataclass(frozen=True)
class Chart:
    """A chart to be drawn. Every series has as many values as there are labels."""

    kind: Kind
    title: str
    unit: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]

    def __post_init__(self) -> None:
        if not self.labels or not self.series:
            raise BadData("there is nothing to draw: give at least one label with its value")
        if len(self.labels) > MOST_POINTS:
            raise BadData(f"{len(self.labels)} values are too many for one chart: give at most {MOST_POINTS}")
        for series in self.series:
            self._check(series)

    def _check(self, series: Series) -> None:
        if len(series.values) != len(self.labels):
            raise BadData(
                f"{len(self.labels)} labels but {len(series.values)} values: give exactly one label for each value"
            )
        for label, value in zip(self.labels, series.values, strict=True):
            if not math.isfinite(value) or abs(value) > LARGEST:
                raise BadData(f"the value for {label!r} is {value}: give finite numbers up to {LARGEST:.0e}")
        if self.kind == "pie":
            self._check_slices(series)

    def _check_slices(self, series: Series) -> None:
        if len(series.values) > MOST_SLICES:
            raise BadData(f"{len(series.values)} slices cannot be told apart: give at most {MOST_SLICES}, or draw bars")
        if min(series.values) < 0:
            raise BadData("a pie shows parts of a whole, so no value may be negative: draw bars instead")
        if sum(series.values) <= 0:
            raise BadData("the values add up to zero, so there is no pie: give at least one positive value")

    def summary(self) -> str:
        """The chart in words, a line for each series: what a reader without the picture needs."""
        lines = [series.summary(self.labels, self.unit) for series in self.series]
        return "\n".join([f"{self.title} ({self.kind} chart, {len(self.labels)} values each)", *lines])


def amount(value: float, unit: str = "") -> str:
    """A number as people write it: thousands separated, two decimals or two digits that count, with its unit."""
    if abs(value) >= 1e9:
        number = _short(value / 1e9, 2) + " bn"
    else:
        number = _short(value, 2 if abs(value) >= 0.1 or not value else min(1 - math.floor(math.log10(abs(value))), 15))
    return f"{number} {unit}" if unit else number


def amounts(marks: Sequence[float]) -> tuple[str, ...]:
    """The marks of a scale in words, with as many decimals as tell them apart."""
    step = marks[1] - marks[0]
    if step >= 1e7:
        return tuple(amount(mark) for mark in marks)
    decimals = next((count for count in range(15) if math.isclose(step, round(step, count), rel_tol=1e-9)), 15)
    return tuple(f"{mark:,.{decimals}f}" for mark in marks)


def _short(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{value:,.0f}"
    return "0" if text == "-0" else text


def ticks(low: float, high: float, about: int = 6) -> tuple[float, ...]:
    """Round numbers from at or below `low` to at or above `high`, some `about` of them."""
    if low == high:
        low, high = (low - 1, high + 1) if low == 0 else (min(low, 0), max(high, 0))
    rough = (high - low) / max(about - 1, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(index * step, 12) for index in range(first, last + 1))


@cache
def temperatures() -> tuple[tuple[str, ...], Mapping[str, tuple[float, ...]]]:
    """The bundled table: the months, and each city's monthly means in degrees Celsius."""
    with (FOLDER / "temperatures.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return tuple(header[1:]), {city: tuple(map(float, values)) for city, *values in rows}


def of_cities(names: Sequence[str], kind: Kind = "line", title: str = "") -> Chart:
    """A chart of the bundled temperatures. Raises BadData for a city that is not in the table."""
    months, table = temperatures()
    if not names:
        raise BadData(f"there is nothing to draw: give labels and values, or cities from {', '.join(table)}")
    found = list(dict.fromkeys(_city(name, table) for name in names))
    return Chart(
        kind=kind,
        title=title or f"Monthly mean temperature in {_and(found)}",
        unit="°C",
        labels=months,
        series=tuple(Series(name, table[name]) for name in found),
    )


def temperature_bands(title: str = "") -> Chart:
    """How many of the bundled city-months fall into each band of temperature: parts of a whole, for a pie."""
    _, table = temperatures()
    values = [value for row in table.values() for value in row]
    bands = {"below 0 °C": (-99, 0), "0 to 10 °C": (0, 10), "10 to 20 °C": (10, 20), "20 °C and above": (20, 99)}
    counts = tuple(float(sum(low <= value < high for value in values)) for low, high in bands.values())
    title = title or f"Months by mean temperature, {len(table)} cities"
    return Chart(kind="pie", title=title, unit="months", labels=tuple(bands), series=(Series("months", counts),))


def station() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A day of a weather station that has faults: the times, and what it wrote."""
    with (FOLDER / "station.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    times, readings = zip(*rows, strict=True)
    return times, readings


@dataclass(frozen=True)
class Reading:
    """One point of a checked series: `value` is None where there is no number, `fault` says what is wrong."""

    label: str
    value: float | None
    fault: str | None = None


def check(labels: Sequence[str], values: Sequence[float | str | None]) -> tuple[Reading, ...]:
    """Each value with its fault, if it has one: missing, not a number, or far from its neighbours.

    "Far" is more than eight times the usual distance from the median of the seven readings around it, so one
    spike in a daily curve is found although the curve itself rises and falls. Raises BadData for a bad length.
    """
    if len(labels) != len(values):
        raise BadData(f"{len(labels)} labels but {len(values)} values: give exactly one label for each value")
    if not 5 <= len(values) <= 4 * MOST_POINTS:
        raise BadData(f"{len(values)} values: give from 5 to {4 * MOST_POINTS}, so that neighbours can be compared")
    numbers = [_number(value) for value in values]
    distances = [_distance(numbers, index) for index in range(len(numbers))]
    known = [number for number in numbers if number is not None]
    if not known:
        raise BadData("none of the values is a number: there is nothing to compare")
    usual = median(abs(distance) for distance in distances if distance is not None)
    # A series that hardly moves would make every wiggle a fault: so at least a thousandth of its size is usual.
    limit = 8 * max(usual, median(map(abs, known)) / 1_000)
    readings: list[Reading] = []
    for label, value, number, distance in zip(labels, values, numbers, distances, strict=True):
        if number is None or distance is None:
            written = "" if value is None else str(value).strip()
            readings.append(Reading(label, None, f"not a number: {written[:20]!r}" if written else "missing"))
        elif abs(distance) > limit:
            readings.append(Reading(label, number, f"{amount(abs(distance))} away from its neighbours"))
        else:
            readings.append(Reading(label, number))
    return tuple(readings)


def _number(value: float | str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) <= LARGEST else None


def _distance(numbers: Sequence[float | None], index: int) -> float | None:
    here = numbers[index]
    if here is None:
        return None
    around = [number for number in numbers[max(0, index - 3) : index + 4] if number is not None]
    return here - median(around)


def _city(name: str, table: Mapping[str, object]) -> str:
    for city in table:
        if city.casefold() == name.strip().casefold():
            return city
    raise BadData(f"there is no city {name!r} in the table: choose from {', '.join(table)}")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
