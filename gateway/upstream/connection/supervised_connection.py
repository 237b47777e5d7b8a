"""Supervised connections: one task opens the connection, reopens it when it is lost, and keeps its lists up to date."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.lowlevel
import anyio.to_thread

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import counted
from gateway.core.model.change import UPDATED as UPDATED_PREFIX
from gateway.core.model.revisions import Era
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.model.wire import ACKNOWLEDGED
from gateway.errors import Failure, UpstreamBusy, UpstreamError, UpstreamLost, UpstreamRefused
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.connection.attempts import Attempt, Connect, load_connect, reason_to_start, transports_of
from gateway.upstream.connection.bounds import CallQueue, CallQueueFull, end_over_memory, rest_when_idle
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.deadlines import CallLimits, Deadline, WaitReason
from gateway.upstream.connection.first_start import LaunchTurns, StartLimit
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.connection.reconnection import Reconnection
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.start_progress import StartProgress
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.status import ConnectionStatus
from gateway.upstream.connection.subscriptions import UPDATED, Subscriptions
from gateway.upstream.connection.upstream_lists import Lists
from gateway.upstream.transports.causes import (
    HttpStatus,
    LoginChanged,
    NoAnswer,
    Resting,
    SessionExpired,
    Stopping,
    Vacated,
)
from gateway.upstream.transports.failures import Subject, failure_of, startup
from gateway.upstream.transports.printed import Hint

if TYPE_CHECKING:
    from gateway.upstream.connection.connection import TransportName
    from gateway.upstream.connection.negotiate_era import Opening
    from gateway.upstream.connection.session import Session
    from gateway.upstream.recording.recorder import Recorder

logger = logging.getLogger(__name__)


class OnEvent(Protocol):
    """Called with a connection and an event: `tools`, `prompts` or `resources` (that list has changed), `state`,
    `opened`, `listed` (its lists were fetched again), `broken off` (opening failed), or `updated:<uri>` (a resource has
    changed). `tools` are those that the change of a list is about, if they are known. Must not block.
    """

    def __call__(
        self, connection: SupervisedConnection, event: str, tools: frozenset[ToolFacts] | None = None, /
    ) -> None: ...


_FOR_HOSTS = frozenset({"notifications/message", "notifications/elicitation/complete"})

_LEAVING = 10.0  # seconds to close a connection, as a last resort: more than a process has to end

_AFTER: Mapping[type, UpstreamState] = {
    Resting: UpstreamState.SLEEPING,
    Vacated: UpstreamState.STARTING,
    LoginChanged: UpstreamState.STARTING,
}
"""The state after a connection that ended without a failure."""

_STOPPED = "the gateway has stopped it"

_STARTING = WaitReason("waited for it to start", "try again in a moment, or raise timeout.call")


class SupervisedConnection:
    """A connection to an upstream that is kept open. `run` is its owner: the one task that opens and closes the
    underlying connections, until `stop`.

    `state` and `cause` describe it; `opening` is the outcome of the last negotiation. The lists are the last known
    ones, even while it reconnects. The default connection of an upstream reconnects by itself, and keeps the upstream's
    `catalogue`; a connection that belongs to a host reconnects only for a call.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        identity: Callable[[], ClientIdentity],
        first: Callable[[], Era],
        on_event: OnEvent,
        is_default: bool = True,
        launches: LaunchTurns | None = None,
        known: Callable[[], bool] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.subject = subject
        self._recorder = recorder
        self.opening: Opening | None = None
        self.identity = identity()
        """The identity to open the connection with."""
        self.tried: Era = first()
        """The era to try first."""
        self.counts = Counts()
        self.status = ConnectionStatus(
            subject.name,
            self.counts,
            enabled=subject.settings.enabled,
            on_change=lambda: on_event(self, "state"),
        )
        self.subscriptions = Subscriptions(subject.name)
        self.host_requests = HostRequests(subject.settings.timeout.answer)
        self.has_listed = False
        """Whether everything was listed at least once, so the lists are from this connection."""
        self.lists = Lists(subject, lambda kind, tools: on_event(self, kind, tools))
        self.last_use = [0.0]  # when the last call ended; a list, so that watchers can share it
        self._is_default = is_default
        self._first = first
        self._next_identity = identity
        self._on_event = on_event
        self._turns = CallQueue(subject.settings.limits.calls, most_waiting=subject.settings.limits.queue)
        self._transport: TransportName | None = None
        self._session: Session | None = None
        self.start = StartProgress(self.status, self._log)
        self._connecting: anyio.CancelScope | None = None
        self._hint: Callable[[], Hint | None] = lambda: None
        self._ended: Exception | None = None  # what ended the last connection
        self.starts_again: str | None = None
        """Why there was a connection before the next one, or this one, and it ended; None if there was none."""
        self._attempt = 0  # the number of the current attempt, or of the last one
        self._decided = 0  # the number of the last attempt with a known outcome
        self._stopping = False
        self._stopped_because: Exception | None = None
        self._renewals = 0
        """How often there has been another login."""
        self._launches = launches or LaunchTurns()
        self._known = known or (lambda: self.opening is not None)
        self._wanted = anyio.Event()

    @property
    def state(self) -> UpstreamState:
        """The state of the connection."""
        return self.status.state

    @property
    def cause(self) -> str | None:
        """Why it is not ready, in words."""
        return self.status.cause

    @property
    def failure(self) -> Failure | None:
        """Why it is not ready, if something failed."""
        return self.status.failure

    @property
    def name(self) -> str:
        """The upstream's name."""
        return self.subject.name

    @property
    def settings(self) -> UpstreamSettings:
        """The upstream's settings."""
        return self.subject.settings

    @property
    def era(self) -> Era | None:
        """The era of the connection; None if it was never opened."""
        return None if self.opening is None else self.opening.era

    @property
    def pid(self) -> int | None:
        """The id of the upstream's process, if the gateway started one; its children are in the group of that id."""
        return None if self._session is None else self._session.pid

    @property
    def prospect(self) -> tuple[Era, ClientIdentity]:
        """The era and the identity of the connection, or of the next one if it is not open."""
        if self.opening is not None and self.state is UpstreamState.READY:
            return self.opening.era, self.identity
        return (self._first(), self._next_identity()) if self._connecting is None else (self.tried, self.identity)

    @property
    def is_idle(self) -> bool:
        """Whether no call is running on the connection."""
        return not self.counts.running

    @property
    def is_suspended(self) -> bool:
        """Whether all its calls wait for hosts that come back with an answer (`gateway.upstream.bridging`)."""
        return 0 < self.counts.running == self.host_requests.suspended

    def adopt(self, subject: Subject) -> None:
        """Adopt settings whose only changes do not need a new connection (`tools`, `timeout`)."""
        self.subject = self.lists.subject = subject
        self.host_requests.patience = subject.settings.timeout.answer

    async def ready(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds while it is starting or installing, and return whether it is ready."""
        return await self.status.ready(timeout)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext | None,
        timeout: CallLimits,
        identity: ClientIdentity | None = None,
    ) -> dict[str, Any]:
        """Send a request, and return its raw result. A lost connection is reopened first, within `timeout.call`.

        The host in `context` gets the upstream's requests and notifications while the request runs; `identity` is
        presented to an upstream of the modern era.

        A request that was refused because the session has expired was not processed, and is sent once more on a new
        session. All others are sent once.

        Raises LoginChanged if the connection has got another login, or was ended because of one, before the request
        was sent: it may be the request of a principal whose login that is not. Raises UpstreamUnavailable if the
        upstream cannot be reached, UpstreamTimeout, UpstreamLost if the connection ended while the request was running,
        UpstreamGarbage, and UpstreamRefused with the upstream's JSON-RPC error.
        """
        with self.counts.call(method):
            deadline, tokens = Deadline(timeout), self.subject.tokens
            try:
                with deadline.scope:
                    try:
                        return await self._request(method, params, context, deadline, identity, tokens)
                    except UpstreamLost as error:
                        if not isinstance(error.__cause__, SessionExpired):
                            raise
                        logger.info("upstream %s: its session expired; a new one is opened", self.name)
                    return await self._request(method, params, context, deadline, identity, tokens)
                raise deadline.error(self.name, method)
            finally:
                self.last_use[0] = anyio.current_time()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification if the upstream is connected and of the handshake era."""
        if self._session is not None:
            await self._session.notify(method, params)

    async def run(self) -> None:
        """Keep the connection open until `stop`: this is the owner task. Does nothing for a disabled upstream."""
        if not self.settings.enabled:
            return
        reconnection = Reconnection(self.status, self.settings.limits.restarts, is_default=self._is_default)
        held: float | None = 0.0
        try:
            # Loading the SDK takes most of a second, which must not block the event loop.
            connect = await anyio.to_thread.run_sync(load_connect)
            if self.state is UpstreamState.SLEEPING:  # asleep from the beginning
                await self._wanted.wait()
            while not self._stopping:
                self._attempt += 1
                self._wanted = anyio.Event()
                if held is not None:  # after a failed start, the state stays failed during the next attempt
                    awake = self.state is UpstreamState.SLEEPING
                    self.status.enter(UpstreamState.STARTING, None if awake else self.status.why)
                failure, held = await self._live(connect)
                self._decided = self._attempt
                if self._stopping:
                    break
                if held is not None:
                    reconnection.held(held)
                await reconnection.pause(failure, self._ended, self._wanted)
        finally:
            self.status.enter(UpstreamState.STOPPED, _STOPPED)

    def wake(self) -> None:
        """Reopen the connection if it sleeps or waits for a login; its state becomes `STARTING` at once."""
        if self.state in (UpstreamState.SLEEPING, UpstreamState.LOGIN):
            self.status.enter(UpstreamState.STARTING)
            self._wanted.set()

    def stop(self, because: Exception | None = None) -> None:
        """Ask the owner task to close the connection and return; running calls fail with `because`."""
        self._stopping = True
        self._stopped_because = self._stopped_because or because
        self._wanted.set()
        if self.state.is_pending:  # calls that wait for the start are answered before the process has ended
            self.status.enter(UpstreamState.STOPPED, _STOPPED)
        if self._session is not None:
            self._session.finish(because or Stopping())
        elif self._connecting is not None:
            self._connecting.cancel()

    def vacate(self, because: Vacated) -> None:
        """Close the connection, which discards its owner's state, and open another."""
        self.host_requests.last_host = None  # the next host is a different one
        if self._session is not None:
            self._session.finish(because)

    def renew(self) -> None:
        """Open another connection at once, because of another login, also in place of one that is being opened."""
        self._renewals += 1
        if self._session is None and self._connecting is not None:
            self._connecting.cancel()
        self.vacate(LoginChanged())
        if self.state is UpstreamState.READY:  # nobody is to take the connection that ends for the next one
            self.status.enter(UpstreamState.STARTING)
        self.wake()
        self._wanted.set()

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext | None,
        deadline: Deadline,
        identity: ClientIdentity | None,
        tokens: TokenSource | None,
    ) -> dict[str, Any]:
        deadline.wait_reason = _STARTING
        session = await self._connected(tokens)
        alone = session.opening.era == "handshake" and session.identity.is_interactive
        host, on_progress = (context.host, context.on_progress) if context is not None else (None, None)
        chosen = None if context is None else context.outputs
        try:
            async with self.host_requests.call(host, deadline, alone=alone, turns=self._turns):
                deadline.wait_reason = _STARTING
                if session.has_ended:  # while this request waited for its turn
                    session = await self._connected(tokens)
                deadline.wait_reason = None
                if identity is not None and identity.log_level is not None:
                    await session.want_logs(identity.log_level)
                return await session.request(method, params, deadline, on_progress, identity, chosen)
        except CallQueueFull as full:
            raise UpstreamBusy(self.name, full.words, remedy=full.remedy) from None
        except UpstreamLost as error:
            if isinstance(error.__cause__, SessionExpired):
                await session.retire()
            raise

    async def _connected(self, tokens: TokenSource | None) -> Session:
        """Return the current session, or wait at most `timeout.start` seconds for the next.

        Raises LoginChanged if that does not send the tokens that were expected.
        """
        with anyio.move_on_after(self.settings.timeout.start):
            # Wait for the current attempt, or start the next one at once; if it fails, so does the request.
            awaited = self._attempt if self._decided < self._attempt else self._attempt + 1
            ended = UpstreamState.DISABLED, UpstreamState.STOPPED
            while self.subject.tokens is tokens and self.state not in ended and not self._stopping:
                session = self._session
                if session is not None and self.state is UpstreamState.READY and not session.has_ended:
                    return session
                if self._decided >= awaited:
                    break
                if self._attempt < awaited:
                    self._wanted.set()
                await self.status.changed()
        if self.subject.tokens is not tokens or isinstance(self._stopped_because, LoginChanged):
            raise LoginChanged
        raise self.status.unavailable()

    async def _live(self, connect: Connect) -> tuple[Failure, float | None]:
        """Connect, and return the failure that ends the connection, and its duration (None if it was not opened)."""
        limit = StartLimit(self.settings)
        self._ended, renewals = None, self._renewals
        failures: list[Failure] = []
        for transport in transports_of(self.settings, self._transport):
            life = Attempt()
            with anyio.CancelScope() as self._connecting:
                try:
                    await self._live_over(connect, transport, life, limit)
                except Exception as error:  # an exception of a transport must end only this connection
                    life.failed(failure_of(error, self.subject))
            if self._connecting.cancelled_caught:
                life.failed(failure_of(NoAnswer(limit.allowed, self._hint(), limit.key), self.subject))
            self._session = self._connecting = None
            if life.began is None and self._renewals != renewals and not self._stopping:
                self._wanted = anyio.Event()  # else it would be opened once more for the same login
                return await self._live(connect)
            if life.began is not None:
                return life.failure, anyio.current_time() - life.began
            failures.append(life.failure)
            if not life.try_other or self._stopping:
                break
        self._transport = None
        self._on_event(self, "broken off")
        if self.tried == "modern" and self._first() != self.tried and not self._stopping:
            return await self._live(connect)  # the server may have exited because of an unknown request
        return startup(failures, self.subject), None

    async def _live_over(self, connect: Connect, transport: TransportName, life: Attempt, limit: StartLimit) -> None:
        assert self._connecting is not None
        async with limit.turn(self._launches, is_first=not self._known(), on_waiting=self.start.await_turn):
            await self._live_in_turn(connect, transport, life, limit, self._connecting)

    async def _live_in_turn(
        self,
        connect: Connect,
        transport: TransportName,
        life: Attempt,
        limit: StartLimit,
        connecting: anyio.CancelScope,
    ) -> None:
        self.start.take_turn()
        self.identity, self.tried = self._next_identity(), self._first()
        limit.begin(connecting)
        async with connect(
            *(transport, self.subject, self.identity, self.host_requests, self._notified, self._take_hint),
            recorder=self._recorder,
        ) as session:
            try:
                async with limit.kept(connecting, session, self.start.install):
                    opening = await session.open(self.tried, limit.patience)
            except UpstreamError as error:
                refusal = error.__cause__
                life.try_other = isinstance(error, UpstreamRefused) or (
                    isinstance(refusal, HttpStatus) and refusal.is_about_the_request
                )
                life.failed(failure_of(error, self.subject))
                return
            self.opening = opening
            await self.lists.fetch(session)
            await anyio.lowlevel.checkpoint_if_cancelled()  # by another login (`renew`) at the last moment
            self.has_listed = True
            self._transport = transport
            self._session = session
            self._decided = self._attempt
            life.began = anyio.current_time()
            connecting.deadline = math.inf
            if not self._stopping:
                await self._serve(session, life)
            if not self._stopping:
                self.status.enter(_AFTER.get(type(self._ended), UpstreamState.FAILED), life.failure)
            connecting.deadline = anyio.current_time() + _LEAVING

    async def _serve(self, session: Session, life: Attempt) -> None:
        """Let requests use a session that was opened, until it ends."""
        self.last_use[0] = anyio.current_time()
        self._on_event(self, "opened")
        self.status.enter(UpstreamState.READY)
        again = f", started again: {self.starts_again}" if self.starts_again else ""
        self._log(f"ready, {counted(len(self.lists.tools), 'tool')}{again}")
        await self._tend(session)
        self._ended = session.failure
        life.failed(failure_of(session.failure or Stopping(), self.subject))
        self.starts_again = reason_to_start(self._ended, life.failure)
        if not isinstance(self._ended, (Resting, Vacated)):
            self.counts.lost()

    async def _tend(self, session: Session) -> None:
        """Keep the lists and subscriptions up to date, and enforce the limits, until the connection ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.lists.keep, session, self._listed)
            tasks.start_soon(self.subscriptions.keep, session, self._missed)
            tasks.start_soon(self._turns.keep, session.sign_of_life)
            tasks.start_soon(rest_when_idle, session, self.settings, self.counts, self.last_use)
            tasks.start_soon(end_over_memory, session, self.settings)
            await session.ended.wait()
            tasks.cancel_scope.cancel()

    async def _listed(self) -> None:
        self._on_event(self, "listed")

    async def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Handle a notification of the upstream."""
        if method in _FOR_HOSTS:
            await self.host_requests.tell(method, params)
        else:
            self._handle(method, params)

    def _missed(self, method: str, params: Mapping[str, Any]) -> None:
        """Handle a notification that the upstream may have sent while nobody was listening."""
        self._handle(method, params, was_said=False)

    def _handle(self, method: str, params: Mapping[str, Any], *, was_said: bool = True) -> None:
        if method == UPDATED and isinstance(uri := params.get("uri"), str):
            self._on_event(self, f"{UPDATED_PREFIX}{uri}")
        elif method == ACKNOWLEDGED:
            self.subscriptions.acknowledged(params)
        self.lists.notified(method, was_said=was_said)

    def _log(self, words: str) -> None:
        """Log at INFO for the upstream's default connection, and at DEBUG for those of single hosts."""
        logger.log(logging.INFO if self._is_default else logging.DEBUG, "upstream %s: %s", self.name, words)

    def _take_hint(self, hint: Callable[[], Hint | None]) -> None:
        self._hint = hint
