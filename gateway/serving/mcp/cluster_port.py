"""What the HTTP side needs of the cluster, if the gateway is one of several replicas (`gateway.serving.cluster`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.caller import Caller
from gateway.serving.mcp.running_requests import RunningRequests

HOP_SCOPE = "gateway.hop"
"""The key in an HTTP request's ASGI scope for the mark of the replica that passed it on, if one did."""


class SessionsPort(Protocol):
    """This replica's sessions of Streamable HTTP (implemented by `http_sessions.ResumableSessions`)."""

    def has(self, session: str) -> bool: ...

    async def adopt(
        self, session: str, scope: Scope, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Open a session under an id that another replica gave it, by the requests that configured it there.

        `scope` is that of a request in the session, whose caller has it from now on. `answers` are those that the host
        has not got there. Return whether it is open.
        """
        ...

    def open_sessions(self) -> Sequence[str]: ...

    def is_answering(self, session: str) -> bool:
        """Whether a request of a session has no answer yet, also if its host no longer waits for that here."""
        ...

    def undelivered(self, session: str) -> Sequence[Mapping[str, Any]]:
        """Return the answers that the host of a session has not got, as JSON (`events.SessionEvents.restore`)."""
        ...

    async def end(self, session: str) -> None:
        """End a session that another replica goes on with."""
        ...


class SessionJournal(Protocol):
    """Notes what another replica would need to take over a session. Does not wait."""

    def opened(self, session: str, principal: str, token: str | None, initialize: Mapping[str, Any]) -> None: ...
    def set_level(self, session: str, level: str) -> None: ...
    def watched(self, session: str, uri: str, *, ended: bool = False) -> None: ...
    def closed(self, session: str) -> None: ...


class ClusterPort(Protocol):
    """The replicas, one of which is this one: `own` is its id."""

    @property
    def own(self) -> str: ...
    @property
    def journal(self) -> SessionJournal: ...

    def has_address(self, address: str) -> bool:
        """Whether another replica is at this IP address, which is empty for the peer of a Unix socket."""
        ...

    def new_session(self) -> str:
        """Return an id for a new session, by which every replica knows where it is."""
        ...

    def recognising(self, app: ASGIApp) -> ASGIApp:
        """Wrap the whole application: requests that another replica passes on come from where they came to that one."""
        ...

    def in_sessions(self, app: ASGIApp, sessions: SessionsPort) -> ASGIApp:
        """Wrap an endpoint: requests in sessions of other replicas go there; sessions of those that are gone, here."""
        ...

    async def draining(self) -> None:
        """Tell the others that this replica is about to stop."""
        ...

    @property
    def passing(self) -> RunningRequests:
        """The requests that other replicas answer through this one, unless they are streams that hosts listen to."""
        ...

    async def leaving(self) -> None:
        """Run forever while this replica is about to stop: leave sessions to the others of which nothing runs here."""
        ...

    async def known(self) -> None:
        """Wait until hosts and load balancers can have noticed that this replica is about to stop."""
        ...

    async def left(self) -> None:
        """Leave the sessions to the others: this replica stops now."""
        ...

    async def to_streams(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message for a stream of HTTP+SSE, in whose path is the `replica` that has it."""
        ...

    async def asked_of_others(self, scope: Scope) -> Sequence[str]:
        """Return the texts that the other replicas answer the same GET with; none if one of them asks."""
        ...

    async def answered_elsewhere(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Callable[[], Caller],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Let another replica answer a request without a session, if that has what it is about.

        Return whether it did.
        """
        ...
