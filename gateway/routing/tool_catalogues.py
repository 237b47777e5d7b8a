"""Tool catalogues: the tools offered to a host, by its profile, its revision and the upstreams' lists for it."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import Lock, to_thread

from gateway.config.gateway_settings import GatewaySettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR, Grant
from gateway.core.model.json_values import is_list, is_object
from gateway.core.model.revisions import REVISIONS
from gateway.core.model.wire import WireObject
from gateway.core.near_names import nearest_words
from gateway.core.own_names import CANCEL_TOOL, FIND_TOOL, LOGIN_TOOL, WAIT_TOOL
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import OWN, Catalogue, Route, WithheldTool, build
from gateway.core.tools.catalogue.faults import FaultMemo
from gateway.core.tools.catalogue.names import NameRules
from gateway.errors import GatewayError, UnknownTool
from gateway.routing.approve_tool import APPROVE
from gateway.routing.ask_approval import can_ask
from gateway.routing.availability import Availability
from gateway.routing.call_logins import CallLogins
from gateway.routing.call_rules import CallRules, refusal
from gateway.routing.large_values import is_large
from gateway.routing.log_once import Problems
from gateway.routing.long_calls.call_texts import CANCEL, WAIT
from gateway.routing.long_calls.task_states import takes_tasks
from gateway.routing.pages import OpenPages
from gateway.routing.ports import ArgumentsPort, CalibrationPort, OwnTools, UpstreamsPort
from gateway.routing.skill_tool import SKILL, needs_tool
from gateway.routing.tool_search import SEARCH_TOOLS, ToolSearch
from gateway.routing.visible_upstreams import visible
from gateway.upstream import RequestContext, UpstreamState

if TYPE_CHECKING:
    from gateway.routing.code_mode import CodeMode

_Tools = Mapping[str, Sequence[WireObject]]
"""The raw tools of each upstream."""

logger = logging.getLogger(__name__)

_HEADER = "x-mcp-header"
_LONGEST_NAME = 200
_COMPARED = 500
"""Maximum number of names that an unknown name is compared with: comparing is slow, and callers choose the name."""
_KEPT = 128
"""Maximum number of catalogues kept, most recently used: an upstream's tools may depend on the host's capabilities."""
_TRIES = 3
"""Maximum number of attempts to build a catalogue in a thread if its lists change meanwhile."""


class _Wanted(NamedTuple):
    """The input of a catalogue, and the key under which it is cached."""

    key: tuple[object, ...]
    lists: _Tools
    passing: Sequence[WireObject]
    """Tools of the gateway's own that not all hosts are offered: to calibrate a host, to log in, to approve a call, to
    wait for one, to load a skill, to run a script."""
    profile: Profile
    revision: str
    shows_apps: bool
    keeps_schemas: bool
    settings: Mapping[str, UpstreamSettings]
    gateway: GatewaySettings
    grant: Grant
    withheld: Callable[[], Sequence[WithheldTool]]
    is_searched: bool
    """Whether the host's list may be shorter than the catalogue, so that the host's limit is not the catalogue's."""


class _Kept(NamedTuple):
    """A catalogue, the lists that it was built from, and the input schemas of its tools that declare headers."""

    lists: _Tools
    catalogue: Catalogue
    with_headers: Mapping[str, Mapping[str, Any]]


