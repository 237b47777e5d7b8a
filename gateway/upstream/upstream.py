"""One upstream: a default connection that keeps its lists, and a connection for every owner of state in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, get_args

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from gateway.config.schema import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.errors import Failure, UpstreamUnavailable
from gateway.upstream.attendance import Attendance
from gateway.upstream.catalogues import Catalogues, RememberedLists
from gateway.upstream.connection.client_identity import ClientIdentity, identity_of
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.first_start import LaunchTurns, longest_start
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.sessions import Eras, Sessions
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.connection.upstream_lists import KINDS, Lists, WireList
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.redaction import Secrets

OnChange = Callable[[str, str], None]
"""Called with an upstream's name and what has changed: `tools`, `prompts`, `resources`, `state`, or `updated:<uri>`
for one resource.
"""


_KINDS = 32
"""The number of kinds of hosts whose lists are kept: hosts can declare anything, so this needs a limit."""


Key = TypeVar("Key")
Value = TypeVar("Value")


def nobody() -> Caller | None:
    """Return None: no host is expected, and the default connection uses the gateway's own identity."""
    return None


class Upstream:
    """One upstream server. `run` is its owner: the task that runs its connections, until `stop`.

    Its description and lists are those of the default connection, remembered while it is away and (from `catalogues`)
    before it is first connected. A host with other capabilities, and thus other lists, has a connection of its own; the
    lists of such a connection are kept for hosts of the same kind (`lists_for`).

    `expected` returns the host that is known in advance, as on stdio; the default connection is then opened for it.
    `attendance` has the connected hosts, which keep their sessions.
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
    ) -> None:
        self.name = name
        self._launches = launches or LaunchTurns()
        self._subject = Subject(name, settings, Secrets(settings))
        self._on_change = on_change
        self._expected = expected
        self._catalogues = catalogues if settings.enabled else None
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
        self.default = self._connection(self._expected_identity, self._expected_era, is_default=True)
        if asleep and settings.enabled:
            self.default.status.begin(UpstreamState.SLEEPING, "it has not been needed yet")
        is_there = (attendance or Attendance()).has
        self._sessions = Sessions(self.default, self.eras, self._made, self._begin, self._end, is_there)
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

    def tools(self, caller: Caller | None = None) -> WireList:
        """Return the last known tools, as received, for callers of this kind."""
        return self.lists_for(caller).tools

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
        own = self._sessions.there(caller)
        if own is not None and own.has_listed:
            return own.lists
        return self._lists.get(self._kind(caller), self.default.lists)

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
        connection, identity = self._served(None if context is None else context.caller)
        limits = timeout or self.settings.timeout
        if connection is self.default:
            return await connection.request(method, params, context, limits, identity)
        with self.counts.call():
            return await connection.request(method, params, context, limits, identity)

    async def subscribe(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Report changes (`updated:<uri>`) of a resource in the caller's session. Return a function to unsubscribe."""
        connection, _ = self._served(caller)
        await connection.subscriptions.add(uri)
        return partial(connection.subscriptions.remove, uri)

    async def roots_changed(self, session: str) -> None:
        """Notify the upstream that a host's roots have changed."""
        for connection in self._sessions.of_session(session):
            await connection.notify("notifications/roots/list_changed")

    def left(self, session: str) -> None:
        """Release everything that belonged to a host's session after it has ended."""
        self._looked_for = {kind: caller for kind, caller in self._looked_for.items() if caller.session != session}
        self._sessions.left(session)

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def inherit(self, predecessor: Upstream) -> None:
        """Replace a predecessor with other settings, and use its lists until this upstream is connected."""
        self.default.lists.take(predecessor.default.lists)
        self.counts.follow(predecessor.counts)

    def adopt(self, settings: UpstreamSettings) -> None:
        """Adopt settings whose only changes do not need a new connection (`tools`, `timeout`)."""
        self._subject = Subject(self.name, settings, self._subject.secrets)
        for connection in self._connections():
            connection.adopt(self._subject)

    async def run(self) -> None:
        """Keep the upstream connected and its catalogue saved until `stop`. Does nothing for a disabled upstream."""
        if not self.settings.enabled:
            return
        async with anyio.create_task_group() as background:
            background.start_soon(self._keep_catalogue)
            background.start_soon(self._sessions.expire)
            try:
                async with anyio.create_task_group() as self._tasks:
                    for connection in self._early:
                        self._begin(connection)
                    await self.default.run()
                    self.stop()
            finally:
                self._tasks = None
            background.cancel_scope.cancel()

    def stop(self, because: Exception | None = None) -> None:
        """Ask all connections to end; running calls fail with `because`."""
        for connection in self._connections():
            connection.stop(because)

    async def quiet(self) -> None:
        """Wait until no call is running on any connection."""
        for connection in tuple(self._connections()):
            await connection.counts.quiet()

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
        return self.eras.for_host(caller.era if caller is not None else "modern" if self.settings.url else "handshake")

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

    def _happened(self, connection: SupervisedConnection, event: str) -> None:
        if event == "opened":
            self._opened(connection)
        elif event == "broken off":
            self.eras.broken_off(connection.tried)
        if connection is self.default:
            if event == "listed":
                self._unkept.set()
            if event == "state":
                self._look() if self.state is UpstreamState.READY else self._sessions.lost()
        elif event == "state" or (event in KINDS and not connection.has_listed):  # a first list is not a change
            return
        if event in ("opened", "listed", "broken off"):
            return
        self._on_change(self.name, event)

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
            for kind in connection.lists.differing(shown) if shown is not None else ():
                self._on_change(self.name, kind)

    def _recall(self) -> None:
        """Load the catalogue saved by the last run of the gateway."""
        known = self._catalogues.recall(self.settings) if self._catalogues is not None else None
        if known is None:
            return
        self._kept = known
        self.default.lists.take(known)
        self.eras.spoken.update(era for era in get_args(Era) if era in known.eras)
        self.eras.silent.update(era for era in get_args(Era) if era in known.silent)
        era: Era = "modern" if known.era == "modern" else "handshake"
        self.default.opening = Opening(
            era, known.revision or "", known.server_info, known.capabilities, known.instructions
        )

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
            )
            with anyio.CancelScope(shield=True):  # a short command ends as soon as it has its response
                await anyio.to_thread.run_sync(self._catalogues.keep, self.settings, now, now == self._kept)
            self._kept = now


def _keep(kept: dict[Key, Value], kind: Key, value: Value) -> None:
    """Keep a value for a kind of hosts. If there are too many kinds, the oldest one is removed."""
    if kind not in kept and len(kept) >= _KINDS:
        del kept[next(iter(kept))]
    kept[kind] = value
