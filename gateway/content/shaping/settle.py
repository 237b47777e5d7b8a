"""The loop that settles a turn for a model API: assemble, perform what is wanted, assemble again."""

from collections.abc import Sequence

from gateway.content.shaping.effects import EffectRunner, perform
from gateway.core.model.effects import Outcome
from gateway.core.model.turn import Call
from gateway.core.model_apis.turns import Assembled, Choices, assemble
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.results.plan_effects import ROUNDS


async def settle_turn(
    calls: Sequence[Call], profile: ModelProfile, runner: EffectRunner, owner: str, choices: Choices | None = None
) -> Assembled:
    """The turn with every effect performed that it needs. `owner` is whom kept content belongs to. Never raises."""
    outcomes: dict[str, Outcome] = {}
    now = assemble(calls, profile, outcomes, choices)
    for _ in range(ROUNDS):
        if not now.wanted:
            break
        outcomes |= await perform(now.wanted, runner, owner)
        now = assemble(calls, profile, outcomes, choices)
    return now
