"""Availability of upstreams: waiting for those that are starting, and errors for those that cannot be reached."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from functools import partial

import anyio

from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.errors import LoginRequired, UpstreamUnavailable
from gateway.routing.ports import UpstreamPort, UpstreamsPort
from gateway.routing.visible_upstreams import visible
from gateway.upstream import UpstreamState
from gateway.upstream.connection.states import what_to_do


class WaitingLists:
    """Requests for lists that wait for upstreams; when the gateway stops, they are answered with what is there."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._is_over = False

    @property
    def number(self) -> int:
        """How many wait."""
        return len(self._scopes)

    def end(self) -> None:
        """Let none wait any longer, from now on."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def one(self) -> Generator[None]:
        """Context manager for a wait, which may be broken off."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self._is_over:
                scope.cancel()
            try:
                yield
            finally:
                self._scopes.discard(scope)


class Availability:
    """Waits for upstreams that are still starting, once for each upstream and profile: slow ones delay few requests."""

    def __init__(self, upstreams: UpstreamsPort) -> None:
        self._upstreams = upstreams
        self._waited: set[tuple[str, str, str]] = set()
        self.lists = WaitingLists()

    def forget(self) -> None:
        """Forget which upstreams were waited for. Called when the set of upstreams has changed."""
        self._waited.clear()

    async def first(self, profile: str, seconds: float, caller: Caller, *, hears: bool = True) -> None:
        """Wait at most `seconds` for the upstreams that this profile's hosts have not waited for before.

        An upstream whose lists are already known (from earlier, or from the gateway's last run) is not waited for,
        unless this caller is likely to get different lists or ignores notifications of changes (`hears` is false); see
        `Upstream.prepare`.
        """
        with self.lists.one():
            await self._first(profile, seconds, caller, hears=hears)

    async def _first(self, profile: str, seconds: float, caller: Caller, *, hears: bool) -> None:
        began = anyio.current_time()
        upstreams = visible(self._upstreams, caller)
        unknown = self.unknown(caller)
        # Where each principal has a connection of its own, each is waited for.
        starts = {name: (profile, name, upstreams[name].principal) for name in unknown}
        names = [name for name in unknown if starts[name] not in self._waited]
        await self.wait(names, seconds, caller)
        self._waited.update(starts[name] for name in names)
        left = max(0.0, seconds - (anyio.current_time() - began))
        async with anyio.create_task_group() as tasks:
            for name in upstreams:
                tasks.start_soon(partial(upstreams[name].prepare, caller, left, hears=hears))

    async def wait(self, names: Iterable[str], seconds: float, caller: Caller) -> None:
        """Wait at most `seconds` until none of the named upstreams of the caller is starting any more."""
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(self._settled, name, seconds, caller)

    async def _settled(self, name: str, seconds: float, caller: Caller) -> None:
        upstreams = visible(self._upstreams, caller)
        with anyio.move_on_after(seconds), suppress(KeyError):  # it may be taken out of the configuration
            awaited = None
            while (upstream := upstreams[name]) is not awaited:  # it may prove to be one that each principal has
                await upstream.ready(seconds)
                awaited = upstream

    def starting(self, caller: Caller) -> list[str]:
        """The caller's upstreams that are starting now."""
        upstreams = visible(self._upstreams, caller)
        return [name for name in upstreams if upstreams[name].state.is_pending]

    def unknown(self, caller: Caller) -> list[str]:
        """Those of them of which nothing is known from before."""
        upstreams = visible(self._upstreams, caller)
        return [name for name in self.starting(caller) if not _knows(upstreams[name])]

    def missing(self, caller: Caller) -> list[str]:
        """The caller's enabled upstreams that are not available, each with its state and cause."""
        absent: list[str] = []
        upstreams = visible(self._upstreams, caller)
        for name in upstreams:
            upstream = upstreams[name]
            state, cause = upstream.state, upstream.cause
            if state is UpstreamState.LOGIN:
                absent.append(f"{name} (waits for a login)")
            elif state not in (UpstreamState.READY, UpstreamState.SLEEPING, UpstreamState.DISABLED):
                absent.append(f"{name} ({state.value}{': ' + plain(cause) if cause else ''})")
        return absent

    def unavailable(self, name: str, what: str, caller: Caller) -> UpstreamUnavailable:
        """Return the error for a tool, prompt or resource (`what`) of an upstream that cannot be reached now."""
        upstream = visible(self._upstreams, caller)[name]
        if upstream.state is UpstreamState.LOGIN:
            return LoginRequired(name, f"{what} cannot be reached, the upstream waits for a login")
        failure = upstream.failure
        said = failure.message if failure is not None else upstream.cause
        words = f"{what} cannot be reached, the upstream is {upstream.state.value}{f': {plain(said)}' if said else ''}"
        asleep = upstream.state is UpstreamState.SLEEPING  # what it has is known, and this is not a part of it
        remedy = "list the tools again" if asleep else what_to_do(name, upstream.state, failure)
        return UpstreamUnavailable(name, words, remedy=remedy, failure=failure)


def _knows(upstream: UpstreamPort) -> bool:
    lists = upstream.lists_for()
    return any((lists.tools, lists.prompts, lists.resources, lists.templates))
