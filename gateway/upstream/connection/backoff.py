"""How long to wait before connecting again: longer each time, never longer than a cap, and never in step."""

from dataclasses import dataclass, field
from random import Random

SHORTEST = 0.5
LONGEST = 30.0


@dataclass
class Backoff:
    """Delays in seconds: 0.5, 1, 2, ... 30, each cut by up to a half at random: upstreams must not march in step."""

    chance: Random = field(default_factory=Random)
    _next: float = SHORTEST

    def delay(self) -> float:
        """The next delay; the one after it is twice as long, up to the cap."""
        longest, self._next = self._next, min(LONGEST, 2 * self._next)
        return longest * (0.5 + 0.5 * self.chance.random())

    def reset(self) -> None:
        """Begin again: the connection has held."""
        self._next = SHORTEST
