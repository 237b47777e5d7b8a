"""Pass requests and notifications of an upstream to the host in front: find the running call that each belongs to.

A message on the stream of a call's own response (Streamable HTTP) belongs to that call; the transports preserve the
context of the call, so a context variable identifies it. Over stdio and HTTP+SSE nothing on the wire tells which host
is meant. So hosts that share a session of the handshake era are served one after the other (`HostLock`): then all
running calls belong to the same host.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from gateway.core.model.wire import INTERNAL_ERROR, METHOD_NOT_FOUND
from gateway.errors import HostRefused
from gateway.upstream.connection.bounds import CallQueue
from gateway.upstream.connection.deadlines import Deadline, WaitReason
from gateway.upstream.transports.channel import STREAM_CLOSED

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"

ASKED: Mapping[str, str] = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}
"""The requests that an upstream may send to a host, and the capability that each needs. The gateway answers `ping`."""

PATIENCE_OF_OTHERS = 30.0
"""Seconds that another host waits for a shared session while the call before it waits for its absent host."""

logger = logging.getLogger(__name__)


class Host(Protocol):
    """The host in front of a call, while the call runs."""

    @property
    def party(self) -> str:
        """The identity of the host: the same for all its calls."""
        ...

    @property
    def connection(self) -> "Host | None":
        """The same host over its own connection, beyond this call; None if it has none."""
        ...

    @property
    def bounds_waiting(self) -> bool:
        """Whether the host itself limits the wait for its response, by giving up the whole call."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the host's result. Raises HostRefused with its error, or if it cannot be asked."""
        ...

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the host a notification if it wants such notifications. Never fails."""
        ...

    async def let_go(self) -> None:
        """Allow the host to poll for its response later: the upstream has closed its stream to be polled too."""
        ...


@dataclass(eq=False)
class ActiveCall:
    """A call that is running on a session. `asked` is the number of requests that its host has yet to answer."""

    session: "HostRequests"
    host: Host
    deadline: Deadline
    asked: int = 0

    @contextmanager
    def asking(self) -> Generator[None]:
        """Count a request to the host inside the context. The time that it takes does not count against the call."""
        self.asked += 1
        try:
            with self.deadline.held():
                yield
        finally:
            self.asked -= 1


_ACTIVE_CALL: ContextVar[ActiveCall | None] = ContextVar(
    "the call that a message of an upstream belongs to", default=None
)


class HostLock:
    """Lets the calls of one party run at a time; the others wait until none of its calls is running.

    Parties get the lock in the order of arrival. While another party waits, further calls of the current one do not
    join, or a party that always has a call running would never release the lock. The exception is calls that come
    while the party is being asked something (`asking`), since it may need them for its answer.

    A call that waits for a host which has to come back first, and may not, ends `PATIENCE_OF_OTHERS` seconds after
    another party has begun to wait.
    """

    def __init__(self) -> None:
        self._party: str | None = None
        self._running = 0
        self._asked: list[Deadline | None] = []
        self._waiting: OrderedDict[str, list[anyio.Event]] = OrderedDict()

    @asynccontextmanager
    async def held(self, party: str, deadline: Deadline) -> AsyncGenerator[None]:
        """Hold the lock inside the context. If the deadline passes before, this is given as the reason."""
        if self._running and not self._may_join(party):
            words = "waited for a call of another host, with which it shares a session"
            deadline.wait_reason = WaitReason(words, "give each host a session of its own: session = 'host-session'")
            await self._given(party)
            deadline.wait_reason = None
        else:
            self._party = party
            self._running += 1
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def asking(self, suspended: Deadline | None = None) -> Generator[None]:
        """Let waiting calls of the party that holds the lock join while it is being asked something.

        `suspended` is the deadline of a call whose host has to come back first.
        """
        self._asked.append(suspended)
        self._admit(self._party)
        self._hurry()
        try:
            yield
        finally:
            self._asked.remove(suspended)

    def _may_join(self, party: str) -> bool:
        others = self._waiting.keys() - {party}
        return party == self._party and (not others or bool(self._asked))

    def _hurry(self) -> None:
        seconds = PATIENCE_OF_OTHERS if self._waiting.keys() - {self._party} else None
        for suspended in self._asked:
            if suspended is not None:
                suspended.hurry(seconds)

    async def _given(self, party: str) -> None:
        given = anyio.Event()
        self._waiting.setdefault(party, []).append(given)
        self._hurry()
        try:
            await given.wait()
        except BaseException:
            if given.is_set():  # it got the lock just now
                self._leave()
            else:
                self._waiting[party].remove(given)
                if not self._waiting[party]:
                    del self._waiting[party]
                self._hurry()
                if self._party is not None and self._may_join(self._party):
                    self._admit(self._party)
            raise

    def _leave(self) -> None:
        self._running -= 1
        if not self._running and self._waiting:
            self._party = next(iter(self._waiting))
            self._admit(self._party)

    def _admit(self, party: str | None) -> None:
        for given in self._waiting.pop(party, ()) if party is not None else ():
            self._running += 1
            given.set()


class HostRequests:
    """The running calls of one session, and its last host: they determine who gets a message of the upstream."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds for a host to respond."""
        self.lock = HostLock()
        self.last_host: Host | None = None
        """The connection of the host that used the session last, for messages of the upstream while no call runs."""
        self._calls: list[ActiveCall] = []

    @property
    def suspended(self) -> int:
        """The number of calls that wait for hosts that come back with an answer, or do not."""
        return sum(call.asked > 0 and call.host.bounds_waiting for call in self._calls)

    @asynccontextmanager
    async def call(
        self, host: Host | None, deadline: Deadline, *, alone: bool, turns: CallQueue | None = None
    ) -> AsyncGenerator[None]:
        """Register a call of `host` inside the context. With `alone`, calls of other hosts wait for its end.

        A call that still waits for its turn in `turns` is not registered, since the upstream cannot refer to it.
        """
        party = "" if host is None else host.party
        lock = self.lock.held(party, deadline) if alone and host is not None else nullcontext()
        async with lock, nullcontext() if turns is None else turns.turn(deadline, party):
            if host is None:
                yield
                return
            self.last_host = host.connection or self.last_host
            with self._listed(host, deadline):
                yield

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the host in front. The time that it takes does not count against the call.

        Raises:
            HostRefused: the host answered with an error, or not in time, or there is no host to ask.
        """
        if method not in ASKED:
            raise HostRefused(METHOD_NOT_FOUND, f"the gateway does not serve {method}")
        active = self._meant()
        host = active.host if active is not None else self.last_host
        if host is None:
            raise HostRefused(METHOD_NOT_FOUND, f"{method}: there is no host to ask")
        if active is None:
            return await self._asked(host, method, params)
        with active.asking(), self.lock.asking(active.deadline if host.bounds_waiting else None):
            return await self._asked(host, method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification to the host in front, if there is one."""
        active = self._meant()
        host = active.host if active is not None else self.last_host
        if active is not None:
            active.deadline.touch()
        if host is not None:
            await host.tell(method, params)

    async def _asked(self, host: Host, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        # With two limits on one wait, chance would decide between an error for the upstream and a cancelled call.
        limit = math.inf if host.bounds_waiting else self.patience
        try:
            with anyio.fail_after(limit):
                return await host.ask(method, params)
        except TimeoutError:
            words = f"{method}: the host did not answer within {self.patience:g} s"
            logger.warning(words)
            raise HostRefused(INTERNAL_ERROR, words) from None

    def _meant(self) -> ActiveCall | None:
        """Return the call that a message belongs to: by its stream, else the newest."""
        known = _ACTIVE_CALL.get()
        if known is not None and known.session is self and known in self._calls:
            return known
        return self._calls[-1] if self._calls else None

    @contextmanager
    def _listed(self, host: Host, deadline: Deadline) -> Generator[None]:
        active = ActiveCall(self, host, deadline)
        self._calls.append(active)
        token = _ACTIVE_CALL.set(active)
        closed = STREAM_CLOSED.set(host.let_go)
        try:
            yield
        finally:
            STREAM_CLOSED.reset(closed)
            _ACTIVE_CALL.reset(token)
            self._calls.remove(active)
