"""Availability of upstreams: waiting for those that are starting, and errors for those that cannot be reached."""

from collections.abc import Iterable
from functools import partial

import anyio

from gateway.core.model.caller import Caller
from gateway.core.wording import plain
from gateway.errors import UpstreamUnavailable
from gateway.routing.ports import UpstreamsPort
from gateway.routing.visible_upstreams import visible
from gateway.upstream import UpstreamState
from gateway.upstream.connection.states import what_to_do


class Availability:
    """Waits for upstreams that are still starting, once for each upstream and profile: slow ones delay few requests."""

    def __init__(self, upstreams: UpstreamsPort) -> None:
        self._upstreams = upstreams
        self._waited: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """Forget which upstreams were waited for. Called when the set of upstreams has changed."""
        self._waited.clear()

    async def first(self, profile: str, seconds: float, caller: Caller, *, hears: bool = True) -> None:
        """Wait at most `seconds` for the upstreams that this profile's hosts have not waited for before.

        An upstream whose lists are already known (from earlier, or from the gateway's last run) is not waited for,
        unless this caller is likely to get different lists or ignores notifications of changes (`hears` is false); see
        `Upstream.prepare`.
        """
        began = anyio.current_time()
        unknown = [name for name in self.starting(caller) if not self._knows(name)]
        names = [name for name in unknown if (profile, name) not in self._waited]
        await self.wait(names, seconds)
        self._waited.update((profile, name) for name in names)
        left = max(0.0, seconds - (anyio.current_time() - began))
        async with anyio.create_task_group() as tasks:
            for name in visible(self._upstreams, caller):
                tasks.start_soon(partial(self._upstreams[name].prepare, caller, left, hears=hears))

    async def wait(self, names: Iterable[str], seconds: float) -> None:
        """Wait at most `seconds` until none of the named upstreams is starting any more."""
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(self._upstreams[name].ready, seconds)

    def starting(self, caller: Caller) -> list[str]:
        """The caller's upstreams that are starting now."""
        return [name for name in visible(self._upstreams, caller) if self._upstreams[name].state.is_pending]

    def _knows(self, name: str) -> bool:
        lists = self._upstreams[name].lists_for()
        return any((lists.tools, lists.prompts, lists.resources, lists.templates))

    def missing(self, caller: Caller) -> list[str]:
        """The caller's enabled upstreams that are not available, each with its state and cause."""
        absent: list[str] = []
        for name in visible(self._upstreams, caller):
            state, cause = self._upstreams[name].state, self._upstreams[name].cause
            if state not in (UpstreamState.READY, UpstreamState.SLEEPING, UpstreamState.DISABLED):
                absent.append(f"{name} ({state.value}{': ' + plain(cause) if cause else ''})")
        return absent

    def unavailable(self, name: str, what: str) -> UpstreamUnavailable:
        """Return the error for a tool, prompt or resource (`what`) of an upstream that cannot be reached now."""
        upstream = self._upstreams[name]
        failure = upstream.failure
        said = failure.message if failure is not None else upstream.cause
        words = f"{what} cannot be reached, the upstream is {upstream.state.value}{f': {plain(said)}' if said else ''}"
        asleep = upstream.state is UpstreamState.SLEEPING  # what it has is known, and this is not a part of it
        remedy = "list the tools again" if asleep else what_to_do(name, upstream.state, failure)
        return UpstreamUnavailable(name, words, remedy=remedy, failure=failure)
