"""What an upstream asks of, and tells, the host in front: which of the running calls it means, and that host's answer.

A message that comes on the stream of a call's own answer (Streamable HTTP) belongs to that call; the transports carry
the context of the call along, so it is found in a context variable. Over stdio and HTTP+SSE nothing on the wire says
whose it is. So hosts that share a session of the handshake era are served one after the other (`Floor`): then every
running call is of the one host that may be meant.
"""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from gateway.core.model.wire import INTERNAL_ERROR, METHOD_NOT_FOUND
from gateway.errors import HostRefused
from gateway.upstream.calls import Deadline, Obstacle

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
class Ongoing:
    """One call that runs on a session."""

    session: "Conversation"
    host: Host
    deadline: Deadline


_ONGOING: ContextVar[Ongoing | None] = ContextVar("the call that a message of an upstream belongs to", default=None)


def ongoing() -> Ongoing | None:
    """The call that the present task belongs to."""
    return _ONGOING.get()


class Floor:
    """Whose calls run now: those of one party at a time, the others wait until it has none running."""

    def __init__(self) -> None:
        self._party: str | None = None
        self._running = 0
        self._free = anyio.Event()

    @asynccontextmanager
    async def held(self, party: str, deadline: Deadline) -> AsyncGenerator[None]:
        """Have the floor inside; a deadline that passes before names this as the reason."""
        while self._running and self._party != party:
            words = "waited for a call of another host, with which it shares a session"
            deadline.obstacle = Obstacle(words, "give each host a session of its own: session = 'host-session'")
            await self._free.wait()
        deadline.obstacle = None
        self._party = party
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._free.set()
                self._free = anyio.Event()


class Conversation:
    """The calls of one session that are running, and the host that was there last."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds for a host to answer."""
        self.floor = Floor()
        self.resident: Host | None = None
        """The connection of the host whose session it is: for what an upstream asks or tells while no call runs."""
        self._calls: list[Ongoing] = []

    @asynccontextmanager
    async def call(self, host: Host | None, deadline: Deadline, *, alone: bool) -> AsyncGenerator[None]:
        """While a call of `host` runs; `alone`: calls of other hosts wait for its end."""
        if host is None:
            yield
            return
        self.resident = host.connection or self.resident
        async with self.floor.held(host.party, deadline) if alone else nullcontext(), self._listed(host, deadline):
            yield

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the host in front answers. Time that it takes is not counted against the call.

        Raises:
            HostRefused: it answered with an error, or not in time; or there is nobody to ask.
        """
        if method not in ASKED:
            raise HostRefused(METHOD_NOT_FOUND, f"the gateway does not serve {method}")
        ongoing = self._meant()
        host = ongoing.host if ongoing is not None else self.resident
        if host is None:
            raise HostRefused(METHOD_NOT_FOUND, f"{method}: no host is there that could be asked")
        if ongoing is None:
            return await self._asked(host, method, params)
        with ongoing.deadline.held():
            return await self._asked(host, method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on to the host in front, if there is one."""
        ongoing = self._meant()
        host = ongoing.host if ongoing is not None else self.resident
        if ongoing is not None:
            ongoing.deadline.touch()
        if host is not None:
            await host.tell(method, params)

    async def _asked(self, host: Host, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with anyio.fail_after(self.patience):
                return await host.ask(method, params)
        except TimeoutError:
            words = f"{method}: the host did not answer within {self.patience:g} s"
            logger.warning(words)
            raise HostRefused(INTERNAL_ERROR, words) from None

    def _meant(self) -> Ongoing | None:
        """The call that a message belongs to: by its stream, else the newest."""
        known = _ONGOING.get()
        if known is not None and known.session is self and known in self._calls:
            return known
        return self._calls[-1] if self._calls else None

    @asynccontextmanager
    async def _listed(self, host: Host, deadline: Deadline) -> AsyncGenerator[None]:
        ongoing = Ongoing(self, host, deadline)
        self._calls.append(ongoing)
        token = _ONGOING.set(ongoing)
        try:
            yield
        finally:
            _ONGOING.reset(token)
            self._calls.remove(ongoing)
