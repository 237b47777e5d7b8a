"""Requests in sessions of Streamable HTTP: to the replica that has the session, or here once that is gone."""

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.revisions import NEWEST_HANDSHAKE, at_least
from gateway.core.model.wire import INTERNAL_ERROR
from gateway.errors import StateUnavailable
from gateway.serving.cluster.forward_request import WITHOUT_BODY, BrokenOff, Forwarder, Unreachable, without_body
from gateway.serving.cluster.hop_mark import MOST_HOPS
from gateway.serving.cluster.leave_sessions import LeaveSessions
from gateway.serving.cluster.replicas import Replica, Replicas, replica_in
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.mcp.cluster_port import HOP_SCOPE, SessionsPort
from gateway.serving.mcp.drain import opens_session
from gateway.serving.mcp.events import LOST
from gateway.serving.mcp.request_caller import principal_of, token_of

logger = logging.getLogger(__name__)

_TRIES = 4
_MOST_MOVED = 10_000
_RETRY_SECONDS = "1"
_DYING_SECONDS = 0.2
"""Time for the system to close what a replica that was killed has listened on."""
SESSION = "mcp-session-id"


class SessionForwarding:
    """ASGI wrapper around the endpoint of Streamable HTTP. `on_adopted` is called when one was taken over.

    A request that opens a session goes to `home_of` its principal, if that is another replica. `staying` returns a
    replica that goes on with the sessions of this one while it is about to stop; `leave` leaves them to the others.
    """

    def __init__(
        self,
        app: ASGIApp,
        sessions: SessionsPort,
        replicas: Replicas,
        index: SessionIndex,
        forwarder: Forwarder,
        on_adopted: Callable[[], object],
        home_of: Callable[[Scope], Awaitable[Replica | None]],
        leave: LeaveSessions,
        staying: Callable[[], Replica | None] = lambda: None,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._replicas = replicas
        self._index = index
        self._forwarder = forwarder
        self._on_adopted = on_adopted
        self._home_of = home_of
        self._leave = leave
        self._staying = staying
        self._adopting: dict[str, anyio.Lock] = {}
        self._moved: OrderedDict[str, str] = OrderedDict()
        """Sessions that others have taken over, and who: Redis need not be asked again."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get(SESSION)
        if session is None:
            return await self._opening(scope, receive, send)
        if (replica := replica_in(session)) is None:
            return await self._app(scope, receive, send)
        try:
            is_here = await self._is_here(session)
            if not is_here:
                return await self._elsewhere(session, replica, scope, receive, send)
        except BrokenOff as broken:
            return await answer_broken_off(broken, scope, send)
        except StateUnavailable as away:
            return await try_later(away.message)(scope, receive, send)
        with nullcontext() if scope["method"] == "GET" else self._leave.used(session):
            return await self._app(scope, receive, send)

    async def _is_here(self, session: str) -> bool:
        """Whether this replica has a session, and no other one has taken it over because it has missed this one.

        Raises:
            StateUnavailable: that is not known yet.
        """
        if not self._sessions.has(session):
            return False
        await self._replicas.be_known()
        await self._index.confirm(session)
        return not await self._leave.leave(session)

    async def _opening(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_passed_on = HOP_SCOPE not in scope and opens_session(scope)
        home = await self._home_of(scope) if is_passed_on else None
        if home is not None:
            try:
                return await self._forwarder.forward(home, scope, receive, send)
            except BrokenOff as broken:
                return await answer_broken_off(broken, scope, send)
            except Unreachable as unreachable:
                if unreachable.is_gone:
                    self._replicas.unreachable(home.id)
        return await self._app(scope, receive, send)

    async def _elsewhere(self, session: str, replica: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request in a session that this replica does not have.

        Raises:
            BrokenOff: the replica that has it is gone before it has answered.
            StateUnavailable: its replica is gone, and Redis, which would know more, is away.
        """
        replica = self._moved.get(session, replica)
        for _ in range(_TRIES):
            there = await self._still_at(session, replica, scope)
            if there is not None and _is_last_hop(scope):
                break
            if there is not None:
                try:
                    return await self._forwarder.forward(there, scope, receive, send)
                except Unreachable as unreachable:
                    if not unreachable.is_gone:  # it may be there, so its sessions are its own
                        break
                    self._replicas.unreachable(there.id)
                except BrokenOff as broken:
                    if broken.begun or scope["method"] not in WITHOUT_BODY:
                        raise
                    await anyio.sleep(_DYING_SECONDS)  # nothing was sent that may have been carried out
                    continue
            try:
                async with self._adopting.setdefault(session, anyio.Lock()):
                    found = await self._taken(session, scope)
            finally:  # hosts choose the ids that are asked for, also while Redis is away
                self._adopting.pop(session, None)
            if found is None:
                is_again = scope["method"] in WITHOUT_BODY
                return await self._app(scope, without_body(receive) if is_again else receive, send)
            replica = self._moved[session] = found
            self._moved.move_to_end(session)
            if len(self._moved) > _MOST_MOVED:
                self._moved.popitem(last=False)
        return await try_later("the replica that has the session cannot be reached")(scope, receive, send)

    async def _still_at(self, session: str, replica: str, scope: Scope) -> Replica | None:
        """Return the replica if it is there, and has the session as far as is known.

        One that is about to stop may have left it to the others; so may the one that has passed this request on.
        """
        there = await self._replicas.find(replica)
        if there is None or (there.state != "draining" and HOP_SCOPE not in scope):
            return there
        found = await self._index.find(session)
        if found is None or found.replica == there.id:
            return there
        is_free = found.replica is None and there.state == "up"
        return there if is_free and self._staying() is not None else None  # it may take the session over, not this one

    async def _taken(self, session: str, scope: Scope) -> str | None:
        """Take over a session whose replica is gone. Return the replica that has it if another has been faster.

        Afterwards, or if nobody knows the session, or it is somebody else's, the request is for this replica.
        """
        if self._sessions.has(session):
            return None
        found = await self._index.find(session)
        if found is None:
            await self._replicas.all_told()
        if found is None or not _is_whose(found, scope):
            return None
        if found.replica is not None and await self._replicas.find(found.replica) is not None:
            return found.replica
        is_own = found.replica == self._replicas.own.id  # it has just ended, or was claimed and could not be opened
        if is_own and self._index.is_ending(session):
            return None
        if is_own and self._index.is_frozen:
            raise StateUnavailable("this replica of the gateway stops", remedy="try again in a moment")
        if not is_own and (instead := self._staying()) is not None:
            return instead.id
        if (taken := await self._index.claim(found)) is None:
            again = await self._index.find(session)
            return None if again is None else again.replica
        logger.info("a session of %s is taken over from replica %s", found.principal, found.replica or "that left it")
        await self._adopt(taken, scope)
        return None

    async def _adopt(self, taken: SessionRecord, scope: Scope) -> None:
        """Open a session that was claimed.

        Raises:
            StateUnavailable: Redis is away; the next request in the session claims it again.
        """
        self._index.add(taken)
        try:
            answers = await self._index.answers(taken.id)
            is_open = await self._sessions.adopt(taken.id, scope, configuring_requests(taken), answers)
        except BaseException:
            self._index.let_go(taken.id)
            with anyio.CancelScope(shield=True):
                await self._sessions.end(taken.id)
            raise
        if not is_open:
            return self._index.remove(taken.id)
        self._on_adopted()
        return await self._index.forget_answers(taken.id)


def configuring_requests(found: SessionRecord) -> Sequence[Mapping[str, Any]]:
    """Return the messages with which a host would configure a session like this."""
    requests: list[tuple[str, Mapping[str, Any]]] = [("initialize", found.initialize)]
    if found.level is not None:
        requests.append(("logging/setLevel", {"level": found.level}))
    requests += [("resources/subscribe", {"uri": uri}) for uri in found.watched]
    messages: list[Mapping[str, Any]] = [
        {"jsonrpc": "2.0", "id": f"taken-over-{number}", "method": method, "params": params}
        for number, (method, params) in enumerate(requests)
    ]
    return [messages[0], {"jsonrpc": "2.0", "method": "notifications/initialized"}, *messages[1:]]


async def answer_broken_off(broken: BrokenOff, scope: Scope, send: Send) -> None:
    """End the response to a request whose replica is gone, with an error for it.

    A host that can resume the stream of the response (2025-11-25) gets the error there.
    """
    logger.warning("a replica was gone before it had answered a request")
    error = {"code": INTERNAL_ERROR, "message": LOST}
    body = json.dumps({"jsonrpc": "2.0", "id": broken.request, "error": error})
    if not broken.begun:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 502, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode(), "more_body": False})
        return
    revision = Headers(scope=scope).get("mcp-protocol-version", "")
    is_told = broken.is_stream and broken.request is not None and not at_least(revision, NEWEST_HANDSHAKE)
    last = f"event: message\r\ndata: {body}\r\n\r\n".encode() if is_told else b""
    await send({"type": "http.response.body", "body": last, "more_body": False})


def _is_last_hop(scope: Scope) -> bool:
    hop = scope.get(HOP_SCOPE)
    return hop is not None and hop.number >= MOST_HOPS


def _is_whose(found: SessionRecord, scope: Scope) -> bool:
    """Whether a request comes from the principal, and with the token, that opened the session."""
    request = HTTPConnection(scope)
    return (principal_of(request), token_of(request)) == (found.principal, found.token)


def try_later(words: str) -> JSONResponse:
    """Return an answer that has the host ask again soon: nothing was carried out."""
    error = {"code": INTERNAL_ERROR, "message": f"{words} (try again in a moment)"}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return JSONResponse(body, 503, {"Retry-After": _RETRY_SECONDS})
