"""Answer calls before their hosts give up: the call goes on, and its host collects the result later."""

import logging
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Protocol

from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import MANY_VALUES, size_of
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import text_result
from gateway.core.own_names import CANCEL_TOOL, RUN_TOOL, WAIT_TOOL
from gateway.core.tools.catalogue import OWN, Catalogue, Route
from gateway.core.wording import failure_text
from gateway.errors import StateUnavailable, UnknownLongCall
from gateway.routing.long_calls import call_texts
from gateway.routing.long_calls.calls_elsewhere import CallsElsewhere
from gateway.routing.long_calls.long_call import ID_PREFIX, LongCall
from gateway.routing.long_calls.registry import LongCalls, Work
from gateway.routing.long_calls.task_states import as_task, takes_tasks, task_state
from gateway.routing.ports import UpstreamsPort
from gateway.routing.replica_port import ReplicaPort
from gateway.routing.tasks import unknown_task
from gateway.telemetry import Telemetry
from gateway.upstream import RequestContext

logger = logging.getLogger(__name__)

LONG_CALL_TOOLS = frozenset({WAIT_TOOL, CANCEL_TOOL})
_ANSWERS = ("inputResponses", "requestState")


class CallsPort(Protocol):
    """Makes calls, and answers requests about upstreams' tasks (implemented by `gateway.routing.calls.Calls`)."""

    async def call(self, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]: ...
    async def task(self, method: str, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]: ...


class CataloguesPort(Protocol):
    """The tools offered to hosts (implemented by `gateway.routing.tool_catalogues.ToolCatalogues`)."""

    async def offered(self, context: RequestContext) -> Catalogue: ...
    async def route(self, name: str, context: RequestContext) -> tuple[Route, Catalogue]: ...


class RulesPort(Protocol):
    """Decides which calls are allowed (implemented by `gateway.routing.call_rules.CallRules`)."""

    def is_listed(self, route: Route, caller: Caller) -> bool: ...


