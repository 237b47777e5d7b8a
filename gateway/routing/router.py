"""The router: answers hosts' requests from the right upstream, in the shape that each host shows best."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from gateway.admission.admission import Admission
from gateway.config.schema import Settings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.content.store import URI_SCHEME
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.model.wire import WireObject, strip_hop_meta
from gateway.core.own_names import RUN_TOOL, SKILL_TOOL
from gateway.core.profiles.match_profile import Choice
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import OWN, Catalogue
from gateway.core.tools.instructions import Introductions
from gateway.errors import ProfileError, ScopeMissing, UnknownMethod, UnknownToolset
from gateway.routing.approvals import Approvals
from gateway.routing.availability import Availability, WaitingLists
from gateway.routing.call_logins import CallLogins
from gateway.routing.call_rules import CallRules
from gateway.routing.callers import Callers
from gateway.routing.calls import Calls, schema_of
from gateway.routing.change_notifications import ChangeNotifications, Listener
from gateway.routing.completions import Completions
from gateway.routing.files import FileTransfersPort, declaring_files, sends_files
from gateway.routing.host_results import HostResults
from gateway.routing.lists import LISTS, MergedLists, refuse_cursor
from gateway.routing.long_calls import EarlyAnswers, LongCalls
from gateway.routing.offered_tools import OfferedTools
from gateway.routing.pages import OpenPages
from gateway.routing.ports import (
    ArgumentsPort,
    AuditTrailPort,
    CalibrationPort,
    LoginsPort,
    OwnTools,
    PinsPort,
    ShaperPort,
    UpstreamsPort,
)
from gateway.routing.profile_choices import ProfileChoices
from gateway.routing.prompts import Prompts
from gateway.routing.read_requests import ReadRequests
from gateway.routing.replica_port import OwnerFor, ReplicaPort
from gateway.routing.request_accounts import RequestAccounts
from gateway.routing.required_scopes import check_scopes
from gateway.routing.resources import Resources
from gateway.routing.script_calls import ScriptCalls, upstreams_acted_on
from gateway.routing.skills import METHODS as SKILL_METHODS
from gateway.routing.tasks import METHODS as TASK_METHODS
from gateway.routing.tool_catalogues import ToolCatalogues
from gateway.routing.tool_search import EmbedderFor, ToolSearch
from gateway.routing.upstream_instructions import SharedInstructions
from gateway.routing.visible_upstreams import sharing
from gateway.telemetry import Telemetry
from gateway.upstream import ProgressCallback, RequestContext
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.owners import host_of

if TYPE_CHECKING:
    from gateway.routing.code_mode import CodeMode
    from gateway.upstream.connection.host_requests import Host

logger = logging.getLogger(__name__)


class Router:
    """Answers hosts' requests. Holds no lock while an upstream is asked."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        own_tools: OwnTools,
        shaper: ShaperPort,
        profiles: Mapping[str, Profile],
        settings: Settings,
        profile: str | None = None,
        telemetry: Telemetry | None = None,
        bridge: Bridge | None = None,
        calibration: CalibrationPort | None = None,
        arguments: ArgumentsPort | None = None,
        audit: AuditTrailPort | None = None,
        pins: PinsPort | None = None,
        logins: LoginsPort | None = None,
        long_calls: LongCalls | None = None,
        admission: Admission | None = None,
        code_mode: "CodeMode | None" = None,
        embedder_for: EmbedderFor | None = None,
        files: FileTransfersPort | None = None,
    ) -> None:
        self._files = files
        self._admission = admission or Admission(settings.overload, media_workers=settings.media.workers)
        self._upstreams = upstreams
        self._own_tools = own_tools
        self._settings = settings
        self._telemetry = telemetry or Telemetry()
        self._bridge = bridge or Bridge()
        self._long_calls = long_calls
        self._owner_for: OwnerFor = lambda upstream, caller: None
        self._profiles = ProfileChoices(profiles, settings.gateway, profile)
        self._accounts = RequestAccounts(audit, self._telemetry, settings.access.limits.quota)
        self._availability = Availability(upstreams)
        self._rules = CallRules(upstreams, settings, pins)
        self._callers = Callers(self._profiles, self._rules, settings)
        self._notifications = ChangeNotifications(self._profiles, self._callers, self._rules)
        self._instructions = SharedInstructions(upstreams, self._profiles, self._rules)
        self._approvals = Approvals(settings.policy.approval_lasts, on_verdict=self._accounts.note_verdict)
        opened = OpenPages()
        call_logins = CallLogins(upstreams, logins)
        self._search = ToolSearch(settings.tool_search, embedder_for)
        self._catalogues = ToolCatalogues(
            upstreams,
            own_tools,
            settings,
            self._availability,
            opened,
            self._rules,
            call_logins,
            self._search,
            calibration,
            arguments,
            answers_early=long_calls is not None,
            code_mode=code_mode,
        )
        self._offered = OfferedTools(self._profiles, self._callers, self._catalogues, self._rules, self._search)
        self._resources = Resources(upstreams, opened)
        self._reads = ReadRequests(upstreams, own_tools, self._bridge, call_logins, self._availability, self._resources)
        self._prompts = Prompts(upstreams, settings.gateway, self._availability, self._own_prompts)
        self._completions = Completions(upstreams, self._prompts, self._resources)
        self._lists = MergedLists(upstreams, own_tools, self._resources, self._prompts, self._search)
        scripts = ScriptCalls(code_mode, self._catalogues, self._search, self._accounts, self._call_tool)
        self._results = HostResults(upstreams, self._bridge, self._resources, opened, shaper, settings, files)
        self._calls = Calls(
            upstreams,
            own_tools,
            self._bridge,
            self._catalogues,
            self._results,
            self._telemetry,
            settings,
            self._rules,
            self._approvals,
            call_logins,
            self._search,
            self._reads.read_part,
            {SKILL_TOOL: self._reads.use_skill, RUN_TOOL: scripts.run},
            calibration,
            arguments,
            files,
        )
        self._telemetry.metrics.cached_bytes = lambda: self._calls.cache.size
        ways = (self._catalogues, self._rules, self._telemetry)
        self._early_answers = EarlyAnswers(self._calls, long_calls, upstreams, *ways)

    def join(self, replica: ReplicaPort, owner_for: OwnerFor) -> None:
        """Be one of several replicas: limits are counted together, and some calls are for the one that has the state.

        `owner_for` returns the owner of the state that a caller's calls to an upstream act on.
        """
        self._accounts.shared_use, self._owner_for = replica.use, owner_for
        self._calls.join(replica, owner_for)
        self._early_answers.join(replica)

    async def state_of(self, params: Mapping[str, Any], caller: Caller) -> tuple[str, str] | None:
        """Return the upstream that a call goes to, and the owner of the state there; None if none is kept.

        Where calls may wait for the approval of their user, all calls of a host go to one replica.
        Does not wait for upstreams; a tool that is not known yet has no state either.
        """
        if any(rule.effect == "approve" for rule in self._settings.policy.rules):
            return OWN, host_of(caller)
        call = await self._offered.call(params, caller)
        if call is None:
            return None
        # A script goes to the first state that it names, or may act on.
        states = ((one, self._owner_for(one, call.caller)) for one in sorted(upstreams_acted_on(call)))
        return next(((one, owner) for one, owner in states if owner is not None), None)

    @property
    def telemetry(self) -> Telemetry:
        """Logs, traces and metrics of this gateway's calls and upstreams."""
        return self._telemetry

    @property
    def admission(self) -> Admission:
        """Admits requests, or refuses them while there are too many."""
        return self._admission

    @property
    def upstreams(self) -> UpstreamsPort:
        """The upstreams, each with its state and its latest lists."""
        return self._upstreams

    @property
    def approvals(self) -> Approvals:
        """The calls that wait for the approval of their user."""
        return self._approvals

    @property
    def profile_names(self) -> tuple[str, ...]:
        """The profiles that a host may choose."""
        return tuple(self._profiles.profiles)

    @property
    def toolsets(self) -> Mapping[str, ToolsetSettings]:
        """The toolsets that a host may choose."""
        return self._settings.toolsets

    async def respond(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        on_progress: ProgressCallback | None = None,
        host: "Host | None" = None,
        waited: float = 0.0,
    ) -> dict[str, Any]:
        """Return the result of a request as wire JSON, without what only one revision requires (`bridging` adds it).

        Serves tools/list, tools/call, resources/list, resources/templates/list, resources/read, prompts/list,
        prompts/get, completion/complete, skills/list, skills/get, resources/directory/read, tasks/get, tasks/update and
        tasks/cancel. `waited` is the number of seconds
        that the request has already waited.

        Raises:
            InvalidRequest: malformed, or for something that does not exist.
            NotAllowed: a rule forbids the call, or its user has not approved it.
            ProfileError: the caller asks for a profile that does not exist.
            UnknownToolset: the same of a toolset.
            ScopeMissing: the caller's token does not allow a call.
            TooManyCalls: the caller's limits allow no more for now.
            AuditUnavailable: the request cannot be recorded, and is refused for that.
            UpstreamError: the upstream could not answer; UpstreamRefused carries its own error.
        """
        profile, params = self.profile_of(caller), strip_hop_meta(params)
        caller = await self._callers.for_request(method, caller, profile, host)
        listed = profile if caller.model is None else self._profiles.listed_for(caller)
        asked = params
        if method == "tools/call":
            params = self._search.inner_call(asked, listed)
        entry = self._accounts.entry(method, params, caller, profile)
        by_model = params is not asked
        context = RequestContext(caller, profile, listed, host, on_progress, by_model=by_model, audit=entry)
        async with entry:
            with await self._accounts.counted(method, params, caller, profile) as counted:
                match method:
                    case "tools/call":
                        result = await self._early_answers.call(params, context, waited, counted.keep_place)
                    case "resources/read":
                        result = await self._reads.read(params, context)
                    case _ if method in TASK_METHODS:
                        result = await self._early_answers.task(method, params, context)
                    case "prompts/get":
                        result = await self._prompts.get(params, context, self._reads.ask)
                    case "completion/complete":
                        result = await self._completions.complete(params, context, self._reads.ask)
                    case _ if method in SKILL_METHODS:
                        result = await self._reads.skills(method, params, context, waited)
                    case _ if method in LISTS:
                        result = await self._list(method, params, context, waited)
                    case _:
                        result = await self._about_files(method, params, caller)
                await counted.returned(
                    result, lambda result: self._results.tokens.picture_tokens(result, profile, caller.model)
                )
            entry.shown(result)
            return result

    async def _list(
        self, method: str, params: Mapping[str, Any], context: RequestContext, waited: float
    ) -> dict[str, Any]:
        refuse_cursor(params)
        profile = context.profile
        hears = f"{LISTS[method]}_list_changed" not in profile.features.broken
        await self._availability.first(profile.name, profile.wait.for_list(waited), context.caller, hears=hears)
        catalogue = await self._catalogues.offered(context)
        result = await self._lists.result(method, context, catalogue)
        if method == "tools/list" and self._files is not None and sends_files(context.caller):
            return {**result, "tools": declaring_files(result["tools"], catalogue)}
        return result

    async def _about_files(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        if self._files is None or method not in self._files.methods:
            raise UnknownMethod(f"{plain(method, 100)!r} is not served")
        return await self._files.answer(method, params, caller.principal)

    async def _call_tool(self, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        return await self._calls.call(params, context)

    async def _own_prompts(self, context: RequestContext) -> Sequence[WireObject]:
        """The gateway's own prompts, if the caller is offered a tool that takes content."""
        useful = context.profile.tools.helpers and (await self._catalogues.offered(context)).takes_content
        return self._own_tools.prompts() if useful else ()

    def profile_of(self, caller: Caller) -> Profile:
        """Return the profile in force for a caller (`ProfileChoices.profile_of`)."""
        return self._profiles.profile_of(caller)

    def choice_of(self, caller: Caller) -> Choice:
        """Return the profile in force for a caller, with the reason (`ProfileChoices.choice_of`)."""
        return self._profiles.choice_of(caller)

    def unknown_toolset(self, caller: Caller) -> str | None:
        """Return which toolset of a host does not exist, and the nearest one; None if all do."""
        return self._callers.unknown_toolset(caller)

    @property
    def offered(self) -> OfferedTools:
        """The tools that each caller is offered."""
        return self._offered

    def catalogue(self, caller: Caller) -> Catalogue:
        """Return the caller's catalogue (`OfferedTools.catalogue`)."""
        return self._offered.catalogue(caller)

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that declares headers (`OfferedTools.header_schema`)."""
        return self._offered.header_schema(name, caller)

    async def check_scopes(self, params: Mapping[str, Any], caller: Caller) -> None:
        """Refuse a call of a tool, and record that, if it needs scopes that the caller's token lacks.

        Does not wait for upstreams.

        Raises:
            ScopeMissing: it does.
            AuditUnavailable: it does, but this cannot be recorded.
        """
        if not caller.grant.scoped or (call := await self._offered.call(params, caller)) is None:
            return
        try:
            check_scopes(call.route, call.caller)
        except ScopeMissing:
            entry = self._accounts.entry("tools/call", call.params, call.caller, self.profile_of(caller))
            async with entry:
                entry.routed(call.route.upstream, call.route.tool, partial(schema_of, call.catalogue, call.name))
                raise

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of changed lists and watched resources. Return a function that ends the subscription."""
        return self._notifications.subscribe(listener)

    async def watch(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Notify listeners with `updated:<uri>` when a resource changes. Return a function that ends this.

        Raises:
            UnknownResource: no upstream has it.
            UpstreamError: its upstream cannot be asked.
        """
        if uri.startswith(URI_SCHEME):  # stored content never changes
            return lambda: None
        caller = self._callers.known(caller)
        name, uri = self._resources.addressed(uri, caller) or (self._resources.whose(uri, caller), uri)
        return await sharing(self._upstreams, caller)[name].subscribe(uri, caller)

    def hears(self, caller: Caller, change: Change) -> bool:
        """Whether this host is to be notified of a change (`ChangeNotifications.hears`)."""
        return self._notifications.hears(caller, change)

    def toolsets_in_force(self, caller: Caller) -> tuple[str, ...]:
        """Return the toolsets of a caller, with that of the project that it has open, if it has said which."""
        return self._callers.projects.known(caller).toolsets

    def knows_upstreams(self, caller: Caller) -> bool:
        """Whether something is known of every upstream of this caller that is starting: it has been there before."""
        try:
            return not self._availability.unknown(self._callers.known(caller))
        except (ProfileError, UnknownToolset):  # its next request is refused, and says so
            return False

    async def roots_changed(self, session: str) -> None:
        """Tell the upstreams that the roots of this session's host have changed; it may be in another project."""
        if self._callers.projects.forget(session):
            self._notifications.of_all_lists()
        for name in tuple(self._upstreams):
            await self._upstreams[name].roots_changed(session)

    def attending(self, host: str) -> AbstractContextManager[None]:
        """Context manager: the host (`gateway.upstream.connection.owners.host_of`) is present while this is open."""
        return self._upstreams.attending(host)

    def left(self, session: str) -> None:
        """Release everything that belongs to a session whose host has disconnected, in the upstreams too.

        If a call of it goes on after its answer, that waits for the end of the call.
        """
        if self._long_calls is None:
            self._release(session)
        else:
            self._long_calls.left(session, partial(self._release, session))

    @property
    def waiting_lists(self) -> WaitingLists:
        """The requests for lists that wait for upstreams."""
        return self._availability.lists

    async def long_calls_ended(self) -> None:
        """Wait until no call runs whose request has been answered."""
        if self._long_calls is not None:
            await self._long_calls.quiet()

    def _release(self, session: str) -> None:
        for name in self._upstreams:
            self._upstreams[name].left(session)
        self._callers.projects.forget(session)
        self._resources.left(session)
        self._bridge.left(session)

    def upstream_changed(
        self, upstream: str, kind: str, principal: str | None = None, tools: frozenset[ToolFacts] | None = None
    ) -> None:
        """Handle a change in an upstream (`gateway.upstream.upstream.OnChange`); called by the upstreams' owner."""
        logger.debug("upstream %s: %s changed", upstream, kind)
        self._calls.cache.forget(upstream)
        if kind in ("tools", "state"):
            self._catalogues.forget()
            self._rules.listed(upstream)
        if kind == "state":
            self._instructions.refresh()
        else:
            self._notifications.of_upstream(upstream, Change(kind, upstream, principal, tools))

    def reconfigure(self, settings: Settings, profiles: Mapping[str, Profile], shaper: ShaperPort) -> None:
        """Apply changed settings, all at once, and notify hosts if their tools may have changed.

        Requests in progress keep the settings that they began with.
        """
        offered_by = ("prefix", "profile", "model", "name")
        before, after = self._settings.gateway, settings.gateway
        offered = any(getattr(before, key) != getattr(after, key) for key in offered_by)
        rules = ("policy", "pins", "toolsets", "tool_search")
        ruled = any(getattr(self._settings, key) != getattr(settings, key) for key in rules)
        early = self._settings.long_calls.enabled != settings.long_calls.enabled
        offered = offered or self._profiles.profiles != profiles
        self._settings = settings
        self._profiles.reconfigure(profiles, settings.gateway)
        self._rules.reconfigure(settings)
        self._callers.reconfigure(settings)
        self._search.reconfigure(settings.tool_search)
        self._approvals.lasts = settings.policy.approval_lasts
        self._results.reconfigure(settings, shaper)
        self._calls.reconfigure(settings)
        self._telemetry.content = settings.logging.content
        self._accounts.limits.quota = settings.access.limits.quota
        if self._long_calls is not None:
            self._long_calls.settings = settings.long_calls
        self._admission.reconfigure(settings.overload)
        self._availability.forget()
        self._catalogues.reconfigure(settings)
        self._prompts.reconfigure(settings.gateway)
        self._instructions.refresh()
        if ruled:
            return self._notifications.of_all_lists()
        if offered or early:
            self._notifications.of(Change("tools"))
        if before.prefix != after.prefix:
            self._notifications.of(Change("prompts"))
        return None

    @property
    def introductions(self) -> Introductions:
        """The upstreams' instructions for models, as last known."""
        return self._instructions.latest

    def on_introductions(self, listener: Callable[[Introductions], None]) -> None:
        """Set the only listener for changes of the introductions."""
        self._instructions.on_change(listener)
