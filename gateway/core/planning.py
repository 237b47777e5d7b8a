"""Planning: which effects a result needs before it can be lowered for a profile."""

from collections.abc import Mapping

from gateway.core.deciding import decide
from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.model.profile import Profile

ROUNDS = 4
"""More than any result needs: images fitted by themselves, then to the shared budget, then what failed is kept."""


def plan(envelope: Envelope, profile: Profile, outcomes: Mapping[str, Outcome]) -> tuple[Effect, ...]:
    """The effects to perform next, given the outcomes so far; empty when everything is known.

    Sizes that are known only after encoding and budgets shared by several images need more than one round.
    """
    return decide(envelope, profile, outcomes).wanted
