"""The connections of one upstream by owner: each owner's state stays its own, and is there for its next call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.errors import UpstreamUnavailable
from gateway.upstream.connection.client_identity import ClientIdentity, identity_of
from gateway.upstream.connection.owners import SHARED, client_of, host_of, owner_by_session, owner_of
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.supervised_connection import SupervisedConnection

logger = logging.getLogger(__name__)

_MOST_HOSTS = 64
"""How many hosts of a slot are kept in mind, the newest: hosts of the stateless era name themselves."""

_LOOKS = 60.0
"""The most seconds between two looks for sessions that nobody has used for long."""


class Key(NamedTuple):
    """What tells one session from another: the owner of its state, the era, and what its host declared."""

    owner: str
    era: Era
    capabilities: str


@dataclass(eq=False)
class SessionSlot:
    """A connection and who uses it: `client` is who did last, `hosts` are those who did and have not left, in order.

    Nobody inherits it: whoever comes next under the same name, with the same token, may be somebody else.
    """

    connection: SupervisedConnection
    client: str | None = None
    hosts: dict[str, None] = field(default_factory=dict[str, None])

    def used_by(self, caller: Caller) -> None:
        """A request of the caller is served here."""
        host = host_of(caller)
        self.client = client_of(caller)
        self.hosts.pop(host, None)
        self.hosts[host] = None
        if len(self.hosts) > _MOST_HOSTS:
            del self.hosts[next(iter(self.hosts))]

    def displaced(self) -> SessionSlot:
        """The same, when it is nobody's any more."""
        self.client, self.hosts = None, {}
        return self


class Eras:
    """Which eras an upstream is known to speak, and which not: found once, and kept."""

    def __init__(self) -> None:
        self.spoken: set[Era] = set()
        self.silent: set[Era] = set()
        self._doubted: Era | None = None

    def found(self, wanted: Era, spoken: Era) -> None:
        """`wanted` was tried first, and `spoken` was agreed on."""
        self.spoken.add(spoken)
        if wanted != spoken:
            self.silent.add(wanted)
        if self._doubted == "modern":  # some servers end at a question that they do not know
            self.silent.add(self._doubted)
        self.silent.discard(spoken)
        self._doubted = None

    def broken_off(self, wanted: Era) -> None:
        """Nothing came of a connection that tried `wanted` first: the next one tries the other era first."""
        self._doubted = None if wanted in self.spoken else wanted

    def for_host(self, era: Era) -> Era:
        """The era to speak for a host of `era`: the same, unless the upstream is known not to."""
        other: Era = "handshake" if era == "modern" else "modern"
        return other if era in self.silent or era == self._doubted else era


