"""The router: answers hosts' requests from the right upstream, in the shape that each host shows best."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from gateway.admission.admission import Admission
from gateway.config.schema import Settings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.content.store import URI_SCHEME
from gateway.core import apps
from gateway.core.model.caller import CONSOLE_CLIENT, Caller
from gateway.core.model.change import UPDATED, Change
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.model.wire import WireObject, strip_hop_meta
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.match_profile import LOOKED_AT, Choice, able, choose_profile, header_matches, headers_seen
from gateway.core.profiles.profile import Profile
from gateway.core.results.output_variants import for_chosen_outputs
from gateway.core.tools.catalogue import OWN, Catalogue
from gateway.core.tools.instructions import Introductions
from gateway.core.wording import RUN_TOOL, SKILL_TOOL, plain
from gateway.errors import (
    InvalidRequest,
    ProfileError,
    ScopeMissing,
    TooManyCalls,
    UnknownMethod,
    UnknownTool,
    UnknownToolset,
)
from gateway.routing.approvals import Approvals, CallToApprove, Verdict
from gateway.routing.availability import Availability, WaitingLists
from gateway.routing.call_logins import CallLogins
from gateway.routing.call_rules import NOBODY, CallRules
from gateway.routing.caller_limits import CallerLimits, CountedRequest
from gateway.routing.calls import Calls, schema_of
from gateway.routing.completions import Completions
from gateway.routing.files import FileTransfersPort, declaring_files, sends_files
from gateway.routing.lists import LISTS, MergedLists
from gateway.routing.log_once import Problems
from gateway.routing.long_calls import EarlyAnswers, LongCalls
from gateway.routing.long_calls.early_answers import LONG_CALL_TOOLS
from gateway.routing.pages import OpenPages
from gateway.routing.ports import (
    ArgumentsPort,
    AuditTrail,
    CalibrationPort,
    LoginsPort,
    OwnTools,
    PinsPort,
    ShaperPort,
    UpstreamsPort,
)
from gateway.routing.project_toolsets import ProjectToolsets
from gateway.routing.prompts import Prompts
from gateway.routing.replica_port import OwnerFor, ReplicaPort, SharedUse
from gateway.routing.required_scopes import check_scopes
from gateway.routing.resources import Resources
from gateway.routing.result_context import host_folders
from gateway.routing.skill_tool import use_skill
from gateway.routing.skills import METHODS as SKILL_METHODS
from gateway.routing.skills import Skills
from gateway.routing.tasks import METHODS as TASK_METHODS
from gateway.routing.tool_catalogues import ToolCatalogues
from gateway.routing.tool_search import MOST_FOUND, EmbedderFor, ToolSearch
from gateway.routing.upstream_instructions import introductions
from gateway.routing.visible_upstreams import sharing
from gateway.telemetry import Telemetry
from gateway.telemetry.audit import NOT_AUDITED, AuditEntry
from gateway.upstream import ProgressCallback, RequestContext
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.owners import host_of

if TYPE_CHECKING:
    from gateway.routing.code_mode import CodeMode
    from gateway.upstream.connection.host_requests import Host

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[Change], None]
"""Called with a change of a list or a resource. Must not block."""

AUDITED = frozenset({"tools/call", "resources/read", "prompts/get", *TASK_METHODS})
"""The requests that the audit trail has."""

_CLIENTS = 512
"""Maximum number of clients whose profiles are remembered. Clients choose their own names, so this needs a bound."""


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
        audit: AuditTrail | None = None,
        pins: PinsPort | None = None,
        logins: LoginsPort | None = None,
        long_calls: LongCalls | None = None,
        admission: Admission | None = None,
        code_mode: "CodeMode | None" = None,
        embedder_for: EmbedderFor | None = None,
        files: FileTransfersPort | None = None,
    ) -> None:
        self._files = files
        self._audit = audit
        self._admission = admission or Admission(settings.overload, media_workers=settings.media.workers)
        self._upstreams = upstreams
        self._own_tools = own_tools
        self._profiles = profiles
        self._header_matches = header_matches(profiles)
        self._settings = settings
        self._profile = profile
        self._configured = profile or settings.gateway.profile
        self._availability = Availability(upstreams)
        self._limits = CallerLimits(settings.access.limits.quota)
        self._shared_use: SharedUse | None = None
        self._owner_for: OwnerFor = lambda upstream, caller: None
        self._rules = CallRules(upstreams, settings, pins)
        self._approvals = Approvals(settings.policy.approval_lasts, on_verdict=self._note_verdict)
        opened = OpenPages()
        self._logins = CallLogins(upstreams, logins)
        self._search = ToolSearch(settings.tool_search, embedder_for)
        self._catalogues = ToolCatalogues(
            upstreams,
            own_tools,
            settings,
            self._availability,
            opened,
            self._rules,
            self._logins,
            self._search,
            calibration,
            arguments,
            answers_early=long_calls is not None,
            code_mode=code_mode,
        )
        self._code_mode = code_mode
        self._resources = Resources(upstreams, opened)
        self._skills = Skills(upstreams, self._resources)
        self._prompts = Prompts(upstreams, settings.gateway, self._availability, self._own_prompts)
        self._completions = Completions(upstreams, self._prompts, self._resources)
        self._lists = MergedLists(upstreams, own_tools, self._resources, self._prompts, self._search)
        self._introductions = self._shared_introductions()
        self._introduced: Callable[[Introductions], None] | None = None
        self._chosen: dict[tuple[str | None, ...], Choice] = {}
        self._listeners: list[Listener] = []
        self._projects = ProjectToolsets()
        self._problems = Problems()
        self._telemetry = telemetry or Telemetry()
        self._bridge = bridge or Bridge()
        self._calls = Calls(
            upstreams,
            own_tools,
            self._bridge,
            self._catalogues,
            self._resources,
            self._telemetry,
            shaper,
            settings,
            opened,
            self._rules,
            self._approvals,
            self._logins,
            self._search,
            self._read_part,
            {SKILL_TOOL: self._use_skill, RUN_TOOL: self._run_script},
            calibration,
            arguments,
            files,
        )
        self._telemetry.metrics.cached_bytes = lambda: self._calls.cache.size
        self._long_calls = long_calls
        ways = (self._catalogues, self._rules, self._telemetry)
        self._early_answers = EarlyAnswers(self._calls, long_calls, upstreams, *ways)

    def join(self, replica: ReplicaPort, owner_for: OwnerFor) -> None:
        """Be one of several replicas: limits are counted together, and some calls are for the one that has the state.

        `owner_for` returns the owner of the state that a caller's calls to an upstream act on.
        """
        self._shared_use, self._owner_for = replica.use, owner_for
        self._calls.join(replica, owner_for)
        self._early_answers.join(replica)

    def state_of(self, params: Mapping[str, Any], caller: Caller) -> tuple[str, str] | None:
        """Return the upstream that a call goes to, and the owner of the state there; None if none is kept.

        Where calls may wait for the approval of their user, all calls of a host go to one replica.
        Does not wait for upstreams; a tool that is not known yet has no state either.
        """
        if any(rule.effect == "approve" for rule in self._settings.policy.rules):
            return OWN, host_of(caller)
        try:
            caller = self._able(caller)
            listed = self._listed(caller)
            inner = self._search.inner_call(params, listed)
            name = inner.get("name")
            routes = self._catalogues.catalogue(listed, caller).routes
        except (ProfileError, InvalidRequest):  # the request is refused for that
            return None
        if (route := routes.get(str(name))) is None or (route.upstream == OWN and route.tool != RUN_TOOL):
            return None
        # What a script will call is only guessed: it goes to the first state that it names, or may act on.
        named = {route.upstream}
        if route.upstream == OWN:
            from gateway.routing.code_mode.upstreams_of_script import upstreams_of_script

            named = upstreams_of_script(inner, routes)
        states = ((one, self._owner_for(one, caller)) for one in sorted(named))
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
        return tuple(self._profiles)

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
        caller = self._narrowed(able(await self._in_project(caller, profile, host), profile), method)
        listed = profile if caller.model is None else self._listed(caller)
        asked = params
        if method == "tools/call":
            params = self._search.inner_call(asked, listed)
        entry = self._entry(method, params, caller, profile)
        by_model = params is not asked
        context = RequestContext(caller, profile, listed, host, on_progress, by_model=by_model, audit=entry)
        async with entry:
            with await self._counted(method, params, caller, profile) as counted:
                match method:
                    case "tools/call":
                        result = await self._early_answers.call(params, context, waited, counted.keep_place)
                    case "resources/read":
                        result = await self._read(params, context)
                    case _ if method in TASK_METHODS:
                        result = await self._early_answers.task(method, params, context)
                    case "prompts/get":
                        result = await self._prompts.get(params, context, self._ask)
                    case "completion/complete":
                        result = await self._completions.complete(params, context, self._ask)
                    case _ if method in SKILL_METHODS:
                        result = await self._about_skills(method, params, context, waited)
                    case _ if method in LISTS:
                        result = await self._list(method, params, context, waited)
                    case _:
                        result = await self._about_files(method, params, caller)
                await counted.returned(
                    result, lambda result: self._calls.tokens.picture_tokens(result, profile, caller.model)
                )
            entry.shown(result)
            return result

    async def _in_project(self, caller: Caller, profile: Profile, host: "Host | None") -> Caller:
        """Return the caller with the toolset of its project, if there are any toolsets."""
        if not self._settings.toolsets:
            return caller
        return await self._projects.narrowed(caller, lambda: host_folders(RequestContext(caller, profile, host=host)))

    def _narrowed(self, caller: Caller, method: str) -> Caller:
        """Return the caller with what its toolsets leave. Lists for a project with one that does not exist are empty.

        A host that is given an error in place of its first list often does not say why.
        """
        try:
            return self._rules.narrowed(caller)
        except UnknownToolset as error:
            if method not in LISTS or not caller.on_stdio:
                raise
            words = self._projects.problem(caller, error)
            self._problems.report([words], "a host is offered no server's tools, because of its project's file")
            return self._rules.without_upstreams(caller)

    def unknown_toolset(self, caller: Caller) -> str | None:
        """Return which toolset of a host does not exist, and the nearest one; None if all do."""
        try:
            self._able(caller)
        except UnknownToolset as error:
            return self._projects.problem(caller, error)
        except ProfileError:
            return None
        return None

    async def _counted(
        self, method: str, params: Mapping[str, Any], caller: Caller, profile: Profile, *, is_part: bool = False
    ) -> CountedRequest:
        """Count a request against the caller's limits; one too many is logged, as every other call is.

        `is_part`: it is made for another one, which is counted as running already.
        """
        try:
            is_wait = params.get("name") in LONG_CALL_TOOLS
            counted = self._limits.begin(method, caller, is_wait=is_wait or is_part)
            return counted if self._shared_use is None or is_wait else await counted.shared(self._shared_use)
        except TooManyCalls as error:
            if method != "tools/call":
                logger.info("%s of %s is refused: %s", method, caller.principal, error.message)
                raise
            with self._telemetry.call(caller, profile.name, str(params.get("name")), params):
                raise

    def _entry(self, method: str, params: Mapping[str, Any], caller: Caller, profile: Profile) -> AuditEntry:
        if self._audit is None or method not in AUDITED:
            return NOT_AUDITED
        return self._audit.begin(method, params, caller, profile.name)

    async def _list(
        self, method: str, params: Mapping[str, Any], context: RequestContext, waited: float
    ) -> dict[str, Any]:
        _refuse_cursor(params)
        profile = context.profile
        hears = f"{LISTS[method]}_list_changed" not in profile.features.broken
        await self._availability.first(profile.name, profile.wait.for_list(waited), context.caller, hears=hears)
        catalogue = await self._catalogues.offered(context)
        result = await self._lists.result(method, context, catalogue)
        if method == "tools/list" and self._files is not None and sends_files(context.caller):
            return {**result, "tools": declaring_files(result["tools"], catalogue)}
        return result

    async def _ask(self, name: str, method: str, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        """Ask an upstream, or the gateway itself, for anything but tool calls."""
        entry = NOT_AUDITED if context.is_part else context.audit
        entry.routed(name)
        if name == OWN:
            owner = context.caller.principal
            result = await self._own_tools.request(method, params, owner=owner, profile=context.profile)
        else:
            upstream = self._logins.around(sharing(self._upstreams, context.caller)[name])
            result = await self._bridge.request(upstream, method, params, context)
        entry.returned(result)
        return result

    async def _read_part(self, context: RequestContext, uri: str) -> Mapping[str, Any]:
        """Read a resource of any upstream for the gateway's own tools, in the caller's own sessions."""
        await self._wait_for(uri, context)
        return await self._owner_of(uri).read(uri, {"uri": uri}, self._ask, context)

    def _note_verdict(self, call: CallToApprove, verdict: Verdict, by: str) -> None:
        if self._audit is not None:
            self._audit.approval(call.principal, call.upstream, call.tool, verdict, call.rule, by)

    def _own_prompts(self, context: RequestContext) -> Sequence[WireObject]:
        """The gateway's own prompts, if the caller is offered a tool that takes content."""
        helpers = context.profile.tools.helpers
        useful = helpers and self._catalogues.catalogue(context.listed, context.caller).takes_content
        return self._own_tools.prompts() if useful else ()

    async def search_tools(self, words: str, caller: Caller) -> list[str]:
        """Return the names of the tools that a search for these words finds for a caller, best first."""
        return (await self._search.best(self.catalogue(caller), words, MOST_FOUND))[0]

    def profile_of(self, caller: Caller) -> Profile:
        """Return the profile in force for a caller, as the variant for its model and narrowed to its revision.

        Raises:
            ProfileError: the caller asks for a profile that does not exist.
        """
        return self.choice_of(caller).profile

    def choice_of(self, caller: Caller) -> Choice:
        """Return the profile in force for a caller, as `profile_of` does, with the reason.

        Raises:
            ProfileError: the caller asks for a profile that does not exist.
        """
        said = (caller.client_name, caller.client_version, caller.user_agent, caller.profile, caller.model)
        texts = (text[:LOOKED_AT] if text is not None else None for text in said)
        of = f"{caller.revision}, choosing" if caller.chooses_outputs else caller.revision
        key = (of, *texts, *headers_seen(self._header_matches, caller))
        chosen = self._chosen.get(key)
        if chosen is None:
            choice = choose_profile(self._profiles, caller, self._configured, self._settings.gateway.model)
            client = plain(f"{caller.client_name or 'a client'} {caller.client_version or ''}", 100)
            # The gateway's own clients choose what they want: that says nothing of a host.
            level = logging.DEBUG if caller.client_name == CONSOLE_CLIENT else logging.INFO
            words = "%s, %s: profile %s, because %s"
            logger.log(level, words, client, caller.revision, choice.profile.name, choice.because)
            if len(self._chosen) >= _CLIENTS:
                self._chosen.clear()
            profile = narrow(choice.profile, caller.revision)
            if caller.chooses_outputs:
                profile = for_chosen_outputs(profile)
            chosen = self._chosen[key] = Choice(profile, choice.because)
        return chosen

    def catalogue(self, caller: Caller) -> Catalogue:
        """Return the caller's catalogue, without waiting for upstreams, with notes of what was changed or left out."""
        return self._catalogues.catalogue(self._listed(caller), self._able(caller))

    def all_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the caller's tools, without waiting for upstreams: those too that are found by searching."""
        return self._search.unsearched(self.catalogue(caller))

    def asking(self, caller: Caller) -> dict[str, str]:
        """Return the tools offered to a caller whose calls wait for its user, each with the rule that wants it."""
        able_caller = self._able(caller)
        routes = self.catalogue(caller).routes.items()
        return {name: rule for name, route in routes if (rule := self._rules.asks(route, able_caller))}

    def _listed(self, caller: Caller) -> Profile:
        """The profile for listing a caller's tools: the same for every call, whatever model each names."""
        return self.profile_of(caller if caller.model is None else replace(caller, model=None))

    def _able(self, caller: Caller) -> Caller:
        return self._rules.narrowed(self._projects.known(able(caller, self.profile_of(caller))))

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that declares headers, by the name under which the caller is offered it.

        Returns None if the caller has not been offered it yet. `caller` is only called if somebody has.
        """
        if not self._catalogues.declares_headers(name):
            return None
        asking = caller()
        try:
            return self._catalogues.header_schema(name, self._listed(asking), self._able(asking))
        except (ProfileError, UnknownToolset):  # the request is refused for that
            return None

    async def check_scopes(self, params: Mapping[str, Any], caller: Caller) -> None:
        """Refuse a call of a tool, and record that, if it needs scopes that the caller's token lacks.

        Does not wait for upstreams.

        Raises:
            ScopeMissing: it does.
            AuditUnavailable: it does, but this cannot be recorded.
        """
        if not caller.grant.scoped:
            return
        try:
            profile, caller = self.profile_of(caller), self._able(caller)
            params = self._search.inner_call(params, self._listed(caller))
            catalogue = self._catalogues.catalogue(self._listed(caller), caller)
        except (ProfileError, InvalidRequest):  # the request is refused for that
            return
        name = str(params.get("name"))
        route = catalogue.routes.get(name)
        if route is None:
            return
        try:
            check_scopes(route, caller)
        except ScopeMissing:
            async with self._entry("tools/call", params, caller, profile) as entry:
                entry.routed(route.upstream, route.tool, partial(schema_of, catalogue, name))
                raise

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of changed lists and watched resources. Return a function that ends the subscription."""
        # Wrapped, because the same listener may be subscribed twice and unsubscribed once.
        entry: Listener = lambda change: listener(change)  # noqa: E731
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    async def watch(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Notify listeners with `updated:<uri>` when a resource changes. Return a function that ends this.

        Raises:
            UnknownResource: no upstream has it.
            UpstreamError: its upstream cannot be asked.
        """
        if uri.startswith(URI_SCHEME):  # stored content never changes
            return lambda: None
        caller = self._able(caller)
        name, uri = self._resources.addressed(uri, caller) or (self._resources.whose(uri, caller), uri)
        return await sharing(self._upstreams, caller)[name].subscribe(uri, caller)

    def hears(self, caller: Caller, change: Change) -> bool:
        """Whether this host is to be notified of a change.

        It is of what exists for it, and if it acts on such notifications (`features.broken`).
        """
        if change.principal not in (None, caller.principal):
            return False
        try:
            if change.uri is None and f"{change.kind}_list_changed" in self.profile_of(caller).features.broken:
                return False
            grant = self._able(caller).grant
        except ProfileError:  # it asked for a profile that no longer exists
            grant = self._rules.narrowed(replace(caller, toolsets=())).grant
        except UnknownToolset:  # likewise: its next request is refused, and says so
            return True
        if change.upstream in (None, OWN):
            return True
        if change.kind == "tools":
            return grant.reaches(change.upstream) and self._rules.concerns(change.tools, caller.principal, grant)
        return grant.reaches_content(change.upstream)

    def toolsets_in_force(self, caller: Caller) -> tuple[str, ...]:
        """Return the toolsets of a caller, with that of the project that it has open, if it has said which."""
        return self._projects.known(caller).toolsets

    def knows_upstreams(self, caller: Caller) -> bool:
        """Whether something is known of every upstream of this caller that is starting: it has been there before."""
        try:
            return not self._availability.unknown(self._able(caller))
        except (ProfileError, UnknownToolset):  # its next request is refused, and says so
            return False

    async def roots_changed(self, session: str) -> None:
        """Tell the upstreams that the roots of this session's host have changed; it may be in another project."""
        if self._projects.forget(session):
            self._tell_of_lists()
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
        self._projects.forget(session)
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
            self._introduce()
        else:
            change = Change(kind, upstream, principal, tools)
            self._tell(change)
            if (uri := change.uri) is not None and apps.is_prefixed(uri):
                # Most hosts know it by its URI prefixed with the upstream.
                self._tell(change._replace(kind=UPDATED + apps.outward(upstream, uri)))

    def reconfigure(self, settings: Settings, profiles: Mapping[str, Profile], shaper: ShaperPort) -> None:
        """Apply changed settings, all at once, and notify hosts if their tools may have changed.

        Requests in progress keep the settings that they began with.
        """
        offered_by = ("prefix", "profile", "model", "name")
        before, after = self._settings.gateway, settings.gateway
        anew = self._profiles != profiles or any(getattr(before, key) != getattr(after, key) for key in offered_by)
        rules = ("policy", "pins", "toolsets", "tool_search")
        ruled = any(getattr(self._settings, key) != getattr(settings, key) for key in rules)
        early = self._settings.long_calls.enabled != settings.long_calls.enabled
        self._settings, self._profiles = settings, profiles
        self._header_matches = header_matches(profiles)
        self._rules.reconfigure(settings)
        self._search.reconfigure(settings.tool_search)
        self._approvals.lasts = settings.policy.approval_lasts
        self._calls.reconfigure(settings, shaper)
        self._configured = self._profile or settings.gateway.profile
        self._telemetry.content = settings.logging.content
        self._limits.quota = settings.access.limits.quota
        if self._long_calls is not None:
            self._long_calls.settings = settings.long_calls
        self._admission.reconfigure(settings.overload)
        self._chosen.clear()
        self._availability.forget()
        self._catalogues.reconfigure(settings)
        self._prompts.reconfigure(settings.gateway)
        self._introduce()
        if ruled:
            return self._tell_of_lists()
        if anew or early:
            self._tell(Change("tools"))
        if before.prefix != after.prefix:
            self._tell(Change("prompts"))
        return None

    @property
    def introductions(self) -> Introductions:
        """The upstreams' instructions for models, as last known."""
        return self._introductions

    def on_introductions(self, listener: Callable[[Introductions], None]) -> None:
        """Set the only listener for changes of the introductions."""
        self._introduced = listener

    def _introduce(self) -> None:
        now = self._shared_introductions()
        if now != self._introductions:
            self._introductions = now
            if self._introduced is not None:
                self._introduced(now)

    def _shared_introductions(self) -> Introductions:
        """The introductions without those of upstreams that a rule withholds from everybody it does not name."""
        found = introductions(self._upstreams, self._profiles, self._configured)
        return found.only(lambda name: self._rules.policy.shares(name, NOBODY))

    def _tell_of_lists(self) -> None:
        for kind in ("tools", "prompts", "resources"):
            self._tell(Change(kind))

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                # A listener is one host's connection; if it fails, the others are still notified.
                logger.exception("a listener failed")

    # -- resources -----------------------------------------------------------------------------------------------------

    async def _read(self, params: Mapping[str, Any], context: RequestContext) -> dict[str, Any]:
        uri = params.get("uri")
        if not isinstance(uri, str) or not uri:
            raise InvalidRequest("resources/read needs the uri of a resource")
        if uri.startswith(URI_SCHEME):
            return await self._ask(OWN, "resources/read", {"uri": uri}, context)
        await self._wait_for(uri, context)
        return await self._owner_of(uri).read(uri, params, self._ask, context)

    def _owner_of(self, uri: str) -> Resources | Skills:
        return self._skills if uri.startswith(apps.SKILL_SCHEME) else self._resources

    async def _about_skills(
        self, method: str, params: Mapping[str, Any], context: RequestContext, waited: float
    ) -> dict[str, Any]:
        if method == "skills/list":
            _refuse_cursor(params)
        profile = context.profile
        await self._availability.first(profile.name, profile.wait.for_list(waited), context.caller)
        if isinstance(uri := params.get("uri"), str):
            await self._wait_for(uri, context)
        return await self._skills.answer(method, params, self._ask, context)

    async def _about_files(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        if self._files is None or method not in self._files.methods:
            raise UnknownMethod(f"{plain(method, 100)!r} is not served")
        return await self._files.answer(method, params, caller.principal)

    async def _use_skill(self, context: RequestContext, arguments: object) -> dict[str, Any]:
        """Answer a call of `gateway_skill`."""
        part = replace(context, is_part=True, on_progress=None)
        return await use_skill(self._skills, arguments, self._ask, part)

    async def _run_script(self, context: RequestContext, arguments: object) -> dict[str, Any]:
        """Answer a call of `gateway_run`."""
        if self._code_mode is None:  # it is not listed, but a session may have been moved here
            raise UnknownTool(f"the gateway has no tool named {RUN_TOOL!r}")
        catalogue = await self._catalogues.offered(context)
        call = partial(self._call_for_script, context)
        return await self._code_mode.run(arguments, catalogue, context, call, self._search)

    async def _call_for_script(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make a call as the host's own is made, but with a result that is whole, for the script of this context."""
        from gateway.routing.code_mode.code_mode import whole_results  # here, because most gateways run no scripts

        params, caller, profile = {"name": name, "arguments": arguments}, context.caller, context.profile
        entry = self._entry("tools/call", params, caller, profile)
        part = replace(context, profile=whole_results(profile.name), on_progress=None, is_part=True, by_model=True)
        async with entry:
            with await self._counted("tools/call", params, caller, profile, is_part=True):
                return await self._calls.call(params, replace(part, within=RUN_TOOL, audit=entry))

    async def _wait_for(self, uri: str, context: RequestContext) -> None:
        """Wait, within the profile's bound, for an upstream that is starting and may have the resource."""
        caller, profile = context.caller, context.profile
        if (page := self._resources.addressed(uri, caller)) is not None:
            # A host that cached its list of tools may request a page before anything else.
            starting = [name for name in self._availability.starting(caller) if name == page[0]]
            await self._availability.wait(starting, profile.wait.tools_list, caller)
        elif self._resources.owner(uri, caller) is None:
            await self._availability.first(profile.name, profile.wait.tools_list, caller)


def _refuse_cursor(params: Mapping[str, Any]) -> None:
    if params.get("cursor") is not None:
        raise InvalidRequest("there are no more pages", remedy="ask without a cursor: the whole list is one page")
