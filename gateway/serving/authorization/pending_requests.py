"""What a browser is expected to go on with. It is kept in the state: any gateway that shares it may be the one.

A record counts only in the browser that began it, by its cookie, of which the hash is kept.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import ClassVar, Generic, TypeVar

from gateway.core.model.json_values import as_object
from gateway.serving.authorization.approvals import digest
from gateway.serving.authorization.state import PendingKind, State

_SECONDS = 600.0
_MOST = 1_000
"""Of one kind, in all browsers together."""


@dataclass(frozen=True)
class PendingLogin:
    """A login that the company's provider has not answered yet."""

    kind: ClassVar[PendingKind] = "login"
    cookie: str
    """The SHA-256 of the browser's cookie."""
    query: str
    """That of the request to `/authorize`."""
    nonce: str
    verifier: str


@dataclass(frozen=True)
class PendingDecision:
    """What somebody who has logged in is asked to approve."""

    kind: ClassVar[PendingKind] = "decision"
    cookie: str
    """The SHA-256 of the browser's cookie."""
    query: str
    """That of the request to `/authorize`."""
    principal: str
    login: str
    claims: str = "{}"
    """What the company's provider says of the principal, to be kept with the approval."""


PendingT = TypeVar("PendingT", PendingLogin, PendingDecision)


class PendingRequests(Generic[PendingT]):
    """Those of one kind. Each expires after ten minutes, and the oldest one makes way if there are too many.

    All methods raise StateUnavailable while the state cannot be reached.
    """

    def __init__(self, state: State, of: type[PendingT], clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._of = of
        self._clock = clock

    async def put(self, pending: PendingT) -> str:
        """Keep one, and return its key."""
        return await self._state.keep_pending(
            self._of.kind, json.dumps(asdict(pending)), self._clock(), _SECONDS, _MOST
        )

    async def find(self, key: str, cookie: str | None) -> PendingT | None:
        """Return one of the browser with this cookie."""
        return self._own(await self._state.find_pending(self._of.kind, key, self._clock()), cookie)

    async def take(self, key: str, cookie: str | None) -> PendingT | None:
        """Return one of the browser with this cookie, for the last time, whichever browser asks for it."""
        return self._own(await self._state.take_pending(self._of.kind, key, self._clock()), cookie)

    def _own(self, text: str | None, cookie: str | None) -> PendingT | None:
        if text is None or cookie is None:
            return None
        try:
            found = self._of(**as_object(json.loads(text)))
        except TypeError:  # written by another version of the gateway
            return None
        return found if found.cookie == digest(cookie) else None