class Sessions:
    """Finds the connection for a caller, and makes it when there is none: at most `max_sessions` of them.

    The default connection serves the first owner whom it suits; it stays that one's for as long as its connection
    holds, and when the owner is gone, so is the connection. `end` is told of every other connection that has no owner
    any more.

    Hosts leave without a word. So where there is no room for another owner, a session makes way that no call runs on,
    and whose hosts have nothing open (`is_there`): the newcomer's own client's first, then the least recently used.
    """

    def __init__(
        self,
        default: SupervisedConnection,
        eras: Eras,
        make: Callable[[ClientIdentity, Era], SupervisedConnection],
        begin: Callable[[SupervisedConnection], None],
        end: Callable[[SupervisedConnection], None],
        is_there: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self._is_default = default
        self._eras = eras
        self._make = make
        self._begin = begin
        self._end = end
        self._is_there = is_there
        self._slots: dict[Key, SessionSlot] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def connections(self) -> Iterator[SupervisedConnection]:
        """The connections that are somebody's, the default one aside."""
        return (slot.connection for slot in tuple(self._slots.values()) if slot.connection is not self._is_default)

    def of(self, caller: Caller, *, displacing: bool = True) -> tuple[SupervisedConnection, ClientIdentity]:
        """The connection that serves this caller, and as whom it is to speak.

        Where there is no room for another, one that is not used makes way, if it may (`displacing`).

        Raises:
            UpstreamUnavailable: all sessions that the upstream may have are in use.
        """
        identity = identity_of(caller)
        key = self._key_of(caller, identity)
        slot = self._slots.get(key)
        if slot is None:
            connection = self._connection(key, identity, client_of(caller), displacing=displacing)
            slot = self._slots[key] = SessionSlot(connection)
        slot.used_by(caller)
        return slot.connection, identity

    def there(self, caller: Caller) -> SupervisedConnection | None:
        """The connection that serves this caller, if it has one already."""
        slot = self._slots.get(self._key_of(caller, identity_of(caller)))
        return None if slot is None else slot.connection

    def left(self, session: str) -> None:
        """A host's session has ended, and with it what was its own."""
        owner = owner_by_session(session)
        for key in [key for key in self._slots if key.owner == owner]:
            self._vacate(self._slots.pop(key).connection)
        for slot in self._slots.values():
            slot.hosts.pop(owner, None)

    def of_session(self, session: str) -> list[SupervisedConnection]:
        """The connections that belong to a host's session."""
        owner = owner_by_session(session)
        return [slot.connection for key, slot in self._slots.items() if key.owner == owner]

    def opened(self, connection: SupervisedConnection) -> None:
        """A connection has been connected: it is entered under the era that is really spoken on it.

        One whose place is taken is nobody's any more: it is kept for the calls that run on it, until it is idle.
        """
        assert connection.era is not None
        for key in [key for key, slot in self._slots.items() if slot.connection is connection]:
            place = self._key(key.owner, connection.era, connection.identity)
            if place != key:
                slot = self._slots.pop(key)
                if place in self._slots:
                    slot, place = slot.displaced(), place._replace(owner=f"nobody {id(connection)}")
                self._slots[place] = slot

    def lost(self) -> None:
        """The connection of the default connection is gone, and with it whatever state somebody had there.

        Who is calling has the next one: his call may be what it is opened for.
        """
        if not self._is_default.is_idle:
            return
        for key in [key for key, slot in self._slots.items() if slot.connection is self._is_default]:
            del self._slots[key]

    async def expire(self) -> None:
        """End the sessions that nobody has used for `session_idle` seconds, for as long as this runs."""
        while True:
            idle = self._is_default.settings.session_idle
            await anyio.sleep(min(_LOOKS, idle / 4))
            before = anyio.current_time() - idle
            for key, slot in tuple(self._slots.items()):
                connection = slot.connection
                if connection is self._is_default and key.owner == SHARED:
                    continue
                if connection.is_idle and not connection.subscriptions.uris and connection.last_use[0] < before:
                    logger.debug("upstream %s: a session idle for %g s is closed", connection.name, idle)
                    del self._slots[key]
                    self._vacate(connection)

    def _key_of(self, caller: Caller, identity: ClientIdentity) -> Key:
        owner = owner_of(self._is_default.settings.session, caller)
        return self._key(owner, self._eras.for_host(caller.era), identity)

    def _key(self, owner: str, era: Era, identity: ClientIdentity) -> Key:
        """A stateless upstream is told with each request who asks; over HTTP it has nothing that could be owned."""
        if era == "modern" and "modern" in self._eras.spoken:
            remote = self._is_default.settings.url is not None
            return Key(SHARED if remote else owner, era, "")
        return Key(owner, era, identity.mark)

    def _connection(self, key: Key, identity: ClientIdentity, client: str, *, displacing: bool) -> SupervisedConnection:
        if not self._is_free_for(key) and len(self._slots) >= self._is_default.settings.max_sessions:
            self._make_room(client, displacing=displacing)
        if self._is_free_for(key):
            connection = self._is_default
        else:
            connection = self._make(identity, key.era)
            self._begin(connection)
        connection.last_use[0] = anyio.current_time()
        return connection

    def _is_free_for(self, key: Key) -> bool:
        """Whether the default connection is nobody's, and suits."""
        default = self._is_default
        era, identity = default.prospect
        return (
            not any(slot.connection is default for slot in self._slots.values())
            and key == self._key(key.owner, era, identity)
            and default.state is not UpstreamState.DISABLED
        )

    def _vacate(self, connection: SupervisedConnection) -> None:
        """A connection has no owner any more: nobody else may meet what he left there."""
        if connection is self._is_default:
            connection.vacate()
        else:
            self._end(connection)

    def _make_room(self, client: str, *, displacing: bool) -> None:
        """Close a session that nobody uses: one that is nobody's, else one of the client's, else the longest unused."""
        name, most = self._is_default.name, self._is_default.settings.max_sessions
        unused = [key for key, slot in self._slots.items() if self._is_unused(key, slot)] if displacing else []
        if not unused:
            raise UpstreamUnavailable(
                name,
                f"{'the one session' if most == 1 else f'all {most} sessions'} that it may have"
                f" {'is' if most == 1 else 'are'} in use (max_sessions)",
                remedy=f"try again later, or raise upstreams.{name}.max_sessions",
            )

        def rank(key: Key) -> tuple[bool, bool, float]:
            slot = self._slots[key]
            return slot.client is not None, slot.client != client, slot.connection.last_use[0]

        slot = self._slots.pop(min(unused, key=rank))
        idle = anyio.current_time() - slot.connection.last_use[0]
        logger.info("upstream %s: a session unused for %d s makes way for another (max_sessions)", name, idle)
        self._vacate(slot.connection)

    def _is_unused(self, key: Key, slot: SessionSlot) -> bool:
        """Whether no call runs, and none of its hosts has anything open that it could still be waiting on."""
        if slot.connection is self._is_default and key.owner == SHARED:
            return False
        return slot.connection.is_idle and not any(self._is_there(host) for host in slot.hosts)
