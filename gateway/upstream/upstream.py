"""One supervised upstream: connected by a task of its own, connected again when it is lost, its lists kept at hand."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from gateway import __version__
from gateway.config.schema import UpstreamSettings
from gateway.errors import UpstreamError, UpstreamGarbage, UpstreamRefused, UpstreamUnavailable
from gateway.upstream.backoff import Backoff
from gateway.upstream.calls import CallLimits, Deadline, ProgressCallback
from gateway.upstream.causes import Secrets
from gateway.upstream.failures import Failure, HttpStatus, NoAnswer, Stopping, Subject, explain, startup

if TYPE_CHECKING:
    from gateway.upstream.connection import TransportName
    from gateway.upstream.opening import Era, Identity
    from gateway.upstream.session import Session

logger = logging.getLogger(__name__)

WireList = tuple[dict[str, Any], ...]
OnChange = Callable[[str, str], None]
"""Told of a change: the upstream's name, and what changed: `tools`, `resources` or `state`."""

STEADY = 20.0
"""Seconds after which a connection counts as one that holds, so that the next loss is followed by a short delay."""

_LEAVING = 10.0  # seconds to leave a connection: more than a process gets to end, as the last resort
_RELIST_PAUSE = 0.1
_RESOURCES_SHARE = 0.2  # of the start limit, for listing resources before the upstream is called ready

METHOD_NOT_FOUND = -32601

_LISTS = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
}


