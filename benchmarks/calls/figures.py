"""What was measured, by round, and the ratios of what was measured in the same round."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

Way = TypeVar("Way")


class Ratio(NamedTuple):
    """The lowest, the middle and the highest of the rounds."""

    low: float
    median: float
    high: float


class Reference(NamedTuple):
    """One thing that was measured: in which setting, which case, on which way."""

    setting: str
    case: str
    way: str


class Figures:
    """Numbers by round. They are seconds or bytes, and leave here as ratios only."""

    def __init__(self, numbers: Mapping[Reference, Mapping[int, float]] | None = None) -> None:
        self._numbers = {reference: dict(by_round) for reference, by_round in (numbers or {}).items()}

    def add(self, reference: Reference, number: int, value: float) -> None:
        """Add what a round found."""
        self._numbers.setdefault(reference, {})[number] = value

    def ratio(self, over: Reference, under: Reference | None = None, scale: float = 1.0) -> Ratio | None:
        """`over` to `under` in each round that has both, times the scale; None where no round has.

        Without `under`, what was measured is a ratio already.
        """
        above = self._numbers.get(over, {})
        below = dict.fromkeys(above, 1.0) if under is None else self._numbers.get(under, {})
        ratios = [scale * above[number] / below[number] for number in above if below.get(number)]
        return spread([ratio for ratio in ratios if math.isfinite(ratio)])

    def cases(self, setting: str) -> list[str]:
        """The cases of a setting, in the order in which they were measured first."""
        return list(dict.fromkeys(each.case for each in self._numbers if each.setting == setting))

    def ways(self, setting: str) -> list[str]:
        """The ways of a setting."""
        return list(dict.fromkeys(each.way for each in self._numbers if each.setting == setting))

    def settings(self) -> list[str]:
        """All settings."""
        return list(dict.fromkeys(each.setting for each in self._numbers))

    def __iter__(self) -> Iterator[Reference]:
        return iter(self._numbers)


def spread(values: list[float]) -> Ratio | None:
    """None of nothing."""
    return Ratio(min(values), statistics.median(values), max(values)) if values else None


def in_turn(ways: Iterable[Way], number: int) -> list[Way]:
    """The order of a round: each begins once, so that none always follows the same neighbour's noise."""
    order = list(ways)
    start = number % len(order) if order else 0
    return order[start:] + order[:start]
