"""Leave sessions to other replicas while this one drains: each as soon as nothing of it runs here."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from gateway.errors import StateUnavailable
from gateway.serving.cluster.session_index import SessionIndex
from gateway.serving.mcp.cluster_port import SessionsPort

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5


class LeaveSessions:
    """The sessions of this replica, and the wait until one of them can be left. `may_begin` says whether that is now.

    A session that upstreams keep something for stays until the end: that would be lost with it. One that another
    replica has taken over, because it missed this one, is ended at any time.
    """

    def __init__(self, sessions: SessionsPort, index: SessionIndex, may_begin: Callable[[], bool]) -> None:
        self._sessions = sessions
        self._index = index
        self._may_begin = may_begin
        self._requests: Counter[str] = Counter()
        """How many requests are here, for each session; a stream that its host listens to is none."""
        self._leaving: dict[str, anyio.Event] = {}

    @contextmanager
    def used(self, session: str) -> Generator[None]:
        """Keep a session here while the context is open."""
        self._requests[session] += 1
        try:
            yield
        finally:
            self._requests[session] -= 1
            if not self._requests[session]:
                del self._requests[session]

    async def leave(self, session: str) -> bool:
        """Leave a session to the others, if nothing of it runs here. Return whether it is no longer here."""
        if (left := self._leaving.get(session)) is not None:
            await left.wait()
        elif self._can_be_left(session):
            left = self._leaving[session] = anyio.Event()
            try:
                with anyio.CancelScope(shield=True):
                    if not self._index.is_elsewhere(session):
                        await self._index.leave(session, self._sessions.undelivered(session))
                    await self._sessions.end(session)
            except StateUnavailable:
                logger.debug("a session stays until its record can be written")
            finally:
                del self._leaving[session]
                left.set()
        return not self._sessions.has(session)

    def undelivered(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the answers that hosts have not got, by session."""
        found = {session: self._sessions.undelivered(session) for session in self._sessions.open_sessions()}
        return {session: answers for session, answers in found.items() if answers}

    async def run(self) -> None:
        """Run forever: leave what can be left."""
        while True:
            for session in self._sessions.open_sessions():
                await self.leave(session)
            await anyio.sleep(_LOOK_SECONDS)

    def _can_be_left(self, session: str) -> bool:
        if session in self._requests or self._sessions.is_answering(session):
            return False
        record = self._index.of(session)
        is_free = record is not None and not record.upstreams and self._may_begin()
        return is_free or self._index.is_elsewhere(session)
