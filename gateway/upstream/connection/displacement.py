"""Which session makes way for another where an upstream may have no more: fair by principal first, then by client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

SeatT = TypeVar("SeatT", bound=Hashable)


class SeatUse(Enum):
    """What would be lost with a session, the least first; a `BUSY` one is never closed."""

    UNUSED = 0
    """Its state: no call is running, and none of its hosts has anything open at the gateway."""
    ATTENDED = 1
    """The state of a host that is there: it has a stream or a request open."""
    SUSPENDED = 2
    """Calls, all of which wait for hosts that come back with an answer, or do not."""
    BUSY = 3
    """Calls on which the upstream works."""


class Seat(NamedTuple):
    """A session: the principal and the client that used it last (None: nobody's), its use, and when it was used."""

    principal: str | None
    client: str | None
    use: SeatUse
    last_use: float


def seat_to_give_up(seats: Mapping[SeatT, Seat], principal: str, client: str) -> SeatT | None:
    """Return the key of the session that makes way for another one of this principal's client; None if none does.

    `seats` are all sessions that the upstream may have. In this order:

    0. a session that is nobody's
    1. an unused one of the principal itself, or of one with more than its share (an equal part for each principal)
    2. one in use of another principal with more than its share, if that has more than this one even afterwards
    3. an unused one of any principal that has more

    So no principal loses a session to one that has more than it. The principal with the most goes first, this one
    counted with the session that it asks for. Among its own sessions, those of the same client go first; among those of
    another principal, those of the client with the most; and then the least recently used.
    """
    claims = _Claims(seats, principal, client)
    ranked = [(rank, key) for key, seat in seats.items() if (rank := claims.rank(seat)) is not None]
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


class _Claims:
    """What each principal has, seen by one that wants another session."""

    def __init__(self, seats: Mapping[SeatT, Seat], principal: str, client: str) -> None:
        self._principal = principal
        self._client = client
        self._held = Counter(seat.principal for seat in seats.values())
        self._of_clients = Counter(seat.client for seat in seats.values())
        self._share = len(seats) / len({*self._held, principal} - {None})

    def rank(self, seat: Seat) -> tuple[float, ...] | None:
        """Return a number for each of the rules, the lowest of which goes first; None if the session stays."""
        step = self._step(seat)
        if step is None:
            return None
        is_own = seat.principal == self._principal
        held = self._held[seat.principal] + is_own
        by_client = seat.client != self._client if is_own else -self._of_clients[seat.client]
        return step, -held, not is_own, seat.use.value, by_client, seat.last_use

    def _step(self, seat: Seat) -> int | None:
        is_own, is_unused = seat.principal == self._principal, seat.use is SeatUse.UNUSED
        held, own = self._held[seat.principal], self._held[self._principal]
        if seat.principal is None or seat.use is SeatUse.BUSY:
            return 0 if is_unused else None
        if is_unused and (is_own or held > max(own, self._share)):
            return 1
        if not is_own and held > max(own + 1, self._share):
            return 2
        return 3 if is_unused and held > own else None
