"""This replica of the gateway among the others: what they share, and what goes from one to another."""

import itertools
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.config.moments import moment_text
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.errors import StateUnavailable
from gateway.routing.long_calls import long_call_in
from gateway.routing.replica_port import CallElsewhere, SharedUse
from gateway.serving.cluster.claim_log import ClaimLog
from gateway.serving.cluster.forward_request import BrokenOff, Forwarder, Unreachable, forwarding_client
from gateway.serving.cluster.hop_mark import HopMarks, remember_path
from gateway.serving.cluster.keys import TAG
from gateway.serving.cluster.leave_sessions import LeaveSessions
from gateway.serving.cluster.own_address import own_address, reaches_no_other
from gateway.serving.cluster.replicas import Replica, Replicas, new_id, replica_in
from gateway.serving.cluster.session_forwarding import SessionForwarding, answer_broken_off, try_later
from gateway.serving.cluster.session_index import SessionIndex
from gateway.serving.cluster.session_notes import SessionNotes
from gateway.serving.cluster.shared_secret import SharedSecret
from gateway.serving.cluster.shared_use import RedisUse
from gateway.serving.cluster.soon import Soon
from gateway.serving.cluster.state_owners import StateOwners
from gateway.serving.cluster.task_index import TaskIndex
from gateway.serving.databases.availability import Availability
from gateway.serving.databases.redis_connection import RedisConnection
from gateway.serving.databases.shared_records import SharedRecords
from gateway.serving.mcp.cluster_port import HOP_SCOPE, SessionsPort
from gateway.serving.mcp.request_caller import CHOOSES_SCOPE, principal_of
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.mcp.security import refused_response
from gateway.serving.mcp.service import OF_TASKS
from gateway.system.background_tasks import background_tasks
from gateway.telemetry.metrics import Metrics
from gateway.upstream.bridging.signed_state import replica_of_state
from gateway.upstream.connection.owners import client_of

logger = logging.getLogger(__name__)

_LEAVING_SECONDS = 5.0
"""Time to hand the sessions over."""
_SETTLING_SECONDS = 0.3
"""Time in which replicas that are told to stop together say so."""
_NOTICING_SECONDS = 1.0
"""Time in which hosts and load balancers ask again that often ask, and are told to connect elsewhere the next time."""
_LEAST_LEASE_SECONDS = 30.0
"""The least time that holds what a replica says of the calls that it runs. It is said again at each look."""
_TELLING_SECONDS = 2.0
"""How long an answer waits until the other replicas can know what it names: its host does not wait forever."""


StateOf = Callable[[Mapping[str, Any], Caller], Awaitable[tuple[str, str] | None]]

UseOf = Callable[[Callable[[], Sequence[str]]], SharedUse]
"""Makes what counts the use of limits, given what returns the ids of the other replicas."""


