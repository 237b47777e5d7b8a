"""Which replica has the state of an owner in an upstream (a browser, a login), and whose state was lost with one."""

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from gateway.errors import StateUnavailable, UpstreamUnavailable
from gateway.serving.cluster.keys import owner_key
from gateway.serving.cluster.replicas import Replica, Replicas
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.shared_records import Pipe, SharedRecords
from gateway.upstream.connection.owners import owner_by_session

_KEPT_SECONDS = 86_400
"""How long a claim lasts without a call; `session_idle` of an upstream is at most this."""
_SURE_SECONDS = 2.0
"""How long a claim is not looked at again: nobody takes it from a replica that is there."""
_MOST = 10_000
_GONE = "the replica of the gateway that held its state is gone, and its state is lost"
_PERHAPS_ELSEWHERE = (
    "the replicas of the gateway cannot be asked at present which of them holds its state, so it is not to be had"
)

Kept = TypeVar("Kept")

State = tuple[str, str]
"""An upstream, and the owner of state in it."""


class StateOwners:
    """Claims state for this replica, and finds the replica that has it. Nothing is known while Redis is away."""

    def __init__(
        self,
        connection: SharedRecords,
        replicas: Replicas,
        index: SessionIndex,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._replicas = replicas
        self._index = index
        self._clock = clock
        self._here: OrderedDict[State, float] = OrderedDict()
        self._there: OrderedDict[State, str] = OrderedDict()
        """The replicas that others' state was found at: they hold while Redis is away."""
        self._lost: OrderedDict[State, str] = OrderedDict()
        """States whose owners have yet to be told that they may be gone, and why."""
        self._told: OrderedDict[State, None] = OrderedDict()
        """States whose owners have been told, and begin anew if they call again while Redis is away."""

    async def home(self, upstream: str, owner: str) -> Replica | None:
        """Return the replica that has the state; None if it is this one, which it is if no other one has it."""
        state = upstream, owner
        now = self._clock()
        if now - self._here.get(state, float("-inf")) < _SURE_SECONDS:
            return None
        try:
            there = await self._claimed(state)
        except StateUnavailable:
            return await self._home_without_redis(state)
        if there is None:
            _put(self._here, state, now)
            if self._there.pop(state, None) is not None:  # also if Redis has lost meanwhile that it was there
                _put(self._lost, state, _GONE)
        else:
            _put(self._there, state, there.id)
        return there

    async def _home_without_redis(self, state: State) -> Replica | None:
        """Return the replica that had the state when Redis could still be asked; if none is known, it begins here."""
        if state in self._here:
            return None
        if state in self._there and (there := await self._replicas.find(self._there[state])) is not None:
            return there
        if self._replicas.others() and state not in self._told:
            _put(self._lost, state, _PERHAPS_ELSEWHERE)
        else:
            _put(self._here, state, float("-inf"))
        return None

    async def before_call(self, upstream: str, owner: str) -> None:
        """Note that the state is here.

        Raises:
            UpstreamUnavailable: it was lost with the replica that had it. It is raised once.
        """
        session = owner.removeprefix(owner_by_session(""))
        record = self._index.of(session) if session != owner else None
        if session == owner:
            await self.home(upstream, owner)
        elif record is not None and upstream not in record.upstreams:
            record.upstreams.append(upstream)
            self._index.changed(session)
        if (upstream, owner) in self._lost:
            words = self._lost.pop((upstream, owner))
            _put(self._told, (upstream, owner), None)
            remedy = (
                "call again to start anew" if words == _GONE else "call again: it starts anew if it is not found then"
            )
            raise UpstreamUnavailable(upstream, words, remedy=remedy)

    def taken_over(self, record: SessionRecord) -> None:
        """Note that what upstreams kept for a session is lost with the replica that had it."""
        for upstream in record.upstreams:  # they stay in the record, for the next replica if the host is not told here
            _put(self._lost, (upstream, owner_by_session(record.id)), _GONE)

    def rewrite(self, soon: Soon) -> None:
        """Claim again what is here: Redis has forgotten it."""
        own = self._replicas.own.id
        for state in self._here:
            soon.write(partial(_claim, owner_key(*state), own))

    async def _claimed(self, state: State) -> Replica | None:
        """Return the other replica that has the state, if that is there; otherwise take it."""
        key, own = owner_key(*state), self._replicas.own.id
        async with self._connection.reached() as redis:
            before: str | None = await redis.get(key)
            if before is None and state not in self._here:  # or Redis has lost what another replica will say again
                await self._replicas.all_told()
            if before is None and await redis.set(key, own, nx=True, ex=_KEPT_SECONDS):
                return None
            before = before or await redis.get(key)
            if before == own:
                await redis.expire(key, _KEPT_SECONDS)
                return None
        if before is None:  # it has expired just now
            return await self._claimed(state)
        if (there := await self._replicas.find(before)) is not None:
            return there

        async def take(pipe: Pipe) -> bool:
            is_free = await pipe.get(key) == before
            pipe.multi()
            if is_free:
                pipe.set(key, own, ex=_KEPT_SECONDS)
            return is_free

        if not await self._connection.decided(take, key):
            return await self._claimed(state)
        _put(self._lost, state, _GONE)
        return None


def _claim(key: str, own: str, pipe: Pipe) -> object:
    return pipe.set(key, own, nx=True, ex=_KEPT_SECONDS)


def _put(kept: OrderedDict[State, Kept], state: State, value: Kept) -> None:
    kept[state] = value
    kept.move_to_end(state)
    if len(kept) > _MOST:
        kept.popitem(last=False)
