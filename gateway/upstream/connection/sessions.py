"""The connections of one upstream by owner: each owner's state stays separate, and is kept for its next call."""

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
from gateway.upstream.connection.displacement import Seat, SeatUse, seat_to_give_up
from gateway.upstream.connection.owners import SHARED, client_of, host_of, owner_by_session, owner_of
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.transports.causes import Vacated

logger = logging.getLogger(__name__)

_MOST_HOSTS = 64
"""How many of the newest hosts of a slot are remembered: hosts of the modern era choose their own names."""

_LOOKS = 60.0
"""The maximum seconds between two searches for idle sessions."""


class Key(NamedTuple):
    """The key of a session: the owner of its state, the era, and the capabilities that its host declared."""

    owner: str
    era: Era
    capabilities: str


@dataclass(eq=False)
class SessionSlot:
    """A connection and its users: the last `principal` and its `client`, and the `hosts` that used it and have not
    left, in order.

    It is never inherited: the next host with the same name and token may be a different one.
    """

    connection: SupervisedConnection
    principal: str | None = None
    client: str | None = None
    hosts: dict[str, None] = field(default_factory=dict[str, None])

    def used_by(self, caller: Caller) -> None:
        """Record a request of the caller."""
        host = host_of(caller)
        self.principal, self.client = caller.principal, client_of(caller)
        self.hosts.pop(host, None)
        self.hosts[host] = None
        if len(self.hosts) > _MOST_HOSTS:
            del self.hosts[next(iter(self.hosts))]

    def displaced(self) -> SessionSlot:
        """Remove all users, and return the slot."""
        self.principal, self.client, self.hosts = None, None, {}
        return self


class Eras:
    """The eras that an upstream is known to speak or not to speak: found once, and remembered."""

    def __init__(self) -> None:
        self.spoken: set[Era] = set()
        self.silent: set[Era] = set()
        self._doubted: Era | None = None

    def found(self, wanted: Era, spoken: Era) -> None:
        """Record that `wanted` was tried first, and `spoken` was agreed on."""
        self.spoken.add(spoken)
        if wanted != spoken:
            self.silent.add(wanted)
        if self._doubted == "modern":  # some servers exit at an unknown request
            self.silent.add(self._doubted)
        self.silent.discard(spoken)
        self._doubted = None

    def broken_off(self, wanted: Era) -> None:
        """Record that a connection that tried `wanted` first failed: the next one tries the other era first."""
        self._doubted = None if wanted in self.spoken else wanted

    def for_host(self, era: Era) -> Era:
        """Return the era to speak for a host of `era`: the same, unless the upstream is known not to speak it."""
        other: Era = "handshake" if era == "modern" else "modern"
        return other if era in self.silent or era == self._doubted else era


