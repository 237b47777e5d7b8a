"""One upstream: a default connection that keeps its lists, and a connection for every owner of state in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from anyio.abc import TaskGroup

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import UPDATED
from gateway.core.model.claims import CameWithOf
from gateway.core.model.revisions import Era
from gateway.core.model.tool_facts import ToolFacts
from gateway.core.policy.changed_tools import changed_tools
from gateway.errors import LoginRequired, UpstreamUnavailable
from gateway.upstream.attendance import Attendance
from gateway.upstream.authorization.ports import Logins, TokenSource
from gateway.upstream.authorization.principal_access import PrincipalAccess, nobody_came
from gateway.upstream.catalogues import Catalogues, RememberedLists
from gateway.upstream.connection.client_identity import ClientIdentity, identity_of
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.first_start import LaunchTurns
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.sessions import Eras, Sessions
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.subscriptions import Subscriber, Subscriptions
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.connection.upstream_lists import KINDS, Lists
from gateway.upstream.description import DescribedUpstream
from gateway.upstream.host_lists import HostLists
from gateway.upstream.kept_catalogue import KeptCatalogue
from gateway.upstream.principals import PrincipalUpstreams
from gateway.upstream.transports.causes import LoginChanged
from gateway.upstream.transports.failures import Subject
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


ITSELF = "mcp-gateway itself"
"""The principal of requests of the gateway's own, such as for descriptions: it uses the operator's login."""


def nobody() -> Caller | None:
    """Return None: no host is expected, and the default connection uses the gateway's own identity."""
    return None


class Upstream(DescribedUpstream):
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
        self.principal = principal
        self._access = PrincipalAccess(name, principal, logins, came_with)
        self.is_personal = is_personal or self._access.is_always_personal(settings)
        """Whether each principal needs a login of its own; once true, always true."""
        self._launches = launches or LaunchTurns()
        self._subject = Subject(name, settings, Secrets(settings), self._tokens(settings), newer)
        self._recorder = recorder
        self._on_change = on_change
        self._expected = expected
        self._others = PrincipalUpstreams(self._made_for, self._begin_other)
        self._runs_of_others: TaskGroup | None = None
        self._waits_for_login = False
        self._tasks: TaskGroup | None = None
        self._early: list[SupervisedConnection] = []
        """Connections that were requested before `run`."""
        self.eras = Eras()
        if settings.openapi is not None:
            self.eras.found("handshake", "modern")  # its server is the gateway's own
        super().__init__(name, self._connection(self._expected_identity, self._expected_era, is_default=True))
        if asleep and settings.enabled:
            self.default.status.begin(UpstreamState.SLEEPING, "it has not been needed yet")
        self._attendance = attendance or Attendance()
        self._subscribers: dict[Subscriber, None] = {}
        self._sessions = Sessions(self.default, self.eras, self._made, self._begin, self._end, self._attendance.has)
        self._lists = HostLists(self.default, self._sessions, self.eras, lambda: self._expected() is None)
        is_kept = settings.enabled and settings.replay is None
        self._catalogue = KeptCatalogue(catalogues if is_kept else None, self.default, self.eras)
        if self._catalogue.recall(None if logins is None else (principal, name)):
            self._be_personal()

    # -- lists ---------------------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> int:
        """The number of owners that have a session now."""
        return len(self._sessions)

    def all_tools(self) -> frozenset[ToolFacts] | None:
        """Return the last known tools for callers of all kinds and of all principals; None if there are none."""
        connections = (self.default, *self._sessions.connections())
        lists = (*(connection.lists for connection in connections), *self._lists)
        found = [changed_tools(self.name, (), each.tools) for each in lists]
        found += [other.all_tools() for other in self._others]
        return frozenset[ToolFacts]().union(*(each for each in found if each is not None)) or None

    def lists_for(self, caller: Caller | None = None) -> Lists:
        """Return the lists for a caller: those of its own session, else those of a host of the same kind."""
        if caller is None:
            return self.default.lists
        if (other := self._other(caller)) is not None:
            return other.lists_for(caller)
        return self._lists.lists_for(caller)

    def listed_kind(self, caller: Caller) -> str | None:
        """Return the kind of hosts that `lists_for(caller)` was fetched for; None if it is only remembered so far."""
        if (other := self._other(caller)) is not None:
            return other.listed_kind(caller)
        kind = self._lists.listed_kind(caller)
        # Each principal has lists of its own.
        return f"{self.principal} {kind}" if self.is_personal and kind is not None else kind

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
        if not self.is_personal and self._access.logins is not None:
            self._be_personal()
            self._catalogue.changed()
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
        self._catalogue.changed()
        self.default.renew()

    def _be_personal(self) -> None:
        """Let connections that are opened from now on be those of one principal."""
        self.is_personal = True
        self._subject = replace(self._subject, tokens=self._tokens(self.settings))
        self.default.adopt(self._subject)

    def _end_sessions(self) -> None:
        """End the sessions of hosts because of another login, with what they listed.

        Their subscriptions move to the sessions that they have from now on: those of their principals.
        """
        for connection in tuple(self._sessions.connections()):
            connection.stop(LoginChanged())
        self._sessions.clear()
        self._lists.clear()
        for subscriber in tuple(self._subscribers):
            subscriber.leave()
            with suppress(UpstreamUnavailable):
                self.for_principal(subscriber.caller.principal)._subscribed(subscriber)

    def _tokens(self, settings: UpstreamSettings) -> TokenSource | None:
        return self._access.tokens(settings, is_personal=self.is_personal, on_wanted=self.become_personal)

    def _made_for(self, principal: str) -> Upstream:
        return Upstream(
            self.name,
            self.settings,
            on_change=self._on_change,
            attendance=self._attendance,
            launches=self._launches,
            logins=self._access.logins,
            principal=principal,
            is_personal=True,
            came_with=self._access.came_with,
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
        await self._lists.prepare(caller, seconds, hears=hears)

    def knows(self, caller: Caller) -> bool:
        """Whether the lists for hosts of this era, with these capabilities, are known."""
        return self._lists.knows(caller)

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
        self._lists.left(session)
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
        if not self.is_personal and await self._access.has_logins(self.settings):
            self._be_personal()
        async with anyio.create_task_group() as background:
            background.start_soon(self._catalogue.keep, self._owner)
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
        usual: Era = "modern" if self._subject.settings.endpoint else "handshake"
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
        self._lists.ended(connection)

    def _happened(
        self, connection: SupervisedConnection, event: str, tools: frozenset[ToolFacts] | None = None
    ) -> None:
        if event == "opened":
            self._opened(connection)
        elif event == "broken off":
            self.eras.broken_off(connection.tried)
        if connection is self.default:
            if event == "listed":
                self._catalogue.changed()
            if event == "state":
                self._lists.look() if self.state is UpstreamState.READY else self._sessions.lost()
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
        if not self._catalogue.describes(opening):
            self.eras.silent.clear()  # another version of the server may have another era
        self.eras.found(connection.tried, opening.era)
        self._sessions.opened(connection)
        if self.default.opening is not None:  # any connection may have found out the server's eras: save them
            self._catalogue.changed()
        if connection is not self.default:
            for kind, tools in self._lists.opened(opening.era, connection).items():
                self._on_change(self.name, kind, self._whom, tools)

    def _owner(self) -> tuple[str, str] | None:
        """Whose lists those of the default connection are; None if they are everybody's."""
        return (self.principal, self.name) if self.is_personal else None