class ToolCatalogues:
    """The catalogues in use, and the routes from offered names to upstreams."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        own: OwnTools,
        settings: Settings,
        availability: Availability,
        opened: OpenPages,
        rules: CallRules,
        logins: CallLogins,
        search: ToolSearch,
        calibration: CalibrationPort | None = None,
        arguments: ArgumentsPort | None = None,
        *,
        answers_early: bool = False,
        code_mode: "CodeMode | None" = None,
    ) -> None:
        self._upstreams = upstreams
        self._own = own
        self._search = search
        self._code_mode = code_mode
        self._settings, self._approval = settings.gateway, settings.policy.approval
        self._can_answer_early = answers_early
        self._answers_early = answers_early and settings.long_calls.enabled
        self._availability = availability
        self._opened = opened
        self._rules = rules
        self._logins = logins
        self._calibration = calibration
        self._arguments = arguments
        self._cache: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._declaring: set[str] = set()
        """The names of tools that declare headers, whoever is offered them: a quick look before the caller's own."""
        self._problems = Problems()
        self._faults = FaultMemo()
        self._building = Lock()

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed settings."""
        self._settings, self._approval = settings.gateway, settings.policy.approval
        self._answers_early = self._can_answer_early and settings.long_calls.enabled
        self.forget()

    def forget(self) -> None:
        """Discard the catalogues, so that they are rebuilt. Called when an upstream's list or state has changed."""
        self._cache.clear()
        self._declaring.clear()
        self._faults = FaultMemo()

    def catalogue(self, profile: Profile, caller: Caller) -> Catalogue:
        """Return the catalogue for a caller. `profile` is the caller's, already narrowed to its revision."""
        wanted = self._wanted(profile, caller)
        return self._remembered(wanted) or self._keep(wanted, self._built(wanted))

    async def offered(self, context: RequestContext) -> Catalogue:
        """Return the catalogue for the host of a request (`prepared`)."""
        return await self.prepared(context.listed, context.caller)

    async def prepared(self, profile: Profile, caller: Caller) -> Catalogue:
        """Return the catalogue for a caller as `catalogue` does, but built in a thread if the lists are large."""
        tries = 0
        while True:
            tries += 1
            wanted = self._wanted(profile, caller)
            if (found := self._remembered(wanted)) is not None:
                return found
            if not is_large(wanted.lists):
                return self._keep(wanted, self._built(wanted))
            async with self._building:
                if (found := self._remembered(wanted)) is not None:
                    return found
                before = self._faults
                built = await to_thread.run_sync(self._built, wanted)
                if self._faults is before:
                    return self._keep(wanted, built)
            if tries == _TRIES:  # they change all the time: what was true a moment ago is an answer, if none to keep
                return built.catalogue

    def _wanted(self, profile: Profile, caller: Caller) -> "_Wanted":
        upstreams = visible(self._upstreams, caller)
        lists = {name: upstreams[name].lists_for(caller).tools for name in upstreams}
        revision = caller.revision if caller.revision in REVISIONS else REVISIONS[0]
        # Keyed by identity: the lists are kept beside the catalogue, so no other list can get the same id.
        logins = self._logins.tools(caller)
        waiting = logins[0]["description"] if logins else ""  # names those to log in to
        calibrating = () if self._calibration is None else self._calibration.tools(caller, profile)
        asks = self._approval == "two-step" and self._rules.policy.asks
        approving = (APPROVE,) if asks and not can_ask(caller) else ()
        collects = self._answers_early and profile.wait.early_answer is not None and not takes_tasks(caller)
        collecting = (WAIT, CANCEL) if collects else ()
        shows_apps = apps.shows_apps(caller.capabilities, profile.apps.host)
        listed = ((name, id(tools)) for name, tools in lists.items())
        grant, rules = caller.grant, self._rules.key(caller)
        reached = (grant.upstreams, grant.tools, grant.others, grant.within)
        loading = (SKILL,) if profile.tools.helpers and needs_tool(self._upstreams, caller) else ()
        searching = SEARCH_TOOLS if self._search.may_search(profile) else ()
        own = (len(calibrating), waiting, len(approving), collects, len(searching), len(loading))
        key = (profile.name, revision, shows_apps, caller.chooses_outputs, own, reached, rules, *listed)
        running = () if self._code_mode is None else (self._code_mode.tool,)
        passing = (*calibrating, *logins, *approving, *collecting, *loading, *searching, *running)
        settings = {name: upstreams[name].settings for name in lists}
        withheld = self._rules.look(caller, lists)
        host = (profile, revision, shows_apps, caller.chooses_outputs, settings, self._settings, grant)
        return _Wanted(key, lists, passing, *host, withheld, bool(searching))

    def _remembered(self, wanted: "_Wanted") -> Catalogue | None:
        found = self._cache.get(wanted.key)
        if found is None:
            return None
        self._cache.move_to_end(wanted.key)
        return found.catalogue

    def _keep(self, wanted: "_Wanted", built: "_Kept") -> Catalogue:
        self._cache[wanted.key] = built
        self._declaring.update(built.with_headers)
        self._report(built.catalogue, wanted.profile.name)
        while len(self._cache) > _KEPT:
            self._cache.popitem(last=False)
        return built.catalogue

    def declares_headers(self, name: str) -> bool:
        """Whether any host was offered a tool under this name that wants arguments repeated in headers."""
        return name in self._declaring

    def header_schema(self, name: str, profile: Profile, caller: Caller) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that declares headers, if the caller was offered one under this name."""
        kept = self._cache.get(self._wanted(profile, caller).key)
        return None if kept is None else kept.with_headers.get(name)

    async def route(self, name: str, context: RequestContext) -> tuple[Route, Catalogue]:
        """Return the route of a call to `name`, and the catalogue that it comes from.

        Wait, within the profile's bound, for a starting upstream that may have the tool.

        A name that no host was offered may be the one by which a page knows a tool of its own upstream
        (`Catalogue.own_names`).

        Raises:
            NotAllowed: the tool is withheld from the caller.
            UpstreamUnavailable: the upstream that the name belongs to is not available.
            UnknownTool: no upstream has it, several have it, or it is not for the page that calls it.
        """
        starting, profile = self._availability.starting(context.caller), context.listed
        catalogue = await self.offered(context)
        route = self._found(name, catalogue, context, settled=not starting)
        if route is not None:
            return route, catalogue
        _check_withheld(name, catalogue)
        owner = self._owner(name, profile, context.caller)
        awaited = [owner] if owner in starting else starting if owner is None else []
        if awaited:
            await self._availability.wait(awaited, profile.wait.tools_list, context.caller)
            catalogue = await self.offered(context)
        route = self._found(name, catalogue, context, settled=True)
        if route is not None:
            return route, catalogue
        _check_withheld(name, catalogue)
        raise self._unknown(name, self._owner(name, profile, context.caller), catalogue, context)

    def _found(self, name: str, catalogue: Catalogue, context: RequestContext, *, settled: bool) -> Route | None:
        caller = context.caller
        if name == LOGIN_TOOL:  # also after the login, when it is no longer listed
            return Route(OWN, LOGIN_TOOL)
        route = None if name in catalogue.listed_for_pages else catalogue.routes.get(name)
        if route is None and name in (WAIT_TOOL, CANCEL_TOOL):  # of a call made when they were listed
            return Route(OWN, name)
        # A tool that only pages call, with a name that several upstreams have, is called from the open page.
        if route is None or (route.only_app and route.tool == name):
            route = self._opened.chosen(catalogue.own_names.get(name, ()), caller, settled=settled) or route
        if route is not None:
            if route.only_app and context.by_model:
                return None  # hosts keep such tools from their models
            self._opened.check(route, caller)
            if route.upstream != OWN and not caller.grant.reaches_tool(route.upstream, route.tool):
                return None  # no catalogue of this caller has it; this is the last door
        return route

    def _built(self, wanted: "_Wanted") -> "_Kept":
        lists, profile = wanted.lists, wanted.profile
        own = (*(self._own.tools() if profile.tools.helpers else ()), *wanted.passing)
        if own:
            lists = {OWN: own, **lists}
        settings, arguments = wanted.settings, self._arguments
        lists = {name: _granted(wanted.grant, name, tools) for name, tools in lists.items()}
        catalogue = build(
            lists,
            {name: upstream.tools for name, upstream in settings.items()},
            wanted.gateway.prefix,
            _unlimited(profile) if wanted.is_searched else profile,
            wanted.gateway.name,
            revision=wanted.revision,
            giving={name: arguments.giving(settings[name]) for name in settings} if arguments else None,
            shows_apps=wanted.shows_apps,
            keeps_schemas=wanted.keeps_schemas,
            faults=self._faults,
            withheld=wanted.withheld(),
        )
        if self._code_mode is not None:
            catalogue = self._code_mode.described(catalogue, profile, wanted.lists)
        schemas = ((tool["name"], tool["inputSchema"]) for tool in catalogue.tools)
        return _Kept(wanted.lists, catalogue, {name: schema for name, schema in schemas if _declares_headers(schema)})

    def _report(self, catalogue: Catalogue, profile: str) -> None:
        logger.debug("profile %s: %d tools, %d notes", profile, len(catalogue.tools), len(catalogue.notes))
        self._problems.report((note.text for note in catalogue.problems), f"tools for profile {profile}")

    def _owner(self, name: str, profile: Profile, caller: Caller) -> str | None:
        """The upstream whose prefix the name begins with, or None."""
        rules = NameRules.of(profile.tools, self._settings.name)
        return next(
            (own for own in visible(self._upstreams, caller) if name.startswith(rules.legal(own) + SEPARATOR)), None
        )

    def _unknown(self, name: str, owner: str | None, catalogue: Catalogue, context: RequestContext) -> GatewayError:
        caller, shown = context.caller, plain(name, _LONGEST_NAME)
        upstreams = visible(self._upstreams, caller)
        if owner is not None and upstreams[owner].state is not UpstreamState.READY:
            return self._availability.unavailable(owner, f"tool {shown!r}", caller)
        if several := catalogue.own_names.get(name):
            return _ambiguous(shown, several, catalogue)
        offered = _callable(catalogue)
        likely = [each for each in offered if catalogue.routes[each].upstream == owner] or offered
        if called := [each for each in offered if catalogue.routes[each].tool == name]:
            hint = f"; here it is called {' or '.join(map(repr, called[:_COMPARED]))}"
        else:
            hint = nearest_words(shown, likely, {each: catalogue.routes[each].tool for each in likely})
        # Only where the tool might be one of theirs: it has no prefix, and is not here under another name.
        absent = () if owner is not None or called else self._availability.missing(caller)
        why = f"; not there now: {', '.join(absent)}" if absent else ""
        remedy = f"find one with {FIND_TOOL}" if context.by_model else "list the tools again"
        return UnknownTool(f"there is no tool named {shown!r}{hint}{why}", remedy=remedy)


def _unlimited(profile: Profile) -> Profile:
    """Return the profile without its limit on the number of tools."""
    return profile.model_copy(update={"tools": profile.tools.model_copy(update={"max_tools": None})})


def _check_withheld(name: str, catalogue: Catalogue) -> None:
    """Raise NotAllowed if a tool of this name is withheld."""
    if (withheld := catalogue.withheld.get(name)) is not None:
        raise refusal(name, withheld)


def _declares_headers(schema: object) -> bool:
    """Whether a schema may declare headers (`x-mcp-header`): whether these are valid is the SDK's to say."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if is_object(value):
            if _HEADER in value:
                return True
            waiting.extend(value.values())
        elif is_list(value):
            waiting.extend(value)
    return False


def _granted(grant: Grant, upstream: str, tools: Sequence[WireObject]) -> Sequence[WireObject]:
    if upstream == OWN or grant.reaches_all_tools:
        return tools
    return [tool for tool in tools if grant.reaches_tool(upstream, str(tool.get("name")))]


def _ambiguous(name: str, several: Sequence[Route], catalogue: Catalogue) -> UnknownTool:
    meant = {(route.upstream, route.tool) for route in several}
    routes = ((each, catalogue.routes[each]) for each in _callable(catalogue))
    offered = [each for each, route in routes if (route.upstream, route.tool) in meant]
    names = f"; their names here: {', '.join(map(repr, offered[:_COMPARED]))}" if offered else ""
    return UnknownTool(
        f"{name!r} is a tool of {', '.join(sorted({route.upstream for route in several}))}{names}",
        remedy=f"{'call one of these, or ' if offered else ''}open the page that calls it first",
    )


def _callable(catalogue: Catalogue) -> list[str]:
    """The names that the host has in its list, without those that only its pages call: some hosts call no others."""
    return [name for tool in catalogue.tools if (name := tool["name"]) not in catalogue.listed_for_pages]
