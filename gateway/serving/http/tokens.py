"""Slow down guessing of tokens: each wrong one is answered later than the one before, and is logged."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

import anyio
from starlette.types import Scope

from gateway.content.links.base_url import CLIENT_SCOPE
from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedUse
from gateway.serving.http.peers import peer_of
from gateway.serving.http.repeated import RepeatedLines

logger = logging.getLogger(__name__)

STANDING = "gateway.serving.http.standing"
"""A key of a request's scope: `KNOWN` once the peer has been authorised, `REFUSED` once it has failed to be."""
KNOWN = "known"
REFUSED = "refused"

_FREE = 3
_STEP = 0.25
_LONGEST = 2.0
_FORGOTTEN = 60.0
_REMEMBERED = 1_000
_SHARED = "wrong token from"


class WrongTokens:
    """Counts wrong tokens by address (`peer_of`). A correct token is never delayed, whatever its address.

    `shared` returns what counts them for several replicas together, if there are any.
    """

    def __init__(
        self,
        what: str,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[], SharedUse | None] = lambda: None,
    ) -> None:
        self._what = what
        self._clock = clock
        self._shared = shared
        self._lines = RepeatedLines(logger)
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def refused(self, scope: Scope, given: str = "a wrong token") -> None:
        """Log a wrong token, or what else was `given`, and delay the answer, longer each time (at most two seconds)."""
        scope[STANDING] = REFUSED
        await self.refused_from(address_of(scope), given)

    async def refused_from(self, address: str, given: str = "a wrong token") -> None:
        """Do the same for a connection without HTTP."""
        # One line per period for all addresses together: an attacker may have many.
        self._lines.warn(f"{self._what}: {given}", f"{self._what}: {given} from {address}")
        await anyio.sleep(self.pause(address, await self._everywhere(address)))

    async def _everywhere(self, address: str) -> int:
        """Count one more at all replicas, and return how many there were lately; 0 if nobody knows."""
        if (shared := self._shared()) is None:
            return 0
        try:
            return await shared.repeated((_SHARED, peer_of(address)), _FORGOTTEN)
        except StateUnavailable:  # which the log has said, once
            return 0

    def pause(self, address: str, everywhere: int = 0) -> float:
        """Count one more from this address, and return the seconds to wait before the answer.

        `everywhere` is the number that other replicas know of, with this one.
        """
        now, peer = self._clock(), peer_of(address)
        count, at = self._wrong.pop(peer, (0, now))
        count = count + 1 if now - at < _FORGOTTEN else 1
        self._wrong[peer] = (count, now)
        if len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)
        return min(_LONGEST, max(0, max(count, everywhere) - _FREE) * _STEP)


def address_of(scope: Scope) -> str:
    """Return the client's address, without its port: as a trusted proxy gives it (`Bases.enter`), or the peer's."""
    if (forwarded := scope.get(CLIENT_SCOPE)) is not None:
        return str(forwarded)
    client = scope.get("client")
    return str(client[0]) if client else "somebody"
