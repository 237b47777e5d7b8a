"""The one loop of pure decisions and effects: decide, perform the wanted effects, decide again."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio.to_thread

from gateway.content.shaping.effects import EffectRunner, perform
from gateway.core.model.effects import Effect, Outcome
from gateway.core.model.turn import Call
from gateway.core.model_apis.turns import Assembled, Choices, assemble
from gateway.core.profiles.model_profile import ModelProfile

ROUNDS = 16
"""More than any result needs: read a link, read the document behind it, render its pages, render them smaller for the
shared budget; write whatever failed to a file, describe it, and store it; fit images to a budget in tokens, again if
their captions take more room than expected, name them, and store what their lines say."""

_CALLS_IN_PLACE = 64
"""Calls of one turn above which it is assembled in a thread: each takes about a third of a millisecond."""

Outcomes = Mapping[str, Outcome]
"""The outcomes of effects, by the effects' keys."""


class Decided(Protocol):
    """A decision based on the outcomes so far. It is final when no more effects are wanted."""

    @property
    def wanted(self) -> Mapping[str, Effect]:
        """The effects that are still needed, by the keys of their outcomes."""
        ...


DecidedT = TypeVar("DecidedT", bound=Decided)
ResultT = TypeVar("ResultT")


async def settle(
    decide: Callable[[Outcomes], Awaitable[DecidedT]], run: Callable[[Mapping[str, Effect]], Awaitable[Outcomes]]
) -> tuple[DecidedT, Outcomes]:
    """Return the last decision and the outcomes that it is based on, after at most `ROUNDS` rounds."""
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
    """Do the same as `settle` with functions that are not async."""

    async def decided(outcomes: Outcomes) -> DecidedT:
        return decide(outcomes)

    async def performed(effects: Mapping[str, Effect]) -> Outcomes:
        return run(effects)

    return _without_waiting(settle(decided, performed))


async def settle_turn(
    calls: Sequence[Call], profile: ModelProfile, runner: EffectRunner, choices: Choices | None = None
) -> Assembled:
    """Return a turn for a model API after performing all effects that it needs. Never raises."""

    async def assembled(outcomes: Outcomes) -> Assembled:
        if len(calls) <= _CALLS_IN_PLACE:
            return assemble(calls, profile, outcomes, choices)
        return await anyio.to_thread.run_sync(assemble, calls, profile, outcomes, choices)

    done, _ = await settle(assembled, partial(perform, runner=runner))
    return done


def _without_waiting(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waited")