class EarlyAnswers:
    """Stands before `calls`. Without `long_calls`, every request simply waits for its call."""

    def __init__(
        self,
        calls: CallsPort,
        long_calls: LongCalls | None,
        upstreams: UpstreamsPort,
        catalogues: CataloguesPort,
        rules: RulesPort,
        telemetry: Telemetry,
    ) -> None:
        self._calls = calls
        self._long_calls = long_calls
        self._upstreams = upstreams
        self._catalogues = catalogues
        self._rules = rules
        self._telemetry = telemetry
        self._elsewhere: CallsElsewhere | None = None

    def join(self, replica: ReplicaPort) -> None:
        """Be one of several replicas, which know of one another's long calls."""
        if self._long_calls is not None:
            self._long_calls.replica = replica
            self._elsewhere = CallsElsewhere(replica, self._long_calls, self._may_have)

    async def call(
        self,
        params: Mapping[str, Any],
        context: RequestContext,
        waited: float = 0.0,
        keep_place: Callable[[], Callable[[], None]] | None = None,
    ) -> dict[str, Any]:
        """Return the result of `tools/call`, or what is to be said in its place while the call goes on.

        `waited` is the number of seconds that the request has waited already. `keep_place` counts the call as running
        after its request, until the function that it returns is called.

        Raises what the call raises.
        """
        name, long_calls = params.get("name"), self._long_calls
        if long_calls is None:
            return await self._calls.call(params, context)
        if name in LONG_CALL_TOOLS and (await self._catalogues.route(str(name), context))[0].upstream == OWN:
            return await self._about_call(str(name), params, context, long_calls, waited)
        seconds = context.profile.wait.early_answer
        if seconds is None or not long_calls.settings.enabled:
            return await self._calls.call(params, context)
        call = LongCall(str(name), params, context)
        long_calls.begin(call, self._work(call, context))
        try:
            is_over = await long_calls.wait(call, context, max(0.0, seconds - waited))
            if not is_over and not (self._may_answer(call) and long_calls.keep(call)):
                await long_calls.wait(call, context, None)
                is_over = True
        except BaseException:  # the host cancelled its request
            call.scope.cancel()
            raise
        if is_over:
            return _outcome(call)
        if keep_place is not None:
            call.release = keep_place()
        if long_calls.replica is not None:
            await long_calls.replica.told()
        logger.info("a call of %s is answered early, and goes on as %s", plain(call.name, 200), call.id)
        if takes_tasks(context.caller):
            return as_task(call, long_calls.settings.lasts)
        return await self._still_running(call, context)

    async def task(self, method: str, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Answer a request about a task: one of a host's long calls, or else one of an upstream.

        Raises what `Calls.task` raises.
        """
        task_id = params.get("taskId")
        if self._long_calls is None or not isinstance(task_id, str) or not task_id.startswith(ID_PREFIX):
            return await self._calls.task(method, params, context)
        try:
            call = self._found(task_id, context)
        except UnknownLongCall:  # upstreams choose the ids of their tasks as they like
            state = None if self._elsewhere is None else await self._elsewhere.task(method, task_id, context)
            return state if state is not None else await self._calls.task(method, params, context)
        context.audit.routed(call.audit.upstream, call.audit.tool)
        match method:
            case "tasks/cancel":
                if not call.is_over or call.asks:
                    self._long_calls.give_up(call)
                return {}
            case "tasks/update":
                self._resume(call, {**params, "requestState": (call.result or {}).get("requestState")})
                return {}
            case "tasks/get":
                await self._long_calls.wait(call, context, 0.0)
                return task_state(call, self._long_calls.settings.lasts)
            case _:
                raise unknown_task(task_id)

    async def _about_call(
        self, name: str, params: Mapping[str, Any], context: RequestContext, long_calls: LongCalls, waited: float
    ) -> dict[str, Any]:
        """Answer `gateway_wait` and `gateway_cancel`."""
        arguments = as_object(params.get("arguments"))
        with self._telemetry.call(context.caller, context.profile.name, name, params) as record:
            record.asked(arguments, size_of(arguments, most_values=MANY_VALUES))
            record.routed(OWN, name)
            context.audit.routed(OWN, name)
            found = await self._named(name, arguments.get("call"), context, waited)
            if not isinstance(found, LongCall):
                result = found
            elif name == WAIT_TOOL:
                result = await self._waited(found, params, context, long_calls, waited)
            else:
                result = self._cancelled(found, long_calls)
            size = size_of(result, most_values=MANY_VALUES)
            record.answered(result, size)
            record.shaped(result, size.characters, (), is_error=result.get("isError") is True)
            return result

    async def _named(
        self, name: str, call_id: object, context: RequestContext, waited: float
    ) -> LongCall | dict[str, Any]:
        """Return the call that an argument names, or the result for a call that is not here."""
        if not isinstance(call_id, str):
            return text_result(call_texts.call_missing(), is_error=True)
        try:
            return self._found(call_id.strip(), context)
        except UnknownLongCall as error:
            unknown = error
        return await self._about_other(name, call_id.strip(), unknown, context, waited)

    async def _about_other(
        self, name: str, call_id: str, unknown: UnknownLongCall, context: RequestContext, waited: float
    ) -> dict[str, Any]:
        """Answer about a call that this gateway does not have: another replica may have it, or have had it."""
        try:
            if self._elsewhere is None:
                raise unknown
            if name == WAIT_TOOL:
                return await self._elsewhere.wait(call_id, context, self._limit(context, waited))
            return text_result(await self._elsewhere.cancel(call_id, context))
        except (UnknownLongCall, StateUnavailable) as error:
            return text_result(failure_text(error.message, error.remedy), is_error=True)

    async def _waited(
        self,
        call: LongCall,
        params: Mapping[str, Any],
        context: RequestContext,
        long_calls: LongCalls,
        waited: float,
    ) -> dict[str, Any]:
        self._resume(call, params)
        if await long_calls.wait(call, context, self._limit(context, waited)):
            return _outcome(call)
        return text_result(call_texts.still_running(call))

    @staticmethod
    def _limit(context: RequestContext, waited: float) -> float | None:
        """Return how long a request that has waited already may still wait; None: as long as it takes."""
        seconds = context.profile.wait.early_answer
        return None if seconds is None else max(0.0, seconds - waited)

    def _cancelled(self, call: LongCall, long_calls: LongCalls) -> dict[str, Any]:
        if call.is_over and not call.asks:
            return text_result(call_texts.already_over(call))
        long_calls.give_up(call)
        return text_result(call_texts.cancelled(call))

    def _work(self, call: LongCall, context: RequestContext) -> Work:
        return partial(self._calls.call, context=call.context(context))

    def _resume(self, call: LongCall, params: Mapping[str, Any]) -> None:
        """Let a call that asks its host go on, if these params have the answers."""
        if call.asks and "inputResponses" in params:
            call.resume({key: params[key] for key in _ANSWERS if params.get(key) is not None})

    def _found(self, call_id: str, context: RequestContext) -> LongCall:
        """Return a call of this host, if the host may still call the tool. Raises UnknownLongCall."""
        assert self._long_calls is not None
        call = self._long_calls.find(call_id, context.caller)
        if not self._may_have(call.audit.upstream, call.audit.tool, context.caller):
            raise self._long_calls.unknown(call_id)
        return call

    def _may_have(self, upstream: str, tool: str, caller: Caller) -> bool:
        """Whether a caller may have what a tool returned: it may still call that, or it was its own script."""
        if upstream == OWN:
            return True
        is_there = upstream in tuple(self._upstreams)  # its result is there even if the upstream is not any more
        return caller.grant.reaches_tool(upstream, tool) and (
            not is_there or self._rules.is_listed(Route(upstream, tool), caller)
        )

    def _may_answer(self, call: LongCall) -> bool:
        """Whether a call may be answered early: a script, or a call of an upstream whose settings do not forbid it."""
        upstream, tool = call.audit.upstream, call.audit.tool
        if upstream == OWN and tool == RUN_TOOL:
            return True
        if not upstream or upstream == OWN or upstream not in tuple(self._upstreams):
            return False
        never = self._upstreams[upstream].settings.tools.never_early
        return not any(fnmatchcase(tool, glob) for glob in never)

    async def _still_running(self, call: LongCall, context: RequestContext) -> dict[str, Any]:
        """Say that the call goes on: as an error if the host would refuse a result without structured content."""
        catalogue = await self._catalogues.offered(context)
        declares = not context.caller.chooses_outputs and any(
            tool["name"] == call.name and "outputSchema" in tool for tool in catalogue.tools
        )
        return text_result(call_texts.still_running(call), is_error=declares)


def long_call_in(params: Mapping[str, Any]) -> str | None:
    """Return the id of the long call that a `tools/call` asks about; None if it asks about none."""
    call_id = as_object(params.get("arguments")).get("call")
    return call_id.strip() if params.get("name") in LONG_CALL_TOOLS and isinstance(call_id, str) else None


def _outcome(call: LongCall) -> dict[str, Any]:
    """Return the result of a call that has ended, or raise its error."""
    if call.error is not None:
        raise call.error.with_traceback(None)
    assert call.result is not None
    return call.result
