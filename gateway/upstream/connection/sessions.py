"""The links of one upstream by whom they belong to: each owner's state stays its own, and there for its next call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.errors import UpstreamUnavailable
from gateway.upstream.connection.guise import Guise, guise_of
from gateway.upstream.connection.link import Link
from gateway.upstream.connection.owners import SHARED, client_of, host_of, owner_by_session, owner_of
from gateway.upstream.connection.states import UpstreamState

logger = logging.getLogger(__name__)

_MOST_HOSTS = 64
"""How many hosts of a seat are kept in mind, the newest: hosts of the stateless era name themselves."""

_LOOKS = 60.0
"""The most seconds between two looks for sessions that nobody has used for long."""


class Key(NamedTuple):
    """What tells one session from another: the owner of its state, the era, and what its host declared."""

    owner: str
    era: Era
    capabilities: str


@dataclass(eq=False)
class Seat:
    """A link and who uses it: `client` is who did last, `hosts` are those who did and have not left, the last one last.

    Nobody inherits it: whoever comes next under the same name, with the same token, may be somebody else.
    """

    link: Link
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

    def displaced(self) -> Seat:
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
    """Finds the link for a caller, and makes it when there is none: at most `max_sessions` of them.

    The standing link serves the first owner whom it suits; it stays that one's for as long as its connection holds, and
    when the owner is gone, so is the connection. `end` is told of every other link that has no owner any more.

    Hosts leave without a word. So where there is no room for another owner, a session makes way that no call runs on,
    and whose hosts have nothing open (`is_there`): the newcomer's own client's first, then the least recently used.
    """

    def __init__(
        self,
        standing: Link,
        eras: Eras,
        make: Callable[[Guise, Era], Link],
        begin: Callable[[Link], None],
        end: Callable[[Link], None],
        is_there: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self._standing = standing
        self._eras = eras
        self._make = make
        self._begin = begin
        self._end = end
        self._is_there = is_there
        self._seats: dict[Key, Seat] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def links(self) -> Iterator[Link]:
        """The links that are somebody's, the standing one aside."""
        return (seat.link for seat in tuple(self._seats.values()) if seat.link is not self._standing)

    def of(self, caller: Caller, *, displacing: bool = True) -> tuple[Link, Guise]:
        """The link that serves this caller, and as whom it is to speak.

        Where there is no room for another, one that is not used makes way, if it may (`displacing`).

        Raises:
            UpstreamUnavailable: all sessions that the upstream may have are in use.
        """
        guise = guise_of(caller)
        key = self._key_of(caller, guise)
        seat = self._seats.get(key)
        if seat is None:
            seat = self._seats[key] = Seat(self._link(key, guise, client_of(caller), displacing=displacing))
        seat.used_by(caller)
        return seat.link, guise

    def there(self, caller: Caller) -> Link | None:
        """The link that serves this caller, if it has one already."""
        seat = self._seats.get(self._key_of(caller, guise_of(caller)))
        return None if seat is None else seat.link

    def left(self, session: str) -> None:
        """A host's session has ended, and with it what was its own."""
        owner = owner_by_session(session)
        for key in [key for key in self._seats if key.owner == owner]:
            self._vacate(self._seats.pop(key).link)
        for seat in self._seats.values():
            seat.hosts.pop(owner, None)

    def of_session(self, session: str) -> list[Link]:
        """The links that belong to a host's session."""
        owner = owner_by_session(session)
        return [seat.link for key, seat in self._seats.items() if key.owner == owner]

    def opened(self, link: Link) -> None:
        """A link has been connected: it is entered under the era that is really spoken on it.

        One whose place is taken is nobody's any more: it is kept for the calls that run on it, until it is idle.
        """
        assert link.era is not None
        for key in [key for key, seat in self._seats.items() if seat.link is link]:
            place = self._key(key.owner, link.era, link.guise)
            if place != key:
                seat = self._seats.pop(key)
                if place in self._seats:
                    seat, place = seat.displaced(), place._replace(owner=f"nobody {id(link)}")
                self._seats[place] = seat

    def lost(self) -> None:
        """The connection of the standing link is gone, and with it whatever state somebody had there.

        Who is calling has the next one: his call may be what it is opened for.
        """
        if not self._standing.is_idle:
            return
        for key in [key for key, seat in self._seats.items() if seat.link is self._standing]:
            del self._seats[key]

    async def expire(self) -> None:
        """End the sessions that nobody has used for `session_idle` seconds, for as long as this runs."""
        while True:
            idle = self._standing.settings.session_idle
            await anyio.sleep(min(_LOOKS, idle / 4))
            before = anyio.current_time() - idle
            for key, seat in tuple(self._seats.items()):
                link = seat.link
                if link is self._standing and key.owner == SHARED:
                    continue
                if link.is_idle and not link.subscriptions.uris and link.last_use[0] < before:
                    logger.debug("upstream %s: a session idle for %g s is closed", link.name, idle)
                    del self._seats[key]
                    self._vacate(link)

    def _key_of(self, caller: Caller, guise: Guise) -> Key:
        owner = owner_of(self._standing.settings.session, caller)
        return self._key(owner, self._eras.for_host(caller.era), guise)

    def _key(self, owner: str, era: Era, guise: Guise) -> Key:
        """A stateless upstream is told with each request who asks; over HTTP it has nothing that could be owned."""
        if era == "modern" and "modern" in self._eras.spoken:
            remote = self._standing.settings.url is not None
            return Key(SHARED if remote else owner, era, "")
        return Key(owner, era, guise.mark)

    def _link(self, key: Key, guise: Guise, client: str, *, displacing: bool) -> Link:
        if not self._is_free_for(key) and len(self._seats) >= self._standing.settings.max_sessions:
            self._make_room(client, displacing=displacing)
        if self._is_free_for(key):
            link = self._standing
        else:
            link = self._make(guise, key.era)
            self._begin(link)
        link.last_use[0] = anyio.current_time()
        return link

    def _is_free_for(self, key: Key) -> bool:
        """Whether the standing link is nobody's, and suits."""
        standing = self._standing
        era, guise = standing.prospect
        return (
            not any(seat.link is standing for seat in self._seats.values())
            and key == self._key(key.owner, era, guise)
            and standing.state is not UpstreamState.DISABLED
        )

    def _vacate(self, link: Link) -> None:
        """A link has no owner any more: nobody else may meet what he left there."""
        if link is self._standing:
            link.vacate()
        else:
            self._end(link)

    def _make_room(self, client: str, *, displacing: bool) -> None:
        """Close a session that nobody uses: one that is nobody's, else one of the client's, else the longest unused."""
        name, most = self._standing.name, self._standing.settings.max_sessions
        unused = [key for key, seat in self._seats.items() if self._is_unused(key, seat)] if displacing else []
        if not unused:
            raise UpstreamUnavailable(
                name,
                f"{'the one session' if most == 1 else f'all {most} sessions'} that it may have"
                f" {'is' if most == 1 else 'are'} in use (max_sessions)",
                remedy=f"try again later, or raise upstreams.{name}.max_sessions",
            )

        def rank(key: Key) -> tuple[bool, bool, float]:
            seat = self._seats[key]
            return seat.client is not None, seat.client != client, seat.link.last_use[0]

        seat = self._seats.pop(min(unused, key=rank))
        idle = anyio.current_time() - seat.link.last_use[0]
        logger.info("upstream %s: a session unused for %d s makes way for another (max_sessions)", name, idle)
        self._vacate(seat.link)

    def _is_unused(self, key: Key, seat: Seat) -> bool:
        """Whether no call runs, and none of its hosts has anything open that it could still be waiting on."""
        if seat.link is self._standing and key.owner == SHARED:
            return False
        return seat.link.is_idle and not any(self._is_there(host) for host in seat.hosts)
