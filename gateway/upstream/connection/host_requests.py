"""What an upstream asks of, and tells, the host in front: which of the running calls it means, and that host's answer.

A message that comes on the stream of a call's own answer (Streamable HTTP) belongs to that call; the transports carry
the context of the call along, so it is found in a context variable. Over stdio and HTTP+SSE nothing on the wire says
whose it is. So hosts that share a session of the handshake era are served one after the other (`HostLock`): then every
running call is of the one host that may be meant.
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
from gateway.upstream.connection.calls import Deadline, WaitReason
from gateway.upstream.transports.channel import STREAM_CLOSED

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"

ASKED: Mapping[str, str] = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}
"""What an upstream may ask of a host, and the capability of one that answers. `ping` is answered by the gateway."""

logger = logging.getLogger(__name__)


class Host(Protocol):
    """The host in front of a call, while the call runs."""

    @property
    def party(self) -> str:
        """Which host it is: equal for all calls of one."""
        ...

    @property
    def connection(self) -> "Host | None":
        """The same host beyond this call, over its own connection; None for one that has none."""
        ...

    @property
    def bounds_waiting(self) -> bool:
        """Whether it bounds the wait for its answers itself, by giving the whole call up."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The host's result. Raises HostRefused with its error, or when it cannot be asked."""
        ...

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the host a notification, if it wants such; never fails."""
        ...

    async def let_go(self) -> None:
        """The upstream has closed the stream of its answer, to be asked for it later: the host may do the same."""
        ...


@dataclass(eq=False)
class ActiveCall:
    """One call that runs on a session."""

    session: "HostRequests"
    host: Host
    deadline: Deadline


_ONGOING: ContextVar[ActiveCall | None] = ContextVar("the call that a message of an upstream belongs to", default=None)


class HostLock:
    """Whose calls run now: those of one party at a time, the others wait until it has none running.

    Parties get the floor in the order in which they came. While another one waits, no more calls of the present party
    join, or one that always has a call running would never give it up; but for those that come while the party is being
    asked something (`asking`), since it may need them for its answer.
    """

    def __init__(self) -> None:
        self._party: str | None = None
        self._running = 0
        self._asked = 0
        self._waiting: OrderedDict[str, list[anyio.Event]] = OrderedDict()

    @asynccontextmanager
    async def held(self, party: str, deadline: Deadline) -> AsyncGenerator[None]:
        """Have the floor inside; a deadline that passes before names this as the reason."""
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
    def asking(self) -> Generator[None]:
        """While the party that has the floor is being asked something: its calls that wait may join."""
        self._asked += 1
        self._admit(self._party)
        try:
            yield
        finally:
            self._asked -= 1

    def _may_join(self, party: str) -> bool:
        others = self._waiting.keys() - {party}
        return party == self._party and (not others or self._asked > 0)

    async def _given(self, party: str) -> None:
        given = anyio.Event()
        self._waiting.setdefault(party, []).append(given)
        try:
            await given.wait()
        except BaseException:
            if given.is_set():  # it was given the floor just now
                self._leave()
            else:
                self._waiting[party].remove(given)
                if not self._waiting[party]:
                    del self._waiting[party]
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
    """The calls of one session that are running, and the host that was there last."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds for a host to answer."""
        self.lock = HostLock()
        self.last_host: Host | None = None
        """The connection of the host whose session it is: for what an upstream asks or tells while no call runs."""
        self._calls: list[ActiveCall] = []

    @asynccontextmanager
    async def call(
        self, host: Host | None, deadline: Deadline, *, alone: bool, turns: CallQueue | None = None
    ) -> AsyncGenerator[None]:
        """While a call of `host` runs; `alone`: calls of other hosts wait for its end.

        A call that waits for one of `turns` is none that an upstream could mean.
        """
        party = "" if host is None else host.party
        lock = self.lock.held(party, deadline) if alone and host is not None else nullcontext()
        async with lock, nullcontext() if turns is None else turns.turn(deadline, party):
            if host is None:
                yield
                return
            self.last_host = host.connection or self.last_host
            async with self._listed(host, deadline):
                yield

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the host in front answers. Time that it takes is not counted against the call.

        Raises:
            HostRefused: it answered with an error, or not in time; or there is nobody to ask.
        """
        if method not in ASKED:
            raise HostRefused(METHOD_NOT_FOUND, f"the gateway does not serve {method}")
        ongoing = self._meant()
        host = ongoing.host if ongoing is not None else self.last_host
        if host is None:
            raise HostRefused(METHOD_NOT_FOUND, f"{method}: no host is there that could be asked")
        if ongoing is None:
            return await self._asked(host, method, params)
        with ongoing.deadline.held(), self.lock.asking():
            return await self._asked(host, method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on to the host in front, if there is one."""
        ongoing = self._meant()
        host = ongoing.host if ongoing is not None else self.last_host
        if ongoing is not None:
            ongoing.deadline.touch()
        if host is not None:
            await host.tell(method, params)

    async def _asked(self, host: Host, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        # Of two limits on one wait the earlier would win by chance: an error for the upstream, or a call cancelled.
        limit = math.inf if host.bounds_waiting else self.patience
        try:
            with anyio.fail_after(limit):
                return await host.ask(method, params)
        except TimeoutError:
            words = f"{method}: the host did not answer within {self.patience:g} s"
            logger.warning(words)
            raise HostRefused(INTERNAL_ERROR, words) from None

    def _meant(self) -> ActiveCall | None:
        """The call that a message belongs to: by its stream, else the newest."""
        known = _ONGOING.get()
        if known is not None and known.session is self and known in self._calls:
            return known
        return self._calls[-1] if self._calls else None

    @asynccontextmanager
    async def _listed(self, host: Host, deadline: Deadline) -> AsyncGenerator[None]:
        ongoing = ActiveCall(self, host, deadline)
        self._calls.append(ongoing)
        token = _ONGOING.set(ongoing)
        closed = STREAM_CLOSED.set(host.let_go)
        try:
            yield
        finally:
            STREAM_CLOSED.reset(closed)
            _ONGOING.reset(token)
            self._calls.remove(ongoing)
