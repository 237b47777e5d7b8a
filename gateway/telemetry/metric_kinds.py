"""Kinds of metrics, bounded, and their Prometheus text (text exposition format 0.0.4).

A few kinds of metrics need no library, and this one bounds how far hosts and upstreams can make it grow: a metric keeps
at most `MOST_SERIES` combinations of label values; further ones are counted together as `other`. For use by one thread.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

MOST_SERIES = 500

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OTHER = "other"

Labels: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Sample: TypeAlias = tuple[str, Mapping[str, str], float]
"""The suffix of the metric's name, its labels, its value."""


class Metric(ABC):
    """Base class of metrics: name, description, and the names of the labels."""

    kind: Kind = "gauge"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)

    @abstractmethod
    def samples(self) -> Iterator[Sample]:
        """Yield the current samples."""

    def named(self, values: Labels) -> dict[str, str]:
        """Return label values with their names."""
        return dict(zip(self.labels, values, strict=True))


class Counter(Metric):
    """A value that only grows, until the process ends."""

    kind = "counter"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, meaning, labels)
        self._values: dict[Labels, float] = {} if self.labels else {(): 0.0}

    def add(self, amount: float, *values: str) -> None:
        """Add `amount` for these label values."""
        key = _bounded(values, self._values)
        self._values[key] = self._values.get(key, 0.0) + amount

    def value(self, *values: str) -> float:
        """Return the count for these label values."""
        return self._values.get(values, 0.0)

    def samples(self) -> Iterator[Sample]:
        """Yield one sample for each combination of label values that has occurred."""
        for values, number in self._values.items():
            yield "", self.named(values), number


class Reading(Metric):
    """A value that is kept elsewhere, and read on demand. `read` returns a value for each combination of labels."""

    def __init__(
        self,
        name: str,
        meaning: str,
        read: Callable[[], Iterable[tuple[Labels, float]]],
        labels: Sequence[str] = (),
        *,
        kind: Kind = "gauge",
    ) -> None:
        super().__init__(name, meaning, labels)
        self.kind = kind
        self._read = read

    def samples(self) -> Iterator[Sample]:
        """Yield the values that `read` returns."""
        for values, number in self._read():
            yield "", self.named(values), number


class Histogram(Metric):
    """Counts of values up to certain limits, with the sum and the number of all values."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, meaning, labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *values: str) -> None:
        """Add a value, for these label values."""
        key = _bounded(values, self._counts)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + value

    def samples(self) -> Iterator[Sample]:
        """Yield the buckets, the sum and the count for each combination of label values."""
        for values, counts in self._counts.items():
            labels = self.named(values)
            for bound, below in zip((*map(_number, self._bounds), "+Inf"), accumulate(counts), strict=True):
                yield "_bucket", {**labels, "le": bound}, below
            yield "_sum", labels, self._sums[values]
            yield "_count", labels, sum(counts)


def exposition(metrics: Iterable[Metric]) -> str:
    """Format all metrics for Prometheus."""
    return "".join(line + "\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.meaning)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for suffix, labels, value in metric.samples():
        written = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels.items())
        yield f"{metric.name}{suffix}{'{' + written + '}' if written else ''} {_number(value)}"


def _bounded(values: Labels, known: Mapping[Labels, object]) -> Labels:
    return values if values in known or len(known) < MOST_SERIES else (OTHER,) * len(values)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
