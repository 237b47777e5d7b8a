"""Which hosts are connected: those of the handshake era while their connection lives, the others while they ask."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from gateway.core.model.caller import Caller

STATELESS_SECONDS = 300.0
"""A host of the stateless era has no connection: it counts as connected for so long after it last asked."""

_MOST = 1_000


@dataclass
class ConnectedHost:
    """A host: who it says it is, since when it is there (seconds since 1970), and what it has asked."""

    caller: Caller
    since: float
    last: float
    requests: int = 0


class Presence:
    """Told of every request; bounded, since hosts name themselves and may never say goodbye."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._connected: OrderedDict[Hashable, ConnectedHost] = OrderedDict()
        self._stateless: OrderedDict[Hashable, ConnectedHost] = OrderedDict()

    def asked(self, caller: Caller, connection: Hashable = None, ending: AsyncExitStack | None = None) -> None:
        """A host has asked something, over a connection that `ending` is left with, or without one."""
        if ending is None:
            self._saw(self._stateless, _known_by(caller), caller)
        elif self._saw(self._connected, connection, caller):
            ending.callback(self._connected.pop, connection, None)

    def guests(self) -> list[ConnectedHost]:
        """The hosts that are connected, in the order in which they came."""
        recent = self._clock() - STATELESS_SECONDS
        for key in [key for key, guest in self._stateless.items() if guest.last < recent]:
            del self._stateless[key]
        return sorted((*self._connected.values(), *self._stateless.values()), key=lambda guest: guest.since)

    def _saw(self, guests: OrderedDict[Hashable, ConnectedHost], key: Hashable, caller: Caller) -> bool:
        """Whether it is a new one."""
        now = self._clock()
        guest = guests.get(key)
        is_new = guest is None
        if guest is None:
            guest = guests[key] = ConnectedHost(caller, now, now)
            if len(guests) > _MOST:
                guests.popitem(last=False)
        guest.caller, guest.last = caller, now
        guest.requests += 1
        guests.move_to_end(key)
        return is_new


def _known_by(caller: Caller) -> Hashable:
    return (caller.client_name, caller.client_version, caller.revision, caller.profile, caller.principal)
