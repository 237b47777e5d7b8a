"""The console of one gateway: what its pages share, while they are served."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from gateway.config.toolset_settings import AUTO, scopes_of
from gateway.core.apps import assumed_to_show
from gateway.core.model.caller import Caller
from gateway.errors import InvalidRequest
from gateway.routing.check_arguments import ArgumentChecks
from gateway.serving.console.call_arguments import given_arguments
from gateway.serving.console.call_file import Bounds, CallFile, EndedCall
from gateway.serving.console.drawn_pages import DrawnPages
from gateway.serving.console.host_views import HostViews
from gateway.serving.console.keep_calls import CallKeeper
from gateway.serving.console.media import MediaShelf
from gateway.serving.console.ports import Operation, Report, ShownGateway
from gateway.serving.console.sessions import ConsoleSessions
from gateway.serving.console.tries import Tries, Try, operator
from gateway.telemetry.call_history import CallHistory, PastCall

_SIMULATIONS = 1
"""Simulated hosts at a time: each is a process."""


@dataclass(frozen=True)
class Console:
    """The gateway that is shown, the browsers that may see it, and what they look at."""

    gateway: ShownGateway
    report: Report
    sessions: ConsoleSessions
    history: CallHistory
    shelf: MediaShelf
    views: HostViews
    tries: Tries
    app_tries: Tries
    """The calls of pages: a page cannot keep the operator from trying anything."""
    checks: ArgumentChecks
    operation: Operation = field(default_factory=Operation)
    pages: DrawnPages = field(default_factory=DrawnPages)
    streams: set[MemoryObjectSendStream[PastCall]] = field(default_factory=set[MemoryObjectSendStream[PastCall]])
    """The calls on their way to open pages."""

    def end_streams(self) -> None:
        """End the event streams of open pages: the gateway stops."""
        for stream in tuple(self.streams):
            stream.close()

    def operator(self, profile: str | None) -> Caller:
        """Return whoever operates the gateway, as a host with this profile, for what is tried in the console.

        A toolset may follow, as in the paths of hosts: `codex/work`, or `auto/work` without a profile.

        Raises:
            ProfileError: there is no such profile.
            UnknownToolset: there is no such toolset.
        """
        profile, slash, toolset = (profile or "").partition("/")
        played = self._operator("" if profile == AUTO and slash else profile)
        if not slash:
            return played
        scopes_of(self.gateway.settings.toolsets, (toolset,))
        return replace(played, toolsets=(toolset,))

    def _operator(self, profile: str) -> Caller:
        principal = self.operation.principal
        if not profile:
            return operator(None, principal)
        played = operator(profile, principal, declares_pages=False)
        declares = assumed_to_show(self.gateway.router.profile_of(played))
        return operator(profile, principal, declares_pages=declares)

    def run(self, name: str) -> Try:
        """Return what is tried, by the operator or by a page. Raises InvalidRequest if it is not kept, or no longer."""
        try:
            return self.app_tries.find(name)
        except InvalidRequest:
            return self.tries.find(name)

    async def call(self, number: int) -> PastCall:
        """Return a call of the history; arguments and result of an earlier run are read in a thread first.

        Raises:
            InvalidRequest: it is not kept, or no longer.
        """
        call = self.history.find(number)
        if call is None:
            raise InvalidRequest(
                f"there is no call {number}", remedy="only the newest calls are kept: [console] max_calls"
            )
        if call.read is not None:
            await to_thread.run_sync(call.read)
        return call


async def open_console(
    gateway: ShownGateway, report: Report, tasks: TaskGroup, operation: Operation | None = None
) -> Console:
    """Return the console of a gateway, whose calls are kept from now on if they were not before.

    What it tries runs in `tasks`. Raises ConfigError if the file of past calls cannot be used.
    """
    telemetry, settings = gateway.router.telemetry, gateway.settings.console
    history, operation = telemetry.history, operation or Operation()
    if history is None:
        history = CallHistory(settings.max_calls, settings.max_bytes)
        if settings.calls is not None:
            tasks.start_soon((await _keeper(history, settings.calls, gateway, operation)).run)
        telemetry.history = history
    shelf = MediaShelf()
    views = HostViews(gateway.preview(), shelf, anyio.CapacityLimiter(_SIMULATIONS), gateway.settings.limits.blocks)
    tries, app_tries = (Tries(gateway.router, history, tasks) for _ in range(2))
    sessions, checks = ConsoleSessions(), ArgumentChecks()
    return Console(gateway, report, sessions, history, shelf, views, tries, app_tries, checks, operation)


async def _keeper(history: CallHistory, path: Path, gateway: ShownGateway, operation: Operation) -> CallKeeper:
    settings, caller = gateway.settings.console, operator(None, operation.principal)

    def taken(call: PastCall) -> EndedCall:
        return EndedCall(call, given_arguments(gateway, caller, call), call.result)

    bounds = Bounds(settings.max_calls, settings.max_bytes, settings.max_age)
    # In a thread: thousands of calls take most of a second, in which hosts would wait.
    file, earlier = await to_thread.run_sync(CallFile.restored, path, bounds)
    history.restore(earlier)
    return CallKeeper(history, file, taken)
