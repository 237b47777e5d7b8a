"""One upstream: a default connection that keeps its lists, and a connection for every owner of state in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from gateway.config.logins import has_tokens_of_principals, is_told_who_calls, may_take_logins
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import UPDATED
from gateway.core.model.claims import CameWith, CameWithOf
from gateway.core.model.revisions import Era
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.policy.changed_tools import changed_tools
from gateway.errors import Failure, GatewayError, LoginRequired, UpstreamUnavailable
from gateway.upstream.attendance import Attendance
from gateway.upstream.authorization.caller_headers import caller_headers
from gateway.upstream.authorization.connection_tokens import NoTokens, PrincipalTokens, ToldWhoCalls
from gateway.upstream.authorization.ports import Logins, TokenSource, bare_url
from gateway.upstream.catalogues import Catalogues, RememberedLists
from gateway.upstream.connection.client_identity import ClientIdentity, identity_of
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.first_start import LaunchTurns, longest_start
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.sessions import Eras, Sessions
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.subscriptions import Subscriber, Subscriptions
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.connection.upstream_lists import KINDS, Lists, WireList
from gateway.upstream.principals import PrincipalUpstreams
from gateway.upstream.transports.failures import LoginChanged, Subject
from gateway.upstream.transports.redaction import Secrets

if TYPE_CHECKING:
    from gateway.upstream.recording.recorder import Recorder

logger = logging.getLogger(__name__)


class OnChange(Protocol):
    """Called with an upstream's name, what has changed, and the principal whom alone this concerns; None for everybody.

    What has changed is `tools`, `prompts`, `resources`, `state`, or `updated:<uri>` for one resource. `tools` are those
    of which one has to exist for whomever this concerns; None if that does not matter.
    """

    def __call__(
        self, upstream: str, kind: str, principal: str | None, tools: frozenset[ToolFacts] | None = None, /
    ) -> None: ...


_KINDS = 32
"""The number of kinds of hosts whose lists are kept: hosts can declare anything, so this needs a limit."""


ITSELF = "mcp-gateway itself"
"""The principal of requests of the gateway's own, such as for descriptions: it uses the operator's login."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def nobody_came(principal: str) -> CameWith | None:
    """Return None: there are no issuers."""
    return None


def nobody() -> Caller | None:
    """Return None: no host is expected, and the default connection uses the gateway's own identity."""
    return None


