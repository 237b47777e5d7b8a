"""Tool calls: send each to the upstream that has the tool, and shape its result for the host."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

from gateway.config.schema import Settings
from gateway.config.upstream_settings import Timeouts
from gateway.content.media.share import media_share
from gateway.core.fact_words import plain
from gateway.core.model.json_size import Size
from gateway.core.model.json_values import as_object, is_object
from gateway.core.own_names import APPROVE_TOOL, FIND_TOOL, LOGIN_TOOL
from gateway.core.policy import Decision
from gateway.core.profiles.profile import Profile
from gateway.core.results.output_variants import REQUESTED
from gateway.core.tools.catalogue import OWN, Catalogue, Route
from gateway.errors import InvalidRequest
from gateway.routing.approvals import Approvals, CallToApprove
from gateway.routing.approve_tool import approve
from gateway.routing.ask_approval import AskFirst
from gateway.routing.call_logins import CallLogins
from gateway.routing.call_rules import CallRules
from gateway.routing.check_arguments import ArgumentChecks
from gateway.routing.chosen_outputs import ChosenOutputs, outputs_chosen, without_outputs
from gateway.routing.files import FileTransfersPort
from gateway.routing.host_results import HostResults, calibrates, with_outward_uris
from gateway.routing.keepalive import keeping_alive
from gateway.routing.output_checks import accepts_by
from gateway.routing.ports import ArgumentsPort, CalibrationPort, OwnTools, ShaperPort, UpstreamsPort
from gateway.routing.replica_port import OwnerFor, ReplicaPort
from gateway.routing.required_scopes import check_scopes
from gateway.routing.resolve_arguments import WithContent, naming_unknown, naming_unmarked
from gateway.routing.result_cache import ResultCache
from gateway.routing.result_sizes import size_in_thread, sizes_of_result
from gateway.routing.tasks import TASK, Tasks, unknown_task
from gateway.routing.tool_catalogues import ToolCatalogues
from gateway.routing.tool_search import ToolSearch
from gateway.telemetry import Telemetry
from gateway.telemetry.calls import CallRecord
from gateway.upstream import RequestContext
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED
from gateway.upstream.connection.owners import host_of

logger = logging.getLogger(__name__)

_NOTHING = Size(0, 0)
_MISFIT = "the arguments do not fit the tool's input schema"

OwnCall = Callable[[RequestContext, object], Awaitable[dict[str, Any]]]
"""Answers a call of one of the gateway's own tools, given its arguments."""


class _Asked(NamedTuple):
    """A call that was asked, and how its result is to be shaped: as was settled before it was asked."""

    name: str
    route: Route
    catalogue: Catalogue
    profile: Profile
    shaper: ShaperPort
    chosen: ChosenOutputs | None