class Cluster:
    """This replica (`gateway.serving.mcp.cluster_port.ClusterPort`). `open_cluster` opens it."""

    def __init__(
        self,
        settings: Settings,
        client: httpx2.AsyncClient,
        records: SharedRecords,
        own: Replica,
        use: UseOf | None = None,
    ) -> None:
        self._settings = settings
        self.connection = records
        self.own = own.id
        self.secret = SharedSecret()
        self.replicas = Replicas(self.connection, own, settings.cluster.lost_after, self._forgotten, self._found)
        self.index = SessionIndex(
            *(self.connection, self.own, settings.http.session_idle),
            has_been_told=lambda: self.replicas.has_been_told,
        )
        self.journal = SessionNotes(self.index)
        self._soon = Soon(self.connection)
        log = ClaimLog(self.connection) if use is None else None  # the workers' file does not forget
        self.owners = StateOwners(self.connection, self.replicas, self.index, log)
        self._tasks = TaskIndex(self.connection, self._soon, self.replicas)
        self.use: SharedUse = self._use_in_redis() if use is None else use(self._living)
        self.upstream_of: StateOf = _nowhere
        """Returns the upstream that a call goes to and the owner of the state there; None if there is none."""
        marks = HopMarks(self.own, partial(self.secret.key, "hop"))
        self._marks = marks
        self._leave: LeaveSessions | None = None
        self._leaves = False
        """Whether this replica leaves its sessions to those that stay: it knows who is about to stop as well."""
        self._turn = itertools.count()
        self._known_at = 0.0
        self._metrics: Metrics | None = None
        self._forwarder = Forwarder(client, marks)

    def _use_in_redis(self) -> SharedUse:
        lease = max(_LEAST_LEASE_SECONDS, 2 * self._settings.cluster.lost_after)
        return RedisUse(self.connection, self._soon, self.own, self._living, lease)

    def _living(self) -> Sequence[str]:
        return [one.id for one in self.replicas.others()]

    # -- the HTTP side -------------------------------------------------------------------------------------------------

    def new_session(self) -> str:
        """Return an id for a new session."""
        return f"{self.own}.{uuid.uuid4().hex}"

    def has_address(self, address: str) -> bool:
        """Whether another replica is at this address (`ClusterPort.has_address`): workers of one machine have none."""
        return not address or any(urlsplit(one.address).hostname == address for one in self.replicas.others())

    def recognising(self, app: ASGIApp) -> ASGIApp:
        """Wrap the whole application (`ClusterPort.recognising`)."""

        async def recognise(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                if not self.replicas.has_begun:
                    await self.replicas.begun()
                remember_path(scope)
                if (hop := self._marks.read(scope)) is not None:
                    scope[HOP_SCOPE] = hop
                    scope["client"] = None if hop.peer is None else (hop.peer, 0)
                    scope["scheme"] = hop.scheme
                    if hop.chooses:
                        scope[CHOOSES_SCOPE] = True
                elif self._marks.is_astray(scope):
                    words = "this was for a replica that is gone, in whose place another one was started"
                    return await try_later(words)(scope, receive, send)
            return await app(scope, receive, send)

        return recognise

    def in_sessions(self, app: ASGIApp, sessions: SessionsPort) -> ASGIApp:
        """Wrap the endpoint of Streamable HTTP (`ClusterPort.in_sessions`)."""
        self._leave = LeaveSessions(sessions, self.index, lambda: self._instead_of_this() is not None)
        return SessionForwarding(
            app,
            sessions,
            self.replicas,
            self.index,
            self._forwarder,
            self._taken_over,
            self._home_of,
            self._leave,
            self._instead_of_this,
        )

    async def to_streams(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a message for a stream of HTTP+SSE (`ClusterPort.to_streams`)."""
        there = None if HOP_SCOPE in scope else await self.replicas.find(scope["path_params"]["replica"])
        if there is None or not await self._forwarded(there, scope, receive, send):
            words = "the replica that has the stream is gone: open another stream"
            await refused_response(404, words)(scope, receive, send)

    async def passed_on_by_name(self, name: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Pass a request on to the replica that has given out a name (`ReplicaPort.own` and a dot before it).

        Return false if that is this one, or it is gone.
        """
        replica = None if HOP_SCOPE in scope else replica_in(name)
        there = None if replica in (None, self.own) else await self.replicas.find(replica)
        return there is not None and await self._forwarded(there, scope, receive, send)

    async def answered_elsewhere(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Callable[[], Caller],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Pass on a request without a session, if it is about what another replica has (`ClusterPort`)."""
        if HOP_SCOPE in scope:
            return False
        there = await self._home_of_request(method, params, caller) or await self._instead(method, params, caller)
        return there is not None and await self._forwarded(there, scope, receive, send)

    async def _instead(self, method: str, params: Mapping[str, Any], caller: Callable[[], Caller]) -> Replica | None:
        """Return a replica to begin a call at while this one is about to stop; None: here, where something of it is."""
        if self.replicas.own.state != "draining" or method != "tools/call" or self._keeps_by_principal:
            return None
        if "requestState" in params or long_call_in(params) is not None:
            return None
        return self._staying() if await self.upstream_of(params, caller()) is None else None

    def _staying(self) -> Replica | None:
        """Return another replica that takes new sessions and calls, each in turn."""
        staying = [one for one in self.replicas.others() if one.state == "up"]
        return staying[next(self._turn) % len(staying)] if staying else None

    def _instead_of_this(self) -> Replica | None:
        """Return a replica to go on with sessions of this one, which is about to stop."""
        return self._staying() if self._leaves and not self._keeps_by_principal else None

    async def _home_of_request(
        self, method: str, params: Mapping[str, Any], caller: Callable[[], Caller]
    ) -> Replica | None:
        if (replica := replica_of_state(params.get("requestState"))) is not None:
            return await self.replicas.find(replica)
        task = params.get("taskId")
        if method in OF_TASKS and isinstance(task, str):
            return await self._home_of_task(client_of(caller()), task)
        if method != "tools/call":
            return None
        asking = caller()
        if (call := long_call_in(params)) is not None:
            return await self._home_of_task(client_of(asking), call)
        if self._keeps_by_principal and (home := await self.owners.home("", _home_name(asking.principal))) is not None:
            return home
        state = await self.upstream_of(params, asking)
        return None if state is None else await self.owners.home(*state)

    async def _home_of_task(self, client: str, task: str) -> Replica | None:
        try:
            found = await self._tasks.find(client, task)
        except StateUnavailable:
            return None
        return None if found is None else await self.replicas.find(found[0])

    async def asked_of_others(self, scope: Scope) -> Sequence[str]:
        """Return the texts that the other replicas answer a GET with (`ClusterPort.asked_of_others`)."""
        found: list[str] = []

        async def ask(one: Replica) -> None:
            if (text := await self._forwarder.fetch(one, scope)) is not None:
                found.append(text)

        if HOP_SCOPE not in scope:
            others = await self.replicas.others_now()
            async with anyio.create_task_group() as tasks:
                for one in others:
                    tasks.start_soon(ask, one)
        return found

    # -- routing (`gateway.routing.replica_port.ReplicaPort`) ----------------------------------------------------------

    def state_key(self) -> bytes:
        """Return the key that `requestState` is signed with."""
        return self.secret.key("state")

    async def before_call(self, upstream: str, owner: str) -> None:
        """Note that a call is made to an upstream that keeps state for its owner."""
        await self.owners.before_call(upstream, owner)

    def task_given(self, client: str, task: str, route: Mapping[str, str]) -> None:
        """Note where a task is."""
        self._tasks.given(client, task, route)

    async def told(self) -> None:
        """Wait until the other replicas can know of all tasks and calls, or Redis is away or slow."""
        await self._soon.written(_TELLING_SECONDS)

    async def route_of_task(self, client: str, task: str) -> Mapping[str, str] | None:
        """Return the route of a task."""
        found = await self._tasks.find(client, task)
        return (found[1] or None) if found is not None else None

    def call_ended(self, client: str, call: str, outcome: Mapping[str, Any], seconds: float) -> None:
        """Keep the outcome of a long call."""
        self._tasks.ended(client, call, outcome, seconds)

    def call_forgotten(self, client: str, call: str) -> None:
        """Forget a long call."""
        self._tasks.forgotten(client, call)

    async def call_elsewhere(self, client: str, call: str) -> CallElsewhere | None:
        """Return what is known of a long call at another replica."""
        return await self._tasks.elsewhere(client, call)

    # -- other replicas ------------------------------------------------------------------------------------------------

    async def _forwarded(self, there: Replica, scope: Scope, receive: Receive, send: Send) -> bool:
        """Pass a request on; false if nothing listens there."""
        try:
            await self._forwarder.forward(there, scope, receive, send)
        except Unreachable as unreachable:
            if unreachable.is_gone:
                self.replicas.unreachable(there.id)
            return False
        except BrokenOff as broken:
            await answer_broken_off(broken, scope, send)
        return True

    def _taken_over(self) -> None:
        """Count a session that another replica had."""
        if self._metrics is not None:
            self._metrics.sessions_taken_over.add(1)

    async def _home_of(self, scope: Scope) -> Replica | None:
        """Return the replica for a new session, if that is another one."""
        if self.replicas.own.state == "draining":
            return self._staying()
        if not self._keeps_by_principal:
            return None
        return await self.owners.home("", _home_name(principal_of(HTTPConnection(scope))))

    @property
    def _keeps_by_principal(self) -> bool:
        """Whether an upstream keeps state for more than one host of a principal."""
        rules = (one.session for one in self._settings.upstreams.values() if one.enabled)
        return any(rule is not None and rule not in ("shared", "host-session") for rule in rules)

    def observed_by(self, metrics: Metrics) -> None:
        """Let the metrics have the replicas, and what goes from one to another."""
        if self._settings.cluster.url is not None:  # or else they are the workers of one machine
            away = self.connection.availability
            metrics.replicas = lambda: (1 + len(self.replicas.others()), 0 if away.is_away else 1)
        self._metrics = metrics
        self._forwarder.on_passed_on = lambda: metrics.requests_passed_on.add(1)

    def report(self) -> list[dict[str, Any]]:
        """Return the replicas for `status`: this one first."""
        known = (self.replicas.own, *self.replicas.others())
        return [
            {
                "id": one.id,
                "address": one.address,
                "state": one.state,
                "started": moment_text(one.started),
                "version": one.version,
                "own": one is self.replicas.own,
            }
            for one in known
        ]

    # -- being there ---------------------------------------------------------------------------------------------------

    def join(self, port: int) -> None:
        """Let the others know where this replica listens, from the next look on, which is at once."""
        http, cluster = self._settings.http, self._settings.cluster
        if given := self.replicas.own.address:
            return self.replicas.open_at(given)
        address = own_address(http.bind, port, cluster.url or "", tls=http.tls_certificate is not None)
        if reaches_no_other(address):
            logger.info("only replicas on this machine can reach this one, at %s: see [cluster] address", address)
        return self.replicas.open_at(address)

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        """Context manager around serving: on leaving it, the others are told, if they have not been before."""
        async with background_tasks() as tasks:
            tasks.start_soon(self.index.run)
            tasks.start_soon(self._soon.run)
            tasks.start_soon(self._agree)
            tasks.start_soon(self.owners.follow, self.replicas.pause)
            tasks.start_soon(self.replicas.run)
            try:
                yield
            finally:
                with anyio.move_on_after(_LEAVING_SECONDS, shield=True):
                    await self.left()

    async def _agree(self) -> None:
        """Run forever: have the same secret as the others, also if Redis was away at the start, or has forgotten it."""
        while True:
            await anyio.sleep(self._settings.cluster.lost_after)
            await self.secret.agree(self.connection)

    async def draining(self) -> None:
        """Tell the others that this replica takes no new sessions (`ClusterPort.draining`)."""
        await self.replicas.drain()
        self._known_at = anyio.current_time() + _NOTICING_SECONDS

    @property
    def passing(self) -> RunningRequests:
        """The requests that other replicas answer through this one (`ClusterPort.passing`)."""
        return self._forwarder.passing

    async def leaving(self) -> None:
        """Leave sessions to the others (`ClusterPort.leaving`), once it is known which of them stop as well."""
        await anyio.sleep(_SETTLING_SECONDS)
        await self.replicas.look()
        self._leaves = True
        if self._leave is not None:
            await self._leave.run()

    async def known(self) -> None:
        """Wait until it is known that this replica is about to stop (`ClusterPort.known`), if another one stays."""
        if self._staying() is not None:
            await anyio.sleep_until(self._known_at)

    async def left(self) -> None:
        """Leave the sessions to the others (`ClusterPort.left`). The second time, nothing is done."""
        if not self.replicas.is_open:
            return
        self.index.freeze()
        await self._soon.rest()
        try:
            await self.index.hand_over({} if self._leave is None else self._leave.undelivered())
        except StateUnavailable:
            logger.warning("the sessions are not handed over: the others take them over when they miss this replica")
        await self.replicas.leave()

    def _forgotten(self, was_missed: bool) -> None:
        """Redis has lost what this replica has told it; `was_missed`: others may have missed this replica before."""
        logger.warning("the Redis of the cluster has forgotten this replica: its sessions are told to it again")
        self.index.rewrite(was_missed=was_missed)
        self._rewrite(was_missed=was_missed)

    def _found(self) -> None:
        """Redis has answered: it is told again what could not be written while it was away for a moment."""
        self.use.renew()
        self.owners.settle(self._soon)
        if self._soon.has_dropped:
            self._rewrite()

    def _rewrite(self, *, was_missed: bool = False) -> None:
        self._soon.has_dropped = False
        self.owners.rewrite(self._soon, was_missed=was_missed)
        self._tasks.rewrite()
        self.use.renew()


async def _nowhere(params: Mapping[str, Any], caller: Caller) -> None:
    """Nothing keeps anything for a call."""


def _home_name(principal: str) -> str:
    """Return the owner of all that upstreams keep for a principal and its hosts together."""
    return f"principal {principal}"


@asynccontextmanager
async def open_cluster(settings: Settings) -> AsyncGenerator[Cluster]:
    """Provide this replica of a gateway that is one of several.

    Raises:
        ConfigError: the URL of Redis cannot be used.
    """
    async with AsyncExitStack() as stack:
        url = settings.cluster.url
        assert url is not None
        availability = Availability("the Redis of the cluster", "the other replicas cannot be asked at present")
        records = RedisConnection(url, TAG, "cluster.url", availability)
        client = await stack.enter_async_context(forwarding_client())
        cluster = Cluster(settings, client, records, Replica(new_id(), settings.cluster.address or ""))
        stack.push_async_callback(cluster.connection.close)
        await cluster.secret.agree(cluster.connection)
        yield cluster
