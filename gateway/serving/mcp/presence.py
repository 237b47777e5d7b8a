"""Connected hosts: those of the handshake era by their connections, those of the modern era by recent requests."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from gateway.core.apps import shows_apps
from gateway.core.model.caller import Caller

PRESENCE_SECONDS = 300.0
"""Seconds for which a host of the modern era, which has no connection, counts as connected after a request."""

_MOST = 1_000


@dataclass
class ConnectedHost:
    """A connected host: its identity, its first and last request (seconds since 1970), and their number."""

    caller: Caller
    since: float
    last: float
    requests: int = 0


class Presence:
    """Tracks connected hosts by their requests. Bounded, because hosts choose their names and may never disconnect."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._connected: OrderedDict[Hashable, ConnectedHost] = OrderedDict()
        self._recent: OrderedDict[Hashable, ConnectedHost] = OrderedDict()

    def asked(self, caller: Caller, connection: Hashable = None, ending: AsyncExitStack | None = None) -> None:
        """Record a request, over a connection whose exit stack is `ending`, or without a connection."""
        if ending is None:
            self._saw(self._recent, _known_by(caller), caller)
        elif self._saw(self._connected, connection, caller):
            ending.callback(self._connected.pop, connection, None)

    def connected_hosts(self) -> list[ConnectedHost]:
        """The connected hosts, in order of arrival."""
        recent = self._clock() - PRESENCE_SECONDS
        for key in [key for key, host in self._recent.items() if host.last < recent]:
            del self._recent[key]
        return sorted((*self._connected.values(), *self._recent.values()), key=lambda host: host.since)

    def forget(self, is_gone: Callable[[Caller], bool]) -> None:
        """Forget the hosts of which `is_gone` is true, such as those whose token was removed."""
        for hosts in (self._connected, self._recent):
            for key in [key for key, host in hosts.items() if is_gone(host.caller)]:
                del hosts[key]

    def _saw(self, hosts: OrderedDict[Hashable, ConnectedHost], key: Hashable, caller: Caller) -> bool:
        """Record a request of a host, and return whether the host is new."""
        now = self._clock()
        host = hosts.get(key)
        is_new = host is None
        if host is None:
            host = hosts[key] = ConnectedHost(caller, now, now)
            if len(hosts) > _MOST:
                hosts.popitem(last=False)
        host.caller, host.last = caller, now
        host.requests += 1
        hosts.move_to_end(key)
        return is_new


def _known_by(caller: Caller) -> Hashable:
    return (
        caller.client_name,
        caller.client_version,
        caller.revision,
        caller.profile,
        caller.toolsets,
        caller.principal,
        shows_apps(caller.capabilities, "declared"),  # two programs of one name may differ in that
    )
