"""Lists for kinds of hosts: an upstream may list other tools to hosts that declare other capabilities."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

import anyio

from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.core.model.tool_facts import ToolFacts
from gateway.errors import UpstreamUnavailable
from gateway.upstream.catalogues import RememberedLists
from gateway.upstream.connection.client_identity import identity_of
from gateway.upstream.connection.sessions import Eras, Sessions
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.connection.upstream_lists import Lists

_KINDS = 32
"""The number of kinds of hosts whose lists are kept: hosts can declare anything, so this needs a limit."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class HostLists:
    """The lists of one upstream, for its own principal.

    `is_shared` says whether the default connection is opened for no host in particular.
    """

    def __init__(
        self, default: SupervisedConnection, sessions: Sessions, eras: Eras, is_shared: Callable[[], bool]
    ) -> None:
        self._default = default
        self._sessions = sessions
        self._eras = eras
        self._is_shared = is_shared
        self._lists: dict[tuple[Era, str], Lists] = {}
        self._shown: dict[str, RememberedLists] = {}
        """The lists that hosts were last shown, by their capabilities, to detect changes for them."""
        self._waited: dict[str, None] = {}
        """The kinds of hosts whose lists have been waited for, which happens once for each kind."""
        self._looked_for: dict[str, Caller] = {}
        """One caller for each kind of host whose lists are to be fetched."""

    def __iter__(self) -> Iterator[Lists]:
        return iter(self._lists.values())

    def lists_for(self, caller: Caller) -> Lists:
        """Return the lists for a caller: those of its own session, else those of a host of the same kind."""
        own = self._sessions.there(caller)
        if own is not None and own.has_listed:
            return own.lists
        return self._lists.get(self._kind(caller), self._default.lists)

    def listed_kind(self, caller: Caller) -> str | None:
        """Return the kind of hosts that `lists_for(caller)` was fetched for; None if it is only remembered so far."""
        own, kind = self._sessions.there(caller), self._kind(caller)
        if kind in self._lists or (own is not None and own.has_listed):
            return kind[1]
        return self._default.identity.mark if self._default.has_listed else None

    def knows(self, caller: Caller) -> bool:
        """Whether the lists for hosts of this era, with these capabilities, are known."""
        kind = self._kind(caller)
        return kind in self._lists or kind == (self._default.era, self._default.identity.mark)

    async def prepare(self, caller: Caller, seconds: float, *, hears: bool) -> None:
        """Fetch the lists for a host (`gateway.upstream.upstream.Upstream.prepare`)."""
        kind = identity_of(caller).mark
        if not self.knows(caller):
            _keep(self._looked_for, kind, caller)
            self.look()
            if kind not in self._waited and (not hears or self._extends(caller)):
                with anyio.move_on_after(seconds):
                    await self._looked(caller, seconds)
                _keep(self._waited, kind, None)
        _keep(self._shown, kind, RememberedLists(**self.lists_for(caller).known()))

    def look(self) -> None:
        """Open sessions for the hosts whose lists are wanted, once the upstream is ready."""
        if self._default.state is not UpstreamState.READY:
            return
        wanted, self._looked_for = self._looked_for, {}
        for caller in wanted.values():
            if not self.knows(caller):
                with suppress(UpstreamUnavailable):
                    self._sessions.of(caller, displacing=False)

    def opened(self, era: Era, connection: SupervisedConnection) -> Mapping[str, frozenset[ToolFacts] | None]:
        """Keep the lists of a session that was opened, and return which differ from those that its hosts were shown."""
        _keep(self._lists, (era, connection.identity.mark), connection.lists)
        shown = self._shown.get(connection.identity.mark)
        return connection.lists.differing(shown) if shown is not None else {}

    def ended(self, connection: SupervisedConnection) -> None:
        """Forget the lists of a session, which are no longer kept up to date."""
        for kind in [kind for kind, lists in self._lists.items() if lists is connection.lists]:
            del self._lists[kind]

    def left(self, session: str) -> None:
        """Fetch nothing for a host's session that has ended."""
        self._looked_for = {kind: caller for kind, caller in self._looked_for.items() if caller.session != session}

    def clear(self) -> None:
        """Forget what was listed, but not what hosts were shown: they are to be notified if the next lists differ."""
        self._lists.clear()
        self._waited.clear()

    def _kind(self, caller: Caller) -> tuple[Era, str]:
        return self._eras.for_host(caller.era), identity_of(caller).mark

    def _extends(self, caller: Caller) -> bool:
        """Whether the host declares other extensions than the default connection is opened with."""
        # On stdio, the default connection is opened for the host itself, and changes of its lists are announced.
        return self._is_shared() and identity_of(caller).extensions != self._default.identity.extensions

    async def _looked(self, caller: Caller, seconds: float) -> None:
        """Wait until the caller's own session is open or cannot be opened."""
        await self._default.ready(seconds)
        if (connection := self._sessions.there(caller)) is not None:
            await connection.ready(seconds)


def _keep(kept: dict[Key, Value], kind: Key, value: Value) -> None:
    """Keep a value for a kind of hosts. If there are too many kinds, the oldest one is removed."""
    if kind not in kept and len(kept) >= _KINDS:
        del kept[next(iter(kept))]
    kept[kind] = value