class Upstream:
    """One upstream server. `run` is its owner: the task that runs its connections, until `stop`.

    Its description and lists are those of the default connection, remembered while it is away and (from `catalogues`)
    before it is first connected. A host with other capabilities, and thus other lists, has a connection of its own; the
    lists of such a connection are kept for hosts of the same kind (`lists_for`).

    An upstream of which it is known that it wants a login (`is_personal`) has connections of `principal` alone; those
    of other principals are in upstreams of their own (`for_principal`), so that none gets what another one's login
    opens. Until that is known, all principals share connections that send no token of a login (`logins`).

    Each principal also has connections of its own to an upstream that is told who calls: `came_with` has the claims.

    `recorder` records what it answers.

    `expected` returns the host that is known in advance, as on stdio; the default connection is then opened for it.
    `attendance` has the connected hosts, which keep their sessions. `newer` are the revisions after the newest one that
    are spoken with it.
    """

    def __init__(
        self,
        name: str,
        settings: UpstreamSettings,
        *,
        on_change: OnChange,
        catalogues: Catalogues | None = None,
        expected: Callable[[], Caller | None] = nobody,
        attendance: Attendance | None = None,
        launches: LaunchTurns | None = None,
        asleep: bool = False,
        logins: Logins | None = None,
        principal: str = "local",
        is_personal: bool = False,
        came_with: CameWithOf = nobody_came,
        recorder: Recorder | None = None,
        newer: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.principal = principal
        has_own = is_told_who_calls(settings) or (logins is not None and has_tokens_of_principals(settings))
        self.is_personal = is_personal or has_own
        """Whether each principal needs a login of its own; once true, always true."""
        self._logins = logins
        self._came_with = came_with
        self._launches = launches or LaunchTurns()
        self._subject = Subject(name, settings, Secrets(settings), self._tokens(settings), newer)
        self._recorder = recorder
        self._on_change = on_change
        self._expected = expected
        self._catalogues = catalogues if settings.enabled and settings.replay is None else None
        self._others = PrincipalUpstreams(self._made_for, self._begin_other)
        self._runs_of_others: TaskGroup | None = None
        self._waits_for_login = False
        self._kept: RememberedLists | None = None
        self._unkept = anyio.Event()
        self._tasks: TaskGroup | None = None
        self._early: list[SupervisedConnection] = []
        """Connections that were requested before `run`."""
        self._lists: dict[tuple[Era, str], Lists] = {}
        self._shown: dict[str, RememberedLists] = {}
        """The lists that hosts were last shown, by their capabilities, to detect changes for them."""
        self._waited: dict[str, None] = {}
        """The kinds of hosts whose lists have been waited for, which happens once for each kind."""
        self._looked_for: dict[str, Caller] = {}
        """One caller for each kind of host whose lists are to be fetched."""
        self.eras = Eras()
        if settings.openapi is not None:
            self.eras.found("handshake", "modern")  # its server is the gateway's own
        self.default = self._connection(self._expected_identity, self._expected_era, is_default=True)
        if asleep and settings.enabled:
            self.default.status.begin(UpstreamState.SLEEPING, "it has not been needed yet")
        self._attendance = attendance or Attendance()
        self._subscribers: dict[Subscriber, None] = {}
        self._sessions = Sessions(self.default, self.eras, self._made, self._begin, self._end, self._attendance.has)
        self._recall()

    # -- state and description -----------------------------------------------------------------------------------------

    @property
    def settings(self) -> UpstreamSettings:
        """The upstream's settings."""
        return self._subject.settings

    @property
    def state(self) -> UpstreamState:
        """The state of the default connection."""
        return self.default.state

    @property
    def cause(self) -> str | None:
        """Why it is not ready, in words."""
        return self.default.cause

    @property
    def failure(self) -> Failure | None:
        """Why it is not ready, if something failed."""
        return self.default.failure

    @property
    def longest_start(self) -> float:
        """The maximum seconds until the outcome of a start is known."""
        return longest_start(self.settings)

    @property
    def is_queued(self) -> bool:
        """Whether its start waits for its turn, behind others with the same launcher."""
        return self.default.is_queued

    @property
    def waited(self) -> float:
        """Seconds that its last start waited for its turn, behind others with the same launcher."""
        return self.default.waited

    @property
    def counts(self) -> Counts:
        """The counters of calls and connections."""
        return self.default.counts

    @property
    def pid(self) -> int | None:
        """The process id of the default connection."""
        return self.default.pid

    @property
    def sessions(self) -> int:
        """The number of owners that have a session now."""
        return len(self._sessions)

    @property
    def opening(self) -> Opening:
        """The outcome of the last negotiation; all empty if there was none."""
        return self.default.opening or Opening("handshake", "")

    @property
    def era(self) -> Era | None:
        """The era of the default connection."""
        return self.default.era

    @property
    def revision(self) -> str | None:
        """The protocol revision of the default connection."""
        return self.opening.revision or None

    @property
    def server_info(self) -> dict[str, Any] | None:
        """The server's own name and version."""
        return self.opening.server_info

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's declared capabilities."""
        return self.opening.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models."""
        return self.opening.instructions

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each list that is too large to be offered completely."""
        return tuple(self.default.lists.left_out.values())

    @property
    def nested_too_deeply(self) -> tuple[str, ...]:
        """A sentence for each list that had something withheld because it nests too deeply for hosts."""
        return tuple(self._subject.nested.values())

    def tools(self, caller: Caller | None = None) -> WireList:
        """Return the last known tools, as received, for callers of this kind."""
        return self.lists_for(caller).tools

    def all_tools(self) -> frozenset[ToolFacts] | None:
        """Return the last known tools for callers of all kinds and of all principals; None if there are none."""
        connections = (self.default, *self._sessions.connections())
        lists = (*(connection.lists for connection in connections), *self._lists.values())
        found = [changed_tools(self.name, (), each.tools) for each in lists]
        found += [other.all_tools() for other in self._others]
        return frozenset[ToolFacts]().union(*(each for each in found if each is not None)) or None

    def prompts(self, caller: Caller | None = None) -> WireList:
        """Return the last known prompts, as received."""
        return self.lists_for(caller).prompts

    def resources(self, caller: Caller | None = None) -> WireList:
        """Return the last known resources, as received."""
        return self.lists_for(caller).resources

    def templates(self, caller: Caller | None = None) -> WireList:
        """Return the last known resource templates, as received."""
        return self.lists_for(caller).templates

    def lists_for(self, caller: Caller | None = None) -> Lists:
        """Return the lists for a caller: those of its own session, else those of a host of the same kind."""
        if caller is None:
            return self.default.lists
        if (other := self._other(caller)) is not None:
            return other.lists_for(caller)
        own = self._sessions.there(caller)
        if own is not None and own.has_listed:
            return own.lists
        return self._lists.get(self._kind(caller), self.default.lists)

    def listed_kind(self, caller: Caller) -> str | None:
        """Return the kind of hosts that `lists_for(caller)` was fetched for; None if it is only remembered so far."""
        if (other := self._other(caller)) is not None:
            return other.listed_kind(caller)
        mine = f"{self.principal} " if self.is_personal else ""  # each principal has lists of its own
        own, kind = self._sessions.there(caller), self._kind(caller)
        if kind in self._lists or (own is not None and own.has_listed):
            return mine + kind[1]
        return mine + self.default.identity.mark if self.default.has_listed else None

    def owner_for(self, caller: Caller) -> str | None:
        """Return the owner of the state that a caller's calls act on; None if nothing is kept for anybody."""
        return self._sessions.owner_for(caller)

    # -- principals ----------------------------------------------------------------------------------------------------

    def for_principal(self, principal: str) -> Upstream:
        """Return the upstream as it is for a principal: this one, unless each principal needs a login of its own."""
        if not self.is_personal or principal in (self.principal, ITSELF) or not self.settings.enabled:
            return self
        return self._others.of(principal)

    @property
    def principals(self) -> Iterator[Upstream]:
        """This upstream for its own principal, and those of the other principals that have used it lately."""
        yield self
        yield from self._others

    @property
    def is_busy(self) -> bool:
        """Whether a call is running, or anybody is subscribed to a resource."""
        return bool(self._subscribers) or any(connection.counts.running for connection in self._connections())

    def become_personal(self) -> None:
        """Give each principal connections of its own from now on, since the upstream wants a login."""
        if not self.is_personal and self._logins is not None:
            self._be_personal()
            self._unkept.set()
            self._end_sessions()  # others may be using them, and they send no token
            self.default.renew()

    def logged_in(self, principal: str) -> None:
        """Connect with the new login of a principal, whose sessions and lists may be another account's."""
        self.become_personal()
        upstream = self.for_principal(principal)
        upstream._end_sessions()
        upstream.default.renew()

    def logged_out(self, principal: str) -> None:
        """End all connections of a principal, and forget what they listed.

        Its calls that wait for their turn find out that the upstream waits for a login, as later ones do.
        """
        upstream = self if principal == self.principal else self._others.find(principal)
        if upstream is not None:
            upstream._forget_login()
        for kind in KINDS:
            self._on_change(self.name, kind, principal)

    def _forget_login(self) -> None:
        self._end_sessions()
        self.default.lists.take(RememberedLists())
        if self.default.opening is not None:
            self.default.opening = replace(self.default.opening, instructions=None)
        self._unkept.set()
        self.default.renew()

    def _be_personal(self) -> None:
        """Let connections that are opened from now on be those of one principal."""
        self.is_personal = True
        self._subject = replace(self._subject, tokens=self._tokens(self.settings))
        self.default.adopt(self._subject)

    def _end_sessions(self) -> None:
        """End the sessions of hosts because of another login, with what they listed.

        Their subscriptions move to the sessions that they have from now on: those of their principals.
        What the hosts were shown is kept, since they are to be notified if the next lists differ from it.
        """
        for connection in tuple(self._sessions.connections()):
            connection.stop(LoginChanged())
        self._sessions.clear()
        self._lists.clear()
        self._waited.clear()
        for subscriber in tuple(self._subscribers):
            subscriber.leave()
            with suppress(UpstreamUnavailable):
                self.for_principal(subscriber.caller.principal)._subscribed(subscriber)

    async def _look_for_logins(self) -> None:
        """Use logins that were given before, even if the upstream would do without."""
        if self._logins is None or self.is_personal or not may_take_logins(self.settings):
            return
        try:
            if await self._logins.principals(self.name):
                self._be_personal()
        except GatewayError as error:
            logger.warning("upstream %s: %s", self.name, error)

    def _tokens(self, settings: UpstreamSettings) -> TokenSource | None:
        tokens = self._tokens_of_logins(settings)
        return ToldWhoCalls(tokens, partial(self._says_who_calls, settings)) if is_told_who_calls(settings) else tokens

    def _says_who_calls(self, settings: UpstreamSettings) -> Mapping[str, str]:
        return caller_headers(self.name, settings, self.principal, self._came_with(self.principal))

    def _tokens_of_logins(self, settings: UpstreamSettings) -> TokenSource | None:
        if self._logins is None or settings.endpoint is None:
            return None
        if settings.auth is None and not may_take_logins(settings):  # it has other credentials
            return None
        mine = PrincipalTokens(self._logins, self.name, self.principal, bare_url(settings.endpoint))
        return mine if self.is_personal or not may_take_logins(settings) else NoTokens(mine, self.become_personal)

    def _made_for(self, principal: str) -> Upstream:
        return Upstream(
            self.name,
            self.settings,
            on_change=self._on_change,
            attendance=self._attendance,
            launches=self._launches,
            logins=self._logins,
            principal=principal,
            is_personal=True,
            came_with=self._came_with,
            recorder=self._recorder,
            newer=self._subject.newer,
        )

    def _begin_other(self, other: Upstream) -> None:
        if self.state is UpstreamState.STOPPED:
            other.stop()
        elif self._runs_of_others is not None:
            # As in `_begin`: it must not log as the call that it is made for.
            Context().run(partial(self._runs_of_others.start_soon, other.run, name=f"upstream {self.name}, another's"))

    def _other(self, caller: Caller | None) -> Upstream | None:
        """The upstream of the caller's principal, unless it is this one."""
        mine = self if caller is None else self.for_principal(caller.principal)
        return None if mine is self else mine

    # -- requests ------------------------------------------------------------------------------------------------------

    async def ready(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds while it is starting, and return whether it is ready."""
        return await self.default.ready(timeout)

    def unavailable(self) -> UpstreamUnavailable:
        """The error for a call while it is not connected."""
        return self.default.status.unavailable()

    def wake(self) -> None:
        """Connect to the upstream if it sleeps."""
        self.default.wake()

    async def prepare(self, caller: Caller, seconds: float = 0.0, *, hears: bool = True) -> None:
        """Fetch the lists for a host before they are requested, once for each kind of host.

        Wait for them once, at most `seconds`, if they are likely to differ from the known ones (the host declares
        other extensions) or if the host is not notified of changes (`hears` is false). Otherwise they are fetched in
        the background, and `on_change` is called if they differ. No session is closed to make room for that.
        """
        if (other := self._other(caller)) is not None:
            await other.prepare(caller, seconds, hears=hears)
            return
        kind = identity_of(caller).mark
        if not self.knows(caller):
            _keep(self._looked_for, kind, caller)
            self._look()
            if kind not in self._waited and (not hears or self._extends(caller)):
                with anyio.move_on_after(seconds):
                    await self._looked(caller, seconds)
                _keep(self._waited, kind, None)
        _keep(self._shown, kind, RememberedLists(**self.lists_for(caller).known()))

    def knows(self, caller: Caller) -> bool:
        """Whether the lists for hosts of this era, with these capabilities, are known."""
        kind = self._kind(caller)
        return kind in self._lists or kind == (self.default.era, self.default.identity.mark)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext | None = None,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]:
        """Send a request over the caller's own session, and return its raw result (`SupervisedConnection.request`).

        Without a `context`, the gateway sends the request on its own behalf. `timeout` replaces the upstream's limits.

        Raises UpstreamError as `SupervisedConnection.request` does, and UpstreamUnavailable if all sessions are in use.
        """
        caller = None if context is None else context.caller
        if (other := self._other(caller)) is not None:
            return await other.request(method, params, context, timeout)
        was_personal = self.is_personal
        connection, identity = self._served(caller)
        limits = timeout or self.settings.timeout
        try:
            if connection is self.default:
                return await connection.request(method, params, context, limits, identity)
            with self.counts.call(method):
                return await connection.request(method, params, context, limits, identity)
        except LoginChanged:
            logger.debug("upstream %s: its login has changed before %s was sent", self.name, method)
        except LoginRequired:
            if was_personal or not self.is_personal:
                raise
        # No login was used, or not that of the connection that is the caller's now.
        return await self.request(method, params, context, timeout)

    async def subscribe(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Report changes (`updated:<uri>`) of a resource in the caller's session. Return a function to unsubscribe."""
        if (other := self._other(caller)) is not None:
            return await other.subscribe(uri, caller)
        subscriber = Subscriber(uri, caller)
        subscriptions = self._subscribed(subscriber)
        try:
            await subscriptions.confirmed(uri)
        except BaseException:  # cancelled: nobody would end it
            subscriber.leave()
            raise
        return subscriber.leave

    def _subscribed(self, subscriber: Subscriber) -> Subscriptions:
        """Subscribe in the session of the subscriber, and return the subscriptions of that."""
        connection, _ = self._served(subscriber.caller)
        subscriber.join(connection.subscriptions, self._subscribers)
        return connection.subscriptions

    async def roots_changed(self, session: str) -> None:
        """Notify the upstream that a host's roots have changed."""
        for connection in self._sessions.of_session(session):
            await connection.notify("notifications/roots/list_changed")
        for other in self._others:
            await other.roots_changed(session)

    def left(self, session: str) -> None:
        """Release everything that belonged to a host's session after it has ended."""
        self._looked_for = {kind: caller for kind, caller in self._looked_for.items() if caller.session != session}
        self._sessions.left(session)
        for other in self._others:
            other.left(session)

    def moved(self, owner: str) -> None:
        """Release what belonged to an owner whose state another replica of the gateway has now."""
        self._sessions.moved(owner)
        for other in self._others:
            other.moved(owner)

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def inherit(self, predecessor: Upstream) -> None:
        """Replace a predecessor with other settings, and use its lists until this upstream is connected."""
        if predecessor.is_personal and predecessor.settings.endpoint == self.settings.endpoint:
            self._be_personal()
        if self.is_personal or not predecessor.is_personal:  # else the lists are one principal's
            self.default.lists.take(predecessor.default.lists)
        self.counts.follow(predecessor.counts)
        asked = predecessor.settings == self.settings
        self.default.starts_again = "somebody asked for it" if asked else "its settings have changed"

    def adopt(self, settings: UpstreamSettings) -> None:
        """Adopt settings whose only changes do not need a new connection (`tools`, `timeout`)."""
        self._subject = replace(self._subject, settings=settings)
        for connection in self._connections():
            connection.adopt(self._subject)
        for other in self._others:
            other.adopt(settings)

    async def run(self) -> None:
        """Keep the upstream connected and its catalogue saved until `stop`. Does nothing for a disabled upstream."""
        if not self.settings.enabled:
            return
        await self._look_for_logins()
        async with anyio.create_task_group() as background:
            background.start_soon(self._keep_catalogue)
            background.start_soon(self._sessions.expire)
            background.start_soon(self._others.expire, lambda: self.settings.session_idle)
            async with anyio.create_task_group() as self._runs_of_others:
                for other in self._others:
                    self._runs_of_others.start_soon(other.run)
                try:
                    async with anyio.create_task_group() as self._tasks:
                        for connection in self._early:
                            self._begin(connection)
                        await self.default.run()
                        self.stop()
                finally:
                    self._tasks = self._runs_of_others = None
            background.cancel_scope.cancel()

    def stop(self, because: Exception | None = None) -> None:
        """Ask all connections to end; running calls fail with `because`."""
        for connection in self._connections():
            connection.stop(because)
        for other in self._others:
            other.stop(because)

    async def quiet(self) -> None:
        """Wait until no call is running on any connection."""
        for connection in tuple(self._connections()):
            await connection.counts.quiet()
        for other in self._others:
            await other.quiet()

    def _connections(self) -> Iterator[SupervisedConnection]:
        yield self.default
        yield from self._sessions.connections()

    def _kind(self, caller: Caller) -> tuple[Era, str]:
        return self.eras.for_host(caller.era), identity_of(caller).mark

    def _extends(self, caller: Caller) -> bool:
        """Whether the host declares other extensions than the default connection is opened with."""
        # On stdio, the default connection is opened for the host itself, and changes of its lists are announced.
        return self._expected() is None and identity_of(caller).extensions != self.default.identity.extensions

    def _look(self) -> None:
        """Open sessions for the hosts whose lists are wanted, once the upstream is ready."""
        if self.state is not UpstreamState.READY:
            return
        wanted, self._looked_for = self._looked_for, {}
        for caller in wanted.values():
            if not self.knows(caller):
                with suppress(UpstreamUnavailable):
                    self._sessions.of(caller, displacing=False)

    async def _looked(self, caller: Caller, seconds: float) -> None:
        """Wait until the caller's own session is open or cannot be opened."""
        await self.default.ready(seconds)
        if (connection := self._sessions.there(caller)) is not None:
            await connection.ready(seconds)

    def _served(self, caller: Caller | None) -> tuple[SupervisedConnection, ClientIdentity | None]:
        return (self.default, None) if caller is None else self._sessions.of(caller)

    def _expected_identity(self) -> ClientIdentity:
        caller = self._expected()
        return ClientIdentity() if caller is None else identity_of(caller)

    def _expected_era(self) -> Era:
        """Return the era of the expected host, or else the cheapest one.

        A modern connection to a remote server is shared by all modern hosts. A process is started in the handshake era,
        which nearly all servers support: some older ones exit if the first message is not `initialize`.
        """
        caller = self._expected()
        usual: Era = "modern" if self.settings.endpoint else "handshake"
        return self.eras.for_host(usual if caller is None else caller.era)

    def _connection(
        self, identity: Callable[[], ClientIdentity], first: Callable[[], Era], *, is_default: bool
    ) -> SupervisedConnection:
        return SupervisedConnection(
            self._subject,
            identity=identity,
            first=first,
            on_event=self._happened,
            is_default=is_default,
            launches=self._launches,
            known=lambda: self.default.opening is not None,
            recorder=self._recorder,
        )

    def _made(self, identity: ClientIdentity, era: Era) -> SupervisedConnection:
        return self._connection(lambda: identity, lambda: self.eras.for_host(era), is_default=False)

    def _begin(self, connection: SupervisedConnection) -> None:
        if self.state in (UpstreamState.DISABLED, UpstreamState.STOPPED):
            raise self.unavailable()
        if self._tasks is None:
            self._early.append(connection)
        else:
            # In its own context: the connection outlives the call that it is made for, and must not log as that call.
            Context().run(partial(self._tasks.start_soon, connection.run, name=f"upstream {self.name}, a session"))

    def _end(self, connection: SupervisedConnection) -> None:
        connection.stop()
        for kind in [kind for kind, lists in self._lists.items() if lists is connection.lists]:
            del self._lists[kind]  # they are no longer kept up to date

    def _happened(
        self, connection: SupervisedConnection, event: str, tools: frozenset[ToolFacts] | None = None
    ) -> None:
        if event == "opened":
            self._opened(connection)
        elif event == "broken off":
            self.eras.broken_off(connection.tried)
        if connection is self.default:
            if event == "listed":
                self._unkept.set()
            if event == "state":
                self._look() if self.state is UpstreamState.READY else self._sessions.lost()
                if self._waits_for_login != (self.state is UpstreamState.LOGIN):
                    self._waits_for_login = not self._waits_for_login
                    self._on_change(self.name, "tools", None)  # those that may be offered to log in with
        elif event == "state" or (event in KINDS and not connection.has_listed):  # a first list is not a change
            return
        if event in ("opened", "listed", "broken off"):
            return
        if event.startswith(UPDATED):
            self._updated(connection, event)
        else:
            self._on_change(self.name, event, self._whom, tools)

    @property
    def _whom(self) -> str | None:
        """The principal whom a change of the lists concerns; None for everybody."""
        return self.principal if self.is_personal else None

    def _updated(self, connection: SupervisedConnection, event: str) -> None:
        """Report a changed resource to the principals that are subscribed on this connection: it is that of theirs."""
        here = (one for one in self._subscribers if one.is_on(connection.subscriptions))
        for principal in dict.fromkeys(subscriber.caller.principal for subscriber in here):
            self._on_change(self.name, event, principal)

    def _opened(self, connection: SupervisedConnection) -> None:
        opening = connection.opening
        assert opening is not None
        if self._kept is not None and self._kept.server_info != opening.server_info:
            self.eras.silent.clear()  # another version of the server may have another era
        self.eras.found(connection.tried, opening.era)
        self._sessions.opened(connection)
        if self.default.opening is not None:  # any connection may have found out the server's eras: save them
            self._unkept.set()
        if connection is not self.default:
            _keep(self._lists, (opening.era, connection.identity.mark), connection.lists)
            shown = self._shown.get(connection.identity.mark)
            for kind, tools in connection.lists.differing(shown).items() if shown is not None else ():
                self._on_change(self.name, kind, self._whom, tools)

    def _recall(self) -> None:
        """Load the catalogue saved by the last run of the gateway."""
        known = self._catalogues.recall(self.settings) if self._catalogues is not None else None
        if known is None or (known.is_personal and (self._logins is None or known.of != self._whose)):
            return
        self._kept = known
        if known.is_personal:
            self._be_personal()
        self.default.lists.take(known)
        self.eras.spoken.update(era for era in get_args(Era) if era in known.eras)
        self.eras.silent.update(era for era in get_args(Era) if era in known.silent)
        era: Era = "modern" if known.era == "modern" else "handshake"
        self.default.opening = Opening(
            era, known.revision or "", known.server_info, known.capabilities, known.instructions
        )

    @property
    def _whose(self) -> tuple[str, str]:
        """Whose lists those behind a login are: others may have this upstream's settings, too."""
        return self.principal, self.name

    async def _keep_catalogue(self) -> None:
        """Save the lists and the description for the next run of the gateway whenever they change."""
        if self._catalogues is None:
            return
        while True:
            await self._unkept.wait()
            self._unkept = anyio.Event()
            opening = self.opening
            now = RememberedLists(
                **self.default.lists.known(),
                era=opening.era,
                revision=opening.revision,
                server_info=opening.server_info,
                capabilities=opening.capabilities,
                instructions=opening.instructions,
                eras=tuple(sorted(self.eras.spoken)),
                silent=tuple(sorted(self.eras.silent)),
                is_personal=self.is_personal,
                of=self._whose if self.is_personal else None,
            )
            with anyio.CancelScope(shield=True):  # a short command ends as soon as it has its response
                await anyio.to_thread.run_sync(self._catalogues.keep, self.settings, now, now == self._kept)
            self._kept = now


def _keep(kept: dict[Key, Value], kind: Key, value: Value) -> None:
    """Keep a value for a kind of hosts. If there are too many kinds, the oldest one is removed."""
    if kind not in kept and len(kept) >= _KINDS:
        del kept[next(iter(kept))]
    kept[kind] = value
