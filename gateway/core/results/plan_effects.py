"""Planning: which effects a result needs before it can be lowered for a profile."""

from collections.abc import Collection, Mapping

from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import decide

ROUNDS = 8
"""More than any result needs: a link is read, the document that it led to is read, its pages are drawn, and drawn
smaller for the shared budget; what failed is written to a file, described, and kept."""


def plan(
    envelope: Envelope, profile: Profile, outcomes: Mapping[str, Outcome], describes: Collection[str] = ()
) -> tuple[Effect, ...]:
    """The effects to perform next, given the outcomes so far; empty when everything is known.

    Sizes that are known only after encoding and budgets shared by several images need more than one round.
    `describes`: see `decide`.
    """
    return decide(envelope, profile, outcomes, describes).wanted