class Calls:
    """Answers `tools/call` and requests about tasks. `read` reads a resource for one of the gateway's own tools.

    `own_calls` answer others of them, by name.
    """

    def __init__(
        self,
        upstreams: UpstreamsPort,
        own_tools: OwnTools,
        bridge: Bridge,
        catalogues: ToolCatalogues,
        results: HostResults,
        telemetry: Telemetry,
        settings: Settings,
        rules: CallRules,
        approvals: Approvals,
        logins: CallLogins,
        search: ToolSearch,
        read: Callable[[RequestContext, str], Awaitable[Mapping[str, Any]]],
        own_calls: Mapping[str, OwnCall],
        calibration: CalibrationPort | None = None,
        arguments: ArgumentsPort | None = None,
        files: FileTransfersPort | None = None,
    ) -> None:
        self._files = files
        self._upstreams = upstreams
        self._own_tools = own_tools
        self._bridge = bridge
        self._catalogues = catalogues
        self._results = results
        self._telemetry = telemetry
        self._rules = rules
        self._approvals = approvals
        self._logins = logins
        self._search = search
        self._read = read
        self._own_calls = own_calls
        self._tasks = Tasks()
        self._replica: ReplicaPort | None = None
        self._owner_for: OwnerFor = lambda upstream, caller: None
        self._checks = ArgumentChecks()
        self._settings = settings
        self._calibration = calibration
        self._arguments = arguments
        self.cache = ResultCache(settings.result_cache)

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed settings. Calls that are running keep those that they began with."""
        self._settings = settings
        self.cache.reconfigure(settings.result_cache)
        if self._arguments is not None:
            self._arguments.reconfigure(settings.limits)

    def join(self, replica: ReplicaPort, owner_for: OwnerFor) -> None:
        """Be one of several replicas."""
        self._replica, self._owner_for = replica, owner_for
        self._tasks.replica = replica

    async def call(self, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Call a tool and return the shaped result, which asks a host of 2026-07-28 for input if the upstream does.

        Raises:
            InvalidRequest: malformed, or no such tool.
            NotAllowed: a rule forbids it, or the user has not approved it.
            ScopeMissing: the caller's token does not allow it.
            UpstreamError: the upstream could not answer.
        """
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise InvalidRequest("tools/call needs the name of a tool")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise InvalidRequest("the arguments of a tool must be an object")
        if self._files is not None and arguments:
            params = {**params, "arguments": self._files.with_handles(arguments, context.caller.principal)}
        with (
            self._telemetry.call(context.caller, context.profile.name, name, params, within=context.within) as call,
            media_share(host_of(context.caller), is_result=True),
        ):
            call.asked(params.get("arguments"), await size_in_thread(arguments) if arguments else _NOTHING)
            route, catalogue = await self._catalogues.route(name, context)
            call.routed(route.upstream, route.tool)
            audience = "script" if context.within else "app" if route.audience == "app" else ""
            schema = partial(schema_of, catalogue, name)
            context.audit.routed(route.upstream, route.tool, schema, audience=audience)
            check_scopes(route, context.caller)
            shaper, profile = self._results.shaper, self._results.profile_for(context, catalogue)
            chosen = outputs_chosen(params, name, catalogue, context.caller)
            context = context if chosen is None else replace(context, outputs=params.get(REQUESTED) or ())
            passed = _onward(params, route, context)
            decision = self._rules.decide(route, context.caller, passed.get("arguments"))
            refused = self._checks.refusal(name, catalogue.originals.get(name), passed.get("arguments"))
            if refused is not None:
                _turned_down(call, context, _MISFIT)
            context.audit.decided(decision.verdict, decision.rule)
            to_approve = _to_approve(name, route, decision, passed, context) if decision.verdict == "approve" else None
            if refused is None and route.upstream == OWN and route.tool == FIND_TOOL:
                raw = await self._search.find(passed.get("arguments"), catalogue)
            else:
                raw = refused or await self._asked(route, passed, context, profile, call, to_approve)
            if refused is None:
                context.audit.returned(raw)
                raw = await self._with_hints(raw, route, schema, passed, context)
            return await self._answer(raw, _Asked(name, route, catalogue, profile, shaper, chosen), context, call)

    async def _answer(
        self, raw: dict[str, Any], asked: _Asked, context: RequestContext, call: CallRecord
    ) -> dict[str, Any]:
        """Return the answer to a call as its host gets it, and record what became of the raw result."""
        name, route, catalogue, profile, shaper, chosen = asked
        sizes = await sizes_of_result(raw)
        size = sizes.whole
        call.answered(raw, size)
        if raw.get("resultType") in (INPUT_REQUIRED, TASK):
            if raw["resultType"] == TASK:
                await self._tasks.remember(raw, route, context.caller)
            call.shaped(raw, size.characters, (), is_error=False)
            return raw
        whole = self._results.within_limit(raw, size, route, route.tool)
        bounded = await with_outward_uris(route, without_outputs(whole, chosen), size)
        accepts = accepts_by(self._checks, catalogue, route, name)
        known = size if bounded is raw else None
        done = await self._results.for_host(bounded, route, context, profile, shaper, accepts, known)
        given = size if route.audience == "app" else (await sizes_of_result(done.result, sizes)).whole
        call.shaped(done.result, given.characters, done.notes, is_error=done.is_error)
        is_read = route.audience != "app" and not context.within  # by a model, and not by a page or a script
        if is_read and (self._settings.tokens.count or call.is_kept):
            model, lengths = context.caller.model, done.lengths
            call.counted(*await self._results.tokens.count(done.result, given, profile, model, lengths))
        if chosen is None:
            return done.result
        return chosen.added(done.result, whole, self._checks, self._settings.limits.blocks)

    async def task(self, method: str, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Return the upstream's answer about a task of this caller, with the task's result, if included, shaped.

        Raises:
            InvalidRequest: malformed, or no task of this caller.
            UpstreamError: the upstream could not answer.
        """
        task_id = params.get("taskId")
        if not isinstance(task_id, str):
            raise InvalidRequest(f"{method} needs the id of a task")
        route = await self._tasks.find(task_id, context.caller)
        context.audit.routed(route.upstream, route.tool)
        if not self._rules.is_listed(route, context.caller):
            raise unknown_task(task_id)
        about = replace(context, on_progress=None)
        state = await self._bridge.request(self._upstreams[route.upstream], method, params, about)
        result = state.get("result")
        if not is_object(result):
            return state
        context.audit.returned(result)
        size = await size_in_thread(result)
        limited = self._results.within_limit(result, size, route, f"task {plain(task_id, 100)}")
        bounded = await with_outward_uris(route, limited, size)
        catalogue = await self._catalogues.offered(context)
        profile, accepts = self._results.profile_for(context, catalogue), accepts_by(self._checks, catalogue, route)
        with media_share(host_of(context.caller), is_result=True):
            done = await self._results.for_host(bounded, route, context, profile, self._results.shaper, accepts)
        return {**state, "result": done.result}

    async def _asked(
        self,
        route: Route,
        params: Mapping[str, Any],
        context: RequestContext,
        profile: Profile,
        record: CallRecord,
        to_approve: CallToApprove | None = None,
    ) -> dict[str, Any]:
        if self._calibration is not None and calibrates(route):
            arguments = cast("Mapping[str, Any]", params.get("arguments") or {})
            return await self._calibration.call(route.tool, arguments, context.caller, profile)
        if route.upstream == OWN and route.tool == APPROVE_TOOL:
            return approve(self._approvals, params.get("arguments"), host_of(context.caller))
        if route.upstream == OWN and route.tool == LOGIN_TOOL:
            upstream = self._logins.asked(params.get("arguments"), context.caller)
            return await self._bridge.request(upstream, "tools/call", params, context)
        if route.upstream == OWN and (own_call := self._own_calls.get(route.tool)) is not None:
            return await own_call(context, params.get("arguments"))
        if route.upstream == OWN:
            owner, read = context.caller.principal, partial(self._read, replace(context, is_part=True))
            return await self._own_tools.request("tools/call", params, owner=owner, profile=profile, read=read)
        if self._replica is not None and (owner := self._owner_for(route.upstream, context.caller)) is not None:
            await self._replica.before_call(route.upstream, owner)
        itself = self._upstreams[route.upstream]
        upstream = self.cache.around(self._logins.around(itself), itself, route, context.caller, record)
        if route.parameters and self._arguments is not None:
            upstream = WithContent(upstream, route, self._arguments, partial(_turned_down, record, context))
        if to_approve is not None:
            upstream = AskFirst(upstream, to_approve, self._approvals, self._settings.policy.approval)
        limits, every = self._limits(route), profile.wait.progress_every
        if context.on_progress is None or every is None:
            return await self._bridge.request(upstream, "tools/call", params, context, limits)
        async with keeping_alive(context.on_progress, every) as on_progress:
            kept_alive = replace(context, on_progress=on_progress)
            return await self._bridge.request(upstream, "tools/call", params, kept_alive, limits)

    async def _with_hints(
        self,
        raw: dict[str, Any],
        route: Route,
        schema: Callable[[], Any],
        params: Mapping[str, Any],
        context: RequestContext,
    ) -> dict[str, Any]:
        """Return an upstream's error for a model with lines about its arguments: misspelt ones, and handles as text."""
        if raw.get("isError") is not True or route.upstream == OWN or route.audience == "app":
            return raw
        arguments = params.get("arguments")
        raw = naming_unknown(raw, route, schema(), arguments)
        if self._arguments is None or self._upstreams[route.upstream].settings.accept == "none":
            return raw
        return await naming_unmarked(raw, route, arguments, self._arguments, context.caller.principal)

    def _limits(self, route: Route) -> Timeouts:
        settings = self._upstreams[route.upstream].settings
        special = settings.tools.timeout.get(route.tool)
        return (
            settings.timeout.model_copy(update=special.model_dump(exclude_none=True)) if special else settings.timeout
        )


def _to_approve(
    name: str, route: Route, decision: Decision, params: Mapping[str, Any], context: RequestContext
) -> CallToApprove:
    caller = context.caller
    return CallToApprove(
        owner=host_of(caller),
        principal=caller.principal,
        client=caller.client_name or "",
        name=name,
        upstream=route.upstream,
        tool=route.tool,
        arguments=as_object(params.get("arguments")),
        rule=decision.rule,
        reason=decision.reason,
    )


def _turned_down(record: CallRecord, context: RequestContext, cause: str) -> None:
    record.turned_down(cause)
    context.audit.turned_down(cause)


def schema_of(catalogue: Catalogue, name: str) -> Any:
    """Return a tool's input schema, as its upstream declares it or as it is offered."""
    offered = (tool.get("inputSchema") for tool in catalogue.tools if tool.get("name") == name)
    return catalogue.originals.get(name) or next(offered, None)


def _onward(params: Mapping[str, Any], route: Route, context: RequestContext) -> dict[str, Any]:
    """Return the params of a call as its upstream gets them."""
    passed = {**params, "name": route.tool}
    if context.outputs is not None:
        passed.pop(REQUESTED, None)
    if passed.get("arguments") is None:
        passed.pop("arguments", None)
    # The tasks of 2025-11-25 are not supported, so an upstream must not be asked to turn the call into one.
    passed.pop("task", None)
    return passed
