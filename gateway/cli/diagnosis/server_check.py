"""Check a server: call its tools through a real gateway, and simulate every host's view of the results."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import anyio
from anyio import to_thread

from gateway.cli.demo.cases import Case
from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.diagnosis.checkup import CheckOptions, Checkup
from gateway.cli.diagnosis.described_results import describe_result, first_text, judgeable
from gateway.cli.diagnosis.page_check import (
    HOST_PROFILE,
    CheckedPage,
    check_pages,
    hiding_pictures,
    host_profile,
    reading_data,
    replacing_text,
)
from gateway.cli.diagnosis.selection import PlannedCall, Skipped, matches, select
from gateway.cli.progress import AGAIN_EVERY, ANNOUNCED_AFTER, duration_words
from gateway.config.builtin_profiles import load_profiles
from gateway.config.schema import Settings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore
from gateway.core.apps import HEAVY_CHARS, TextSize, for_the_model, hidden_pictures
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_object
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.core.results.lift_result import lift
from gateway.errors import GatewayError, UpstreamRefused, UpstreamUnavailable
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.hosts import FIRST
from gateway.hosts.simulators.side import Side, side
from gateway.routing import Router
from gateway.runtime import open_gateway
from gateway.testing.advice import Advice, advise_on_tool, unique
from gateway.testing.result_advice import advise_on_result
from gateway.upstream.connection.first_start import longest_start

Say = Callable[[str], None]

_RAW = "as it came"
_PATIENCE = 5.0
"""Seconds beyond its start limit after which the server counts as hanging."""
_SHOWN = 200


async def check_server(settings: Settings, wanted: CheckOptions, say: Say) -> Checkup:
    """Check the one upstream of `settings`; `say` is called with a line for each step.

    Raises:
        UpstreamUnavailable: the gateway cannot connect to it.
        ConfigError: it does not have a tool that was asked for.
    """
    started = monotonic()
    (server,) = settings.upstreams
    hosts = wanted.hosts or tuple(host for host in FIRST if not host.for_people)
    async with _opened(settings, wanted.seconds) as router:
        check = _Check(server, router, hosts, settings)
        await check.connected(say)
        calls, skipped = select(check.tools, check.names, wanted.given, everything=wanted.everything, only=wanted.only)
        async with MediaWorkers(settings.media) as media:
            shaper = Shaper(MemoryStore(settings.store), media, max_blocks=settings.limits.blocks)
            for call in calls:
                say(f"calling {call.title}({_shown(call.arguments)})")
                await check.call(call, shaper)
        profiles = load_profiles(settings)
        pages: Sequence[CheckedPage] = ()
        if wanted.pages:
            pages = await check_pages(
                router, server, profiles, lambda name: matches(name, wanted.only), check.with_data
            )
    checked = check.done(skipped, pages, wanted.only, monotonic() - started)
    return replace(
        checked,
        replacing=replacing_text(profiles),
        hiding=hiding_pictures(profiles),
        reading=reading_data(profiles),
        command_for_all=wanted.command_for_all,
    )


@asynccontextmanager
async def _opened(settings: Settings, seconds: float) -> AsyncGenerator[Router]:
    """Open a gateway with a profile that changes no result, and with this limit on calls, in seconds."""
    as_it_came = ProfileSource(extends="passthrough", sets={"wait.tools_list": 0.0, "apps.host": "always"})
    limits = {"call": seconds, "idle": seconds}
    upstreams = {
        name: one.model_copy(update={"timeout": one.timeout.model_copy(update=limits), "idle_stop": 0.0})
        for name, one in settings.upstreams.items()
    }
    gateway = settings.gateway.model_copy(update={"profile": None})
    own = {_RAW: as_it_came, HOST_PROFILE: host_profile(seconds)}
    update = {"upstreams": upstreams, "gateway": gateway, "profiles": {**settings.profiles, **own}}
    async with open_gateway(settings.model_copy(update=update)) as router:
        yield router


class _Check:
    """The check of one server, with its results so far."""

    def __init__(self, server: str, router: Router, hosts: Sequence[SimulatedHost], settings: Settings) -> None:
        self._server = server
        self._router = router
        self._hosts = hosts
        self._settings = settings
        self._raw = Caller(revision=REVISIONS[-1], profile=_RAW)
        self._callers = {host.name: host.caller for host in hosts}
        self._cells: list[Cell] = []
        self._cases: list[Case] = []
        self._for_pages: list[Case] = []
        self._refused: list[Case] = []
        self._advice: dict[str, Sequence[Advice]] = {}
        self._failed: dict[str, str] = {}
        self._with_data: dict[str, str] = {}
        self._data_sizes: dict[str, TextSize] = {}
        self._pictures: dict[str, int] = {}

    async def connected(self, say: Say) -> None:
        """Wait until the server is ready. Raises UpstreamUnavailable if it does not become ready."""
        upstream = self._router.upstreams[self._server]

        began = anyio.current_time()

        async def announce() -> None:
            await anyio.sleep(ANNOUNCED_AFTER)
            say(f"connecting to {self._server}")
            while True:
                await anyio.sleep(AGAIN_EVERY)
                say(f"still connecting to {self._server}, {duration_words(anyio.current_time() - began)}")

        is_ready = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(announce)
            is_ready = await upstream.ready(longest_start(upstream.settings) + _PATIENCE)
            tasks.cancel_scope.cancel()
        if not is_ready:
            failure = upstream.failure
            if failure is not None:
                raise UpstreamUnavailable(self._server, failure.message, remedy=failure.remedy, failure=failure)
            raise UpstreamUnavailable(self._server, upstream.cause or f"is {upstream.state.value}")

    @property
    def tools(self) -> Sequence[Any]:
        """The tools as the server lists them."""
        return self._router.upstreams[self._server].lists_for().tools

    @property
    def names(self) -> Mapping[str, str]:
        """The names under which the gateway offers the tools, by the server's own names."""
        routes = self._router.catalogue(self._raw).routes
        return {route.tool: name for name, route in routes.items() if route.upstream == self._server}

    @property
    def with_data(self) -> frozenset[str]:
        """The tools that returned structured content, in calls whose results models read."""
        return frozenset(self._with_data.values())

    async def call(self, call: PlannedCall, shaper: Shaper) -> None:
        """Make one call, and simulate every host's view of the result."""
        request = {"name": self.names[call.tool_name], "arguments": dict(call.arguments)}
        try:
            raw = await self._router.respond("tools/call", request, self._raw)
        except GatewayError as error:
            self._failed[call.title] = plain(str(error), 600)
            self._advice[call.title] = self._advised(call, None)
            self._lost(call, refused=isinstance(error, UpstreamRefused))
            return
        self._advice[call.title] = self._advised(call, raw)
        is_error = raw.get("isError") is True
        if is_error:
            self._failed[call.title] = f"it reports an error: {first_text(raw)}"
        case = self._case(call, describe_result(raw), refused=is_error)
        if case not in self._refused:
            if for_the_model(call.tool) and (lifted := lift(raw)).has_structured_content:
                self._with_data[case.name] = call.tool_name
                self._data_sizes[case.name] = TextSize.of(compact_json(lifted.structured_content))
                self._pictures[case.name] = hidden_pictures(lifted)
            for host in self._hosts_of(call):
                self._cells.append(await self._cell(host, case, call, raw, shaper))

    def _lost(self, call: PlannedCall, *, refused: bool) -> None:
        """Record that a call has no result, which no host can show."""
        failure = self._failed[call.title]
        case = self._case(call, "no result", refused=refused)
        if case not in self._refused:
            side = Side(None, None, failure)
            self._cells += [Cell(host, case, side, side) for host in self._hosts_of(call)]

    def _hosts_of(self, call: PlannedCall) -> Sequence[SimulatedHost]:
        """The hosts whose models read the result of a call."""
        return self._hosts if for_the_model(call.tool) else ()

    async def _cell(
        self, host: SimulatedHost, case: Case, call: PlannedCall, raw: Mapping[str, Any], shaper: Shaper
    ) -> Cell:
        caller = self._callers[host.name]
        profile, catalogue = self._router.profile_of(caller), self._router.catalogue(caller)
        offered = {
            route.tool: (tool, route)
            for tool in catalogue.tools
            if (route := catalogue.routes[tool["name"]]).upstream == self._server
            and tool["name"] not in catalogue.listed_for_pages
        }
        tool, route = offered.get(call.tool_name, (None, None))
        app = route is not None and route.audience == "both"
        shaped = await shaper.shape(raw, profile, owner=caller.principal, app=app)
        original = judgeable(raw)
        # Decoding pictures is slow, and must not delay a Ctrl-C.
        direct = await to_thread.run_sync(side, original, raw, call.tool, host)
        through = await to_thread.run_sync(side, original, shaped.result, tool, host)
        return Cell(host, case, direct, through)

    def done(
        self, skipped: Sequence[Skipped], pages: Sequence[CheckedPage], only: Sequence[str], seconds: float
    ) -> Checkup:
        """Return the results of the whole check, of the tools that match one of the shell globs in `only`."""
        called = {case.tool for case in (*self._cases, *self._for_pages, *self._refused)}
        on_tools = {
            name: advice
            for tool in self.tools
            if (name := _name_of(tool)) not in called
            and matches(name, only)
            and (advice := unique(advise_on_tool(tool, self._server, self._profiles())))
        }
        outcome = Outcome(tuple(self._hosts), tuple(self._cases), tuple(self._cells), seconds)
        aside = tuple(self._for_pages), tuple(self._refused)
        shown = {tool for page in pages for tool in page.tools}
        with_data = frozenset(name for name, tool in self._with_data.items() if tool in shown)
        heavy = {name: size for name in with_data if (size := self._data_sizes[name]).chars > HEAVY_CHARS}
        return Checkup(
            self._server,
            outcome,
            self._advice,
            on_tools,
            self._failed,
            skipped,
            pages,
            *aside,
            with_data,
            pictures={name: count for name in sorted(with_data) if (count := self._pictures[name])},
            heavy=dict(sorted(heavy.items())),
        )

    def _case(self, call: PlannedCall, shows: str, *, refused: bool) -> Case:
        """Return the case of a call. If made-up arguments were `refused`, no host's view of it is judged."""
        arguments = {key: _short(value) for key, value in call.arguments.items()}
        case = Case(call.title, shows, self._server, call.title, arguments)
        if refused and call.made_up:
            self._refused.append(case)
            self._failed[call.title] += " (perhaps since its arguments were made up: give real ones with --arguments)"
        else:
            (self._cases if for_the_model(call.tool) else self._for_pages).append(case)
        return case

    def _profiles(self) -> list[Profile]:
        return [
            self._router.profile_of(caller)
            for host in self._hosts
            if not host.for_people and (caller := self._callers[host.name])
        ]

    def _advised(self, call: PlannedCall, raw: Mapping[str, Any] | None) -> Sequence[Advice]:
        on_tool = list(advise_on_tool(call.tool, self._server, self._profiles())) if call.number == 1 else []
        # The rules apply to results that models read.
        read = raw if for_the_model(call.tool) else None
        on_result = list(advise_on_result(read, call.tool)) if read is not None else []
        return unique([*on_result, *on_tool])


def _name_of(tool: Any) -> str:
    name = as_object(tool).get("name")
    return plain(name, 80) if isinstance(name, str) else "a tool without a name"


def _shown(arguments: Mapping[str, Any]) -> str:
    return plain(", ".join(f"{key}={value!r}" for key, value in arguments.items()), _SHOWN)


def _short(value: Any) -> Any:
    return value if len(repr(value)) <= _SHOWN else plain(repr(value), _SHOWN)