class Sessions:
    """Finds or creates the connection for a caller: at most `max_sessions` of them.

    The default connection serves the first owner that it suits; it belongs to that owner as long as it stays connected,
    and is reconnected when the owner is gone. `end` is called for every other connection that no longer has an owner.

    Hosts leave without notice, and one principal may have many. So if there is no room for another owner, a session
    makes way (`displacement`): one that has no running call, and whose hosts have nothing open (`is_there`), or one of
    a principal that has more than its share.
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
        self._default = default
        self._eras = eras
        self._make = make
        self._begin = begin
        self._end = end
        self._is_there = is_there
        self._slots: dict[Key, SessionSlot] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def connections(self) -> Iterator[SupervisedConnection]:
        """Return the connections that have an owner, except the default one."""
        return (slot.connection for slot in tuple(self._slots.values()) if slot.connection is not self._default)

    def of(self, caller: Caller, *, displacing: bool = True) -> tuple[SupervisedConnection, ClientIdentity]:
        """Return the connection for this caller, and the identity to present on it.

        If there is no room for another, one makes way, provided that `displacing` permits it.

        Raises:
            UpstreamUnavailable: all sessions that the upstream may have are in use.
        """
        identity = identity_of(caller)
        key = self._key_of(caller, identity)
        slot = self._slots.get(key)
        if slot is None:
            connection = self._connection(key, identity, caller, displacing=displacing)
            slot = self._slots[key] = SessionSlot(connection)
        slot.used_by(caller)
        return slot.connection, identity

    def there(self, caller: Caller) -> SupervisedConnection | None:
        """Return the connection of this caller if it exists already."""
        slot = self._slots.get(self._key_of(caller, identity_of(caller)))
        return None if slot is None else slot.connection

    def owner_for(self, caller: Caller) -> str | None:
        """Return the owner of this caller's session; None if it is shared by all."""
        owner = self._key_of(caller, identity_of(caller)).owner
        return None if owner == SHARED else owner

    def left(self, session: str) -> None:
        """End the connections of a host's session that has ended."""
        owner = owner_by_session(session)
        self._end_those_of(owner, "the host that used it has left")
        for slot in self._slots.values():
            slot.hosts.pop(owner, None)

    def moved(self, owner: str) -> None:
        """End the connections of an owner whose state another replica of the gateway has now."""
        self._end_those_of(owner, "another replica of the gateway has the state of its owner")

    def clear(self) -> None:
        """Forget all owners. The default connection has none then, and the others are no longer used."""
        self._slots.clear()

    def of_session(self, session: str) -> list[SupervisedConnection]:
        """Return the connections that belong to a host's session."""
        owner = owner_by_session(session)
        return [slot.connection for key, slot in self._slots.items() if key.owner == owner]

    def opened(self, connection: SupervisedConnection) -> None:
        """Register a connection that has been opened under the era that it actually speaks.

        If its key is already taken, it loses its owner, but is kept for its running calls until it is idle.
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
        """Remove the owner of the default connection, which has been lost together with the owner's state.

        A running call keeps the owner: the next connection may be opened for that call.
        """
        if not self._default.is_idle:
            return
        for key in [key for key, slot in self._slots.items() if slot.connection is self._default]:
            del self._slots[key]

    async def expire(self) -> None:
        """Run forever, and end sessions that were not used for `session_idle` seconds."""
        while True:
            idle = self._default.settings.session_idle
            await anyio.sleep(min(_LOOKS, idle / 4))
            before = anyio.current_time() - idle
            for key, slot in tuple(self._slots.items()):
                connection = slot.connection
                if connection is self._default and key.owner == SHARED:
                    continue
                if connection.is_idle and not connection.subscriptions.uris and connection.last_use[0] < before:
                    logger.debug("upstream %s: a session idle for %g s is closed", connection.name, idle)
                    del self._slots[key]
                    self._vacate(connection, f"its host has not called it for {idle:g} s (session_idle)")

    def _key_of(self, caller: Caller, identity: ClientIdentity) -> Key:
        owner = owner_of(self._default.settings.session, caller)
        return self._key(owner, self._eras.for_host(caller.era), identity)

    def _key(self, owner: str, era: Era, identity: ClientIdentity) -> Key:
        """Return a key. A modern upstream gets the identity with each request; over HTTP it has no owned state."""
        if era == "modern" and "modern" in self._eras.spoken:
            remote = self._default.settings.endpoint is not None
            return Key(SHARED if remote else owner, era, "")
        return Key(owner, era, identity.mark)

    def _connection(
        self, key: Key, identity: ClientIdentity, caller: Caller, *, displacing: bool
    ) -> SupervisedConnection:
        if not self._is_free_for(key) and len(self._slots) >= self._default.settings.max_sessions:
            self._make_room(caller, displacing=displacing)
        if self._is_free_for(key):
            connection = self._default
        else:
            connection = self._make(identity, key.era)
            self._begin(connection)
        connection.last_use[0] = anyio.current_time()
        return connection

    def _is_free_for(self, key: Key) -> bool:
        """Whether the default connection has no owner, and suits the key."""
        default = self._default
        era, identity = default.prospect
        return (
            not any(slot.connection is default for slot in self._slots.values())
            and key == self._key(key.owner, era, identity)
            and default.state is not UpstreamState.DISABLED
        )

    def _end_those_of(self, owner: str, why: str) -> None:
        for key in [key for key in self._slots if key.owner == owner]:
            self._vacate(self._slots.pop(key).connection, why)

    def _vacate(self, connection: SupervisedConnection, why: str) -> None:
        """End a connection that no longer has an owner, so that nobody else gets its state."""
        if connection is self._default:
            connection.vacate(Vacated(why))
        else:
            self._end(connection)

    def _make_room(self, caller: Caller, *, displacing: bool) -> None:
        """Close the session that makes way for one of this caller (`displacement`)."""
        name, most = self._default.name, self._default.settings.max_sessions
        seats = {key: self._seat(key, slot) for key, slot in self._slots.items()} if displacing else {}
        key = seat_to_give_up(seats, caller.principal, client_of(caller))
        if key is None:
            raise UpstreamUnavailable(
                name,
                f"{'the one session' if most == 1 else f'all {most} sessions'} that it may have"
                f" {'is' if most == 1 else 'are'} in use (max_sessions)",
                remedy=f"try again later, or raise upstreams.{name}.max_sessions",
            )
        connection = self._slots.pop(key).connection
        idle = anyio.current_time() - connection.last_use[0]
        of = "" if seats[key].use is SeatUse.UNUSED else " of a principal with more than its share"
        logger.info("upstream %s: a session%s unused for %d s is closed to make room (max_sessions)", name, of, idle)
        why = "another host needed the session of the one that used it (max_sessions)"
        if not connection.is_idle:  # its suspended calls are to say why they have ended
            connection.vacate(Vacated(why))
        self._vacate(connection, why)

    def _seat(self, key: Key, slot: SessionSlot) -> Seat:
        return Seat(slot.principal, slot.client, self._use_of(key, slot), slot.connection.last_use[0])

    def _use_of(self, key: Key, slot: SessionSlot) -> SeatUse:
        connection = slot.connection
        if connection is self._default and key.owner == SHARED:
            return SeatUse.BUSY
        if not connection.is_idle:
            return SeatUse.SUSPENDED if connection.is_suspended else SeatUse.BUSY
        return SeatUse.ATTENDED if any(self._is_there(host) for host in slot.hosts) else SeatUse.UNUSED
