"""Long calls of other replicas: their outcomes are known to all, also when the replica that ran a call is gone."""

from collections.abc import Callable
from typing import Any

import anyio

from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.wire import text_result
from gateway.errors import UnknownLongCall
from gateway.routing.long_calls import call_texts
from gateway.routing.long_calls.kept_outcome import KeptOutcome, read_outcome
from gateway.routing.long_calls.registry import LongCalls
from gateway.routing.long_calls.task_states import ended_state, task_times
from gateway.routing.replica_port import ReplicaPort
from gateway.upstream import RequestContext
from gateway.upstream.connection.owners import client_of

_LOOK_SECONDS = 0.5
"""Time between two looks for the outcome of a call that another replica runs."""

MayHave = Callable[[str, str, Caller], bool]
"""Whether a caller may have what a tool of an upstream returned."""


class CallsElsewhere:
    """Answers about calls that `long_calls` does not have."""

    def __init__(self, replica: ReplicaPort, long_calls: LongCalls, may_have: MayHave) -> None:
        self._replica = replica
        self._long_calls = long_calls
        self._may_have = may_have

    async def wait(self, call: str, context: RequestContext, seconds: float | None) -> dict[str, Any]:
        """Return the result of a call as soon as there is one, or say that it still runs; raise the error that it had.

        Raises:
            UnknownLongCall: no replica has it, or the one that ran it is gone.
            StateUnavailable: nobody knows at present.
        """
        with anyio.move_on_after(seconds):
            while (outcome := await self._outcome(call, context)) is None:  # noqa: ASYNC110 - it ends in another process
                await anyio.sleep(_LOOK_SECONDS)
            if outcome.error is not None:
                raise outcome.error
            return dict(outcome.result or {})
        return text_result(call_texts.still_running_elsewhere(call))

    async def cancel(self, call: str, context: RequestContext) -> str:
        """Return what is said to a host that wants to end a call. Raises what `wait` raises for want of the call."""
        if await self._outcome(call, context) is None:
            return call_texts.runs_elsewhere(call)
        return call_texts.over_elsewhere(call)

    async def task(self, method: str, call: str, context: RequestContext) -> dict[str, Any] | None:
        """Return the answer to a request about a call that is a task; None if no replica has it.

        Raises:
            UnknownLongCall: the replica that ran it is gone.
            StateUnavailable: nobody knows at present.
        """
        client = client_of(context.caller)
        if await self._replica.call_elsewhere(client, call) is None:
            return None
        outcome = await self._outcome(call, context)
        if method != "tasks/get":
            return {}
        if outcome is None:
            return {**task_times(call, None, self._long_calls.settings.lasts), "status": "working"}
        state = task_times(call, (outcome.created, outcome.changed), self._long_calls.settings.lasts)
        return ended_state(state, outcome.result, outcome.error)

    async def _outcome(self, call: str, context: RequestContext) -> KeptOutcome | None:
        """Return the outcome of a call; None while it runs. Raises UnknownLongCall, StateUnavailable."""
        found = await self._replica.call_elsewhere(client_of(context.caller), call)
        if found is None:
            raise self._long_calls.unknown(call)
        if found.outcome is not None:
            outcome = read_outcome(found.outcome)
            if not self._may_have(outcome.upstream, outcome.tool, context.caller):
                raise self._long_calls.unknown(call)
            return outcome
        if found.is_running:
            return None
        words = f"the replica of the gateway that ran the call {plain(call, 40)} is gone, and its outcome is not known"
        raise UnknownLongCall(words, remedy="call the tool again if that does no harm")
