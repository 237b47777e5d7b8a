"""How hosts behave: what they call, in which bursts, and how long they think in between. Drawn from a seed."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from benchmarks.calls.wire import Era

LIST: Final = "tools/list"
"""A kind of call that is not a tool of the upstream."""

MIX: Final[Mapping[str, float]] = {
    "text": 0.70,
    "structured": 0.15,
    "image_10k": 0.08,
    LIST: 0.04,
    "image_1m": 0.02,
    "photo": 0.01,
}
"""The share of each kind of call. `photo` has 12 megapixels, so it is scaled in a media worker for most hosts."""

STATELESS_SHARE: Final = 0.5
"""The part of the hosts that speaks 2026-07-28; the others open a session."""


class Burst(NamedTuple):
    """What a host asks at once, after it has thought for `think` seconds."""

    think: float
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Behaviour:
    """How hosts call: a model asks for one to four tools at once, then its host thinks, for `think` seconds on average.

    Times between bursts are exponential, so the bursts of many hosts arrive as a Poisson process does.
    """

    think: float
    mix: Mapping[str, float] = field(default_factory=lambda: MIX)
    parallel: tuple[float, ...] = (0.70, 0.15, 0.10, 0.05)
    """The shares of bursts of one call, two, three and four."""

    def __post_init__(self) -> None:
        if self.think <= 0 or not self.mix or abs(sum(self.parallel) - 1) > 1e-9:
            raise ValueError("a behaviour needs time to think, kinds of calls, and shares of bursts that add up to 1")

    @property
    def calls_a_second(self) -> float:
        """Calls of one host per second, if answers took no time."""
        return self.calls_a_burst / self.think

    @property
    def calls_a_burst(self) -> float:
        """Average number of calls at once."""
        return sum(number * share for number, share in enumerate(self.parallel, start=1))

    def bursts(self, seed: int) -> Iterator[Burst]:
        """Yield the bursts of one host, without end."""
        drawn = random.Random(seed)  # noqa: S311 - no secret
        kinds, weights = list(self.mix), list(self.mix.values())
        numbers = range(1, len(self.parallel) + 1)
        while True:
            (number,) = drawn.choices(numbers, self.parallel)
            yield Burst(drawn.expovariate(1 / self.think), tuple(drawn.choices(kinds, weights, k=number)))


def era_of(host: int) -> Era:
    """Return the era that the host with this number speaks."""
    return Era.STATELESS if (host * STATELESS_SHARE) % 1 < STATELESS_SHARE else Era.HANDSHAKE
