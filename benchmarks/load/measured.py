"""What a run has found: latencies by kind, refusals, and the use of the gateway's process meanwhile."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Answers:
    """What became of the calls of a stage: seconds by kind of those served, refusals, and failures by their words."""

    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    refused: int = 0
    failed: Counter[str] = field(default_factory=Counter[str])

    def served(self, kind: str, seconds: float) -> None:
        """Count an answer."""
        self.seconds.setdefault(kind, []).append(seconds)

    @property
    def count(self) -> int:
        """Number of calls that were served."""
        return sum(map(len, self.seconds.values()))

    def all(self) -> list[float]:
        """The seconds of every call that was served."""
        return [each for times in self.seconds.values() for each in times]


@dataclass(frozen=True)
class Use:
    """What a gateway used during a stage: CPU seconds of itself and of its media workers, bytes at the peak."""

    cpu: float
    media_cpu: float
    peak_bytes: int
    most_running: int
    most_waiting: int
    most_media_waiting: int


@dataclass(frozen=True)
class KindCost:
    """What one call of a kind costs: CPU seconds of the gateway's process, and of its media workers."""

    kind: str
    cpu: float
    media_cpu: float


@dataclass(frozen=True)
class Costs:
    """The costs of a gateway. Bytes: of an idle gateway, and of each session, stateless host and upstream more."""

    kinds: tuple[KindCost, ...]
    idle_bytes: int
    session_bytes: float
    upstream_bytes: float

    def of(self, kind: str) -> KindCost:
        """Return the cost of a kind. Raises KeyError if it was not measured."""
        for cost in self.kinds:
            if cost.kind == kind:
                return cost
        raise KeyError(kind)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, from which `from_json` makes the same."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Costs":
        """Read what `to_json` has written."""
        kinds = tuple(KindCost(**kind) for kind in found["kinds"])
        return cls(kinds, found["idle_bytes"], found["session_bytes"], found["upstream_bytes"])


@dataclass(frozen=True)
class Stage:
    """One stage of load: calls offered per second, for how long, and what came of it."""

    name: str
    hosts: int
    offered: float
    seconds: float
    answers: Answers
    use: Use | None


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which `part` (0 to 1) of the values are; not a number without any."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]
