"""Delays before connecting again: exponential, capped, and randomized."""

from dataclasses import dataclass, field
from random import Random

SHORTEST = 0.5
LONGEST = 30.0


@dataclass
class Backoff:
    """Delays in seconds: 0.5, 1, 2, ... 30, each reduced at random by up to half, so that upstreams do not coincide."""

    chance: Random = field(default_factory=Random)
    _next: float = SHORTEST

    def delay(self) -> float:
        """Return the next delay; the one after it is twice as long, up to the cap."""
        longest, self._next = self._next, min(LONGEST, 2 * self._next)
        return longest * (0.5 + 0.5 * self.chance.random())

    def reset(self) -> None:
        """Start again from the shortest delay, since the connection was stable."""
        self._next = SHORTEST
