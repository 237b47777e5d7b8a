"""What is lost between two runs of the suite: check by check, and count by count."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.conformance.suite import Check

PASSED = "SUCCESS"
Key = tuple[str, str, str]
"""A check: its scenario, its id and its name. Some stand for several."""
Explained = Mapping[tuple[str, str], str]
"""Why a check, by its scenario and id, cannot pass where it is lost."""


@dataclass(frozen=True)
class Loss:
    """A check that passes less often, or fails more often, through the gateway than directly."""

    scenario: str
    id: str
    name: str
    direct: int
    """How often it passes directly."""
    gateway: int
    """How often it passes through the gateway."""
    found: str
    """What the suite says of it through the gateway."""
    why: str | None = None
    """Why it cannot be otherwise."""

    def __str__(self) -> str:
        return f"{self.scenario}: {self.id} ({self.name}): {self.direct} -> {self.gateway}, {self.found}"


@dataclass(frozen=True)
class Comparison:
    """The suite against an upstream directly, and through the gateway."""

    title: str
    era: str
    scenarios: int
    direct: int
    """How many checks pass directly."""
    gateway: int
    """How many of those pass through the gateway. What passes only there depends on when it asks for itself."""
    losses: list[Loss] = field(default_factory=list[Loss])
    stale: list[str] = field(default_factory=list[str])
    """What is explained as lost, but is not."""

    @property
    def lost(self) -> list[Loss]:
        """The losses that nothing explains."""
        return [loss for loss in self.losses if loss.why is None]


def compare(
    title: str, era: str, direct: Iterable[Check], gateway: Iterable[Check], explained: Explained | None = None
) -> Comparison:
    """Compare two runs. Skipped, warned about or not reached is lost, as failed is."""
    before, after = list(direct), list(gateway)
    reasons = explained or {}
    losses = [
        Loss(*key, *counts, _found(key, after), reasons.get(key[:2]))
        for key in dict.fromkeys(_key(check) for check in [*before, *after])
        if (counts := _counts(key, before, after)) is not None
    ]
    lost = {(loss.scenario, loss.id) for loss in losses}
    return Comparison(
        title,
        era,
        len({check.scenario for check in before}),
        _passed(before).total(),
        (_passed(before) & _passed(after)).total(),
        losses,
        [": ".join(key) for key in reasons if key not in lost],
    )


def failures(checks: Iterable[Check]) -> list[Check]:
    """Those that an upstream must not have which is to be compared with. What does not apply to an era is skipped."""
    return [check for check in checks if check.status in ("FAILURE", "WARNING")]


def _passed(checks: Iterable[Check]) -> Counter[Key]:
    """How often each check passed."""
    return Counter(_key(check) for check in checks if check.status == PASSED)


def _key(check: Check) -> Key:
    return check.scenario, check.id, check.name


def _counts(key: Key, before: list[Check], after: list[Check]) -> tuple[int, int] | None:
    """How often it passes directly and through the gateway; None where nothing is lost."""
    direct, gateway = _statuses(key, before), _statuses(key, after)
    bad = sum(gateway[status] - direct[status] for status in ("FAILURE", "WARNING"))
    return (direct[PASSED], gateway[PASSED]) if gateway[PASSED] < direct[PASSED] or bad > 0 else None


def _statuses(key: Key, checks: list[Check]) -> Counter[str]:
    return Counter(check.status for check in checks if _key(check) == key)


def _found(key: Key, checks: list[Check]) -> str:
    mine = [check for check in checks if _key(check) == key and check.status != PASSED]
    if not mine:
        return "not reached"
    return "; ".join(f"{check.status.lower()}: {check.message}" if check.message else check.status for check in mine)