class UpstreamState(StrEnum):
    """Where an upstream stands; `Upstream.cause` says why, in words."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"
    DISABLED = "disabled"


class Upstream:
    """One upstream. `run` is its owner: the one task that enters and leaves its connections, until `stop`.

    `state` and `cause` say where it stands; `server_info`, `capabilities`, `instructions`, `era` and `revision` what it
    said when it was last connected to. The lists are the last known ones, also while it is being connected to again.
    """

    def __init__(
        self, name: str, settings: UpstreamSettings, *, on_change: OnChange, identity: Identity | None = None
    ) -> None:
        self.name = name
        self.settings = settings
        self.state = UpstreamState.STARTING if settings.enabled else UpstreamState.DISABLED
        self.cause: str | None = None if settings.enabled else "disabled in the configuration (enabled = false)"
        self.server_info: dict[str, Any] | None = None
        self.capabilities: dict[str, Any] = {}
        self.instructions: str | None = None
        self.era: Era | None = None
        self.revision: str | None = None
        self._identity: Identity = identity or {"name": "mcp-gateway", "version": __version__}
        self._subject = Subject(name, settings, Secrets(settings))
        self._on_change = on_change
        self._tools: WireList = ()
        self._resources: WireList = ()
        self._templates: WireList = ()
        self._transport: TransportName | None = None
        self._session: Session | None = None
        self._connecting: anyio.CancelScope | None = None
        self._hint: Callable[[], str | None] = lambda: None
        self._attempt = 0  # the number of the attempt under way, or of the last one
        self._decided = 0  # the number of the last attempt of which it is known whether it succeeded
        self._stopping = False
        self._changed = anyio.Event()
        self._wanted = anyio.Event()
        self._stale: set[str] = set()
        self._stale_changed = anyio.Event()

    def tools(self) -> WireList:
        """The last known tools, as they came."""
        return self._tools

    def resources(self) -> WireList:
        """The last known resources, as they came."""
        return self._resources

    def templates(self) -> WireList:
        """The last known resource templates, as they came."""
        return self._templates

    async def ready(self, timeout: float) -> bool:
        """Wait while it is starting, at most `timeout` seconds; whether it is ready then."""
        with anyio.move_on_after(timeout):
            while self.state is UpstreamState.STARTING:
                await self._changed.wait()
        return self.state is UpstreamState.READY

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: CallLimits,
        on_progress: ProgressCallback | None = None,
    ) -> dict[str, Any]:
        """Send a request; its raw result. A lost upstream is connected to first, which `timeout.call` includes.

        Raises UpstreamUnavailable when it cannot be reached, UpstreamTimeout, UpstreamLost when the connection ended
        while the request was running (it is never sent twice), UpstreamGarbage, and UpstreamRefused with the upstream's
        own JSON-RPC error.
        """
        deadline = Deadline(timeout)
        with deadline.scope:
            session = await self._connected()
            return await session.request(method, params, deadline, on_progress)
        raise deadline.error(self.name, method)

    async def run(self) -> None:
        """Keep it connected until `stop`: the owner task. Does nothing for a disabled upstream."""
        if not self.settings.enabled:
            return
        backoff = Backoff()
        held: float | None = 0.0
        try:
            # Loading the SDK takes most of a second, which nobody should wait for on the event loop.
            connect = await anyio.to_thread.run_sync(_machinery)
            while not self._stopping:
                self._attempt += 1
                self._wanted = anyio.Event()
                if held is not None:  # one that has just failed to start is still failed while it is tried again
                    self._enter(UpstreamState.STARTING, self.cause)
                failure, held = await self._live(connect)
                self._decided = self._attempt
                if self._stopping:
                    break
                self._enter(UpstreamState.FAILED, failure.cause)
                if held is not None and held >= STEADY:
                    backoff.reset()
                with anyio.move_on_after(backoff.delay()):
                    await self._wanted.wait()
        finally:
            self._enter(UpstreamState.STOPPED, "the gateway has stopped it")

    def stop(self) -> None:
        """Ask the owner task to leave the connection and return."""
        self._stopping = True
        self._wanted.set()
        if self._session is not None:
            self._session.finish(Stopping())
        elif self._connecting is not None:
            self._connecting.cancel()

    async def _connected(self) -> Session:
        """The session to use: the one there is, or the next, waited for at most `timeout.start` seconds."""
        with anyio.move_on_after(self.settings.timeout.start):
            # Wait for the attempt under way, or have the next one begin at once; if that fails, so does the request.
            awaited = self._attempt if self._decided < self._attempt else self._attempt + 1
            while self.state not in (UpstreamState.DISABLED, UpstreamState.STOPPED) and not self._stopping:
                session = self._session
                if session is not None and self.state is UpstreamState.READY and not session.has_ended:
                    return session
                if self._decided >= awaited:
                    break
                if self._attempt < awaited:
                    self._wanted.set()
                await self._changed.wait()
        words = "is still starting" if self.state is UpstreamState.STARTING else "is not available"
        raise UpstreamUnavailable(self.name, f"{words}: {self.cause}" if self.cause else words)

    async def _live(self, connect: _Connect) -> tuple[Failure, float | None]:
        """Connect, and stay connected until it is lost: what ended it, and how long it held (None: not at all)."""
        give_up = anyio.current_time() + self.settings.timeout.start
        failures: list[Failure] = []
        for transport in self._transports():
            life = _Life()
            with anyio.CancelScope(deadline=give_up) as self._connecting:
                try:
                    await self._live_over(connect, transport, life)
                except Exception as error:  # whatever a transport raises ends this connection and nothing else
                    life.failed(explain(error, self._subject))
            if self._connecting.cancelled_caught:
                life.failed(explain(NoAnswer(self.settings.timeout.start, self._hint()), self._subject))
            self._session = self._connecting = None
            if life.began is not None:
                return life.failure, anyio.current_time() - life.began
            failures.append(life.failure)
            if not life.try_other or self._stopping:
                break
        self._transport = None
        return startup(failures, self._subject), None

    def _transports(self) -> tuple[TransportName, ...]:
        if self.settings.command is not None:
            return ("stdio",)
        if self.settings.transport in ("http", "sse"):
            return (cast("TransportName", self.settings.transport),)
        return ("http", "sse") if self._transport is None else (self._transport,)

    async def _live_over(self, connect: _Connect, transport: TransportName, life: _Life) -> None:
        async with connect(transport, self._subject, self._identity, self._notified, self._take_hint) as session:
            try:
                opening = await session.open(self.era)
            except UpstreamError as error:
                refusal = error.__cause__
                life.try_other = isinstance(error, UpstreamRefused) or (
                    isinstance(refusal, HttpStatus) and refusal.is_about_the_request
                )
                life.failed(explain(error, self._subject))
                return
            self.era, self.revision = opening.era, opening.revision
            self.server_info, self.capabilities = opening.server_info, opening.capabilities
            self.instructions = opening.instructions
            self._stale.clear()
            await self._list_tools(session)
            with anyio.move_on_after(_RESOURCES_SHARE * self.settings.timeout.start) as listing:
                await self._list_resources(session)
            if listing.cancelled_caught:  # the tools do not wait for them
                self._mark("resources")
            self._transport = transport
            self._session = session
            self._decided = self._attempt
            life.began = anyio.current_time()
            assert self._connecting is not None
            self._connecting.deadline = math.inf
            if not self._stopping:
                self._enter(UpstreamState.READY, None)
                await self._tend(session)
                life.failed(explain(session.failure or Stopping(), self._subject))
            if not self._stopping:
                self._enter(UpstreamState.FAILED, life.failure.cause)
            self._connecting.deadline = anyio.current_time() + _LEAVING

    async def _tend(self, session: Session) -> None:
        """Keep the lists fresh until the connection ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_lists, session)
            tasks.start_soon(self._listen, session)
            await session.ended.wait()
            tasks.cancel_scope.cancel()

    async def _keep_lists(self, session: Session) -> None:
        while True:
            await self._stale_changed.wait()
            stale, self._stale, self._stale_changed = self._stale, set(), anyio.Event()
            try:
                with anyio.move_on_after(self.settings.timeout.start):
                    if "tools" in stale:
                        await self._list_tools(session)
                    if "resources" in stale:
                        await self._list_resources(session)
            except UpstreamError as error:
                self._stays(error)
            await anyio.sleep(_RELIST_PAUSE)  # an upstream that announces changes without end is asked in its turn

    async def _listen(self, session: Session) -> None:
        """In the stateless era changes are told only to those who listen; a subscription that ends is made anew."""
        wanted = {f"{kind}ListChanged": True for kind in ("tools", "resources") if session.opening.announces(kind)}
        if session.opening.era != "modern" or not wanted:
            return
        backoff = Backoff()
        while True:
            try:
                await session.listen(wanted)
            except UpstreamRefused:
                return
            except UpstreamError:
                logger.debug("upstream %s: its subscription ended", self.name)
            await anyio.sleep(backoff.delay())
            self._mark("tools", "resources")  # nobody was told of what changed between two subscriptions

    async def _list_tools(self, session: Session) -> None:
        tools: WireList = ()
        if session.opening.offers("tools"):
            tools = await session.list_tools()
        if tools != self._tools:
            self._tools = tools
            self._on_change(self.name, "tools")

    async def _list_resources(self, session: Session) -> None:
        before = (self._resources, self._templates)
        if session.opening.offers("resources"):
            self._resources = await self._listed(session, "resources/list", "resources", self._resources)
            self._templates = await self._listed(
                session, "resources/templates/list", "resourceTemplates", self._templates
            )
        else:
            self._resources = self._templates = ()
        if before != (self._resources, self._templates):
            self._on_change(self.name, "resources")

    async def _listed(self, session: Session, method: str, key: str, before: WireList) -> WireList:
        """A list that an upstream may fail to give without costing anything else."""
        try:
            return await session.list_all(method, key)
        except UpstreamRefused as error:
            if error.code == METHOD_NOT_FOUND:
                return ()
            self._stays(error)
        except UpstreamGarbage as error:
            self._stays(error)
        return before

    def _stays(self, error: UpstreamError) -> None:
        said = self._subject.secrets.cause(error.message)
        logger.warning("%s; what it listed before stays", said)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        del params
        if (kind := _LISTS.get(method)) is not None:
            self._mark(kind)

    def _mark(self, *kinds: str) -> None:
        self._stale.update(kinds)
        self._stale_changed.set()

    def _take_hint(self, hint: Callable[[], str | None]) -> None:
        self._hint = hint

    def _enter(self, state: UpstreamState, cause: str | None) -> None:
        news = (state, cause) != (self.state, self.cause)
        self.state, self.cause = state, cause
        self._changed.set()
        self._changed = anyio.Event()
        if news:
            if state is UpstreamState.FAILED:
                logger.warning("upstream %s: %s", self.name, cause)
            self._on_change(self.name, "state")


class _Life:
    """What came of one attempt to connect: when it was ready, if it was, and the first thing that went wrong."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.try_other = False
        self._failure: Failure | None = None

    def failed(self, failure: Failure) -> None:
        self._failure = self._failure or failure

    @property
    def failure(self) -> Failure:
        return self._failure or Failure(UpstreamUnavailable, "is being stopped")


_Connect = Callable[..., AbstractAsyncContextManager["Session"]]


def _machinery() -> _Connect:
    from gateway.upstream.connection import connect

    return connect
