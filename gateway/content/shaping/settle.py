"""The one loop between pure decisions and effects: decide, perform what is wanted, decide again."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from gateway.content.shaping.effects import EffectRunner, perform
from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.turn import Call
from gateway.core.model_apis.turns import Assembled, Choices, assemble
from gateway.core.profiles.model_profile import ModelProfile

ROUNDS = 8
"""More than any result needs: a link is read, the document that it led to is read, its pages are drawn, and drawn
smaller for the shared budget; what failed is written to a file, described, and kept."""

Outcomes = Mapping[str, Outcome]
"""What became of effects, by the key of each."""


class Decided(Protocol):
    """What was decided from the outcomes so far. It is final when nothing is wanted any more."""

    @property
    def wanted(self) -> Mapping[str, Effect]:
        """The effects that are still needed, each under the key by which its outcome is looked for."""
        ...


DecidedT = TypeVar("DecidedT", bound=Decided)
ResultT = TypeVar("ResultT")


async def settle(
    decide: Callable[[Outcomes], Awaitable[DecidedT]], run: Callable[[Mapping[str, Effect]], Awaitable[Outcomes]]
) -> tuple[DecidedT, Outcomes]:
    """The last decision, and the outcomes that it rests on. Ends after `ROUNDS` at the latest."""
    outcomes: Outcomes = {}
    decided = await decide(outcomes)
    for _ in range(ROUNDS):
        if not decided.wanted:
            break
        outcomes = {**outcomes, **await run(decided.wanted)}
        decided = await decide(outcomes)
    return decided, outcomes


def settle_at_once(
    decide: Callable[[Outcomes], DecidedT], run: Callable[[Mapping[str, Effect]], Outcomes]
) -> tuple[DecidedT, Outcomes]:
    """The same where nothing has to be waited for."""

    async def decided(outcomes: Outcomes) -> DecidedT:
        return decide(outcomes)

    async def performed(effects: Mapping[str, Effect]) -> Outcomes:
        return run(effects)

    return _without_waiting(settle(decided, performed))


async def settle_turn(
    calls: Sequence[Call], profile: ModelProfile, runner: EffectRunner, choices: Choices | None = None
) -> Assembled:
    """A turn for a model API with every effect performed that it needs. Never raises."""

    async def assembled(outcomes: Outcomes) -> Assembled:
        return assemble(calls, profile, outcomes, choices)

    done, _ = await settle(assembled, partial(perform, runner=runner))
    return done


def _without_waiting(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")
