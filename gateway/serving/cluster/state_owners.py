"""Which replica has the state of an owner in an upstream (a browser, a login), and whose state was lost with one."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio

from gateway.errors import StateUnavailable, UpstreamUnavailable
from gateway.serving.cluster.claim_log import KEPT_SECONDS, Claim, ClaimLog
from gateway.serving.cluster.keys import owner_key
from gateway.serving.cluster.replicas import Replica, Replicas
from gateway.serving.cluster.session_index import SessionIndex
from gateway.serving.cluster.soon import Soon, Write
from gateway.serving.databases.shared_records import Pipe, SharedRecords
from gateway.system.elapsed import elapsed
from gateway.upstream.connection.owners import owner_by_session

_SURE_SECONDS = 2.0
"""How long a claim is not looked at again: nobody takes it from a replica that is there."""
_NOTED_AGAIN_SECONDS = KEPT_SECONDS / 4
"""After this time of use, a claim is noted again, so that the others know that it has not expired."""
_MOST = 10_000
_MOST_ELSEWHERE = 20_000
_GONE = "the replica of the gateway that held its state is gone, and its state is lost"
_PERHAPS_ELSEWHERE = (
    "the replicas of the gateway cannot be asked at present which of them holds its state, so it is not to be had"
)
_ANEW = "call again to start anew"
_ELSEWHERE = "another replica of the gateway holds its state, and this call cannot be passed on to it"
_BY_ITSELF = "call its tools by themselves, not in one script with those of other servers; or try again in a moment"

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")

State = tuple[str, str]
"""An upstream, and the owner of state in it."""


class _Elsewhere(NamedTuple):
    """The replica that has, or had, somebody's state, and when that was known."""

    replica: str
    at: float


class StateOwners:
    """Claims state for this replica, and finds the replica that has it.

    What others have claimed is read from `log`, and remembered: for while Redis is away, and for a Redis that comes
    back empty, which it is told to, also of replicas that are gone. Records without a log do not forget.
    """

    def __init__(
        self,
        connection: SharedRecords,
        replicas: Replicas,
        index: SessionIndex,
        log: ClaimLog | None = None,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self.on_moved: Callable[[str, str], object] = lambda upstream, owner: None
        """Called with an upstream and an owner whose state was here, when another replica has it."""
        self._connection = connection
        self._replicas = replicas
        self._index = index
        self._log = log
        self._clock = clock
        self._here: OrderedDict[State, float] = OrderedDict()
        self._noted: OrderedDict[State, float] = OrderedDict()
        """When a claim of this replica was last noted in the log."""
        self._doubtful: set[State] = set()
        """States that others may have taken over, and have yet to tell a Redis that has forgotten it."""
        self._elsewhere: OrderedDict[str, _Elsewhere] = OrderedDict()
        """Where others' state was found, or claimed, by the key of its owner."""
        self._lost: OrderedDict[State, str] = OrderedDict()
        """States whose owners have yet to be told that they may be gone, and why."""
        self._told: OrderedDict[State, None] = OrderedDict()
        """States whose owners have been told, and begin anew if they call again while Redis is away."""

    async def home(self, upstream: str, owner: str) -> Replica | None:
        """Return the replica that has the state; None if it is this one, which it is if no other one has it."""
        state = upstream, owner
        now = self._clock()
        if now - self._here.get(state, float("-inf")) < _SURE_SECONDS and state not in self._doubtful:
            return None
        await self._replicas.be_known()
        try:
            there = await self._claimed(state)
        except StateUnavailable:
            return await self._home_without_redis(state)
        if there is None:
            was_elsewhere = self._forget_elsewhere(state) is not None and state not in self._here
            _put(self._here, state, now)
            if was_elsewhere:  # also if Redis has lost meanwhile that it was there
                _put(self._lost, state, _GONE)
        else:
            if self._here.pop(state, None) is not None:  # they have missed this replica meanwhile
                self.on_moved(*state)
            self._is_at(owner_key(*state), there.id)
        return there

    async def _home_without_redis(self, state: State) -> Replica | None:
        """Return the replica that had the state when Redis could still be asked; if none is known, it begins here."""
        if state in self._here and (state not in self._doubtful or state in self._told):
            return None
        known = self._known_elsewhere(state)
        if known is not None and (there := await self._replicas.find(known)) is not None:
            return there
        if self._replicas.others() and state not in self._told:
            _put(self._lost, state, _PERHAPS_ELSEWHERE)
        else:
            _put(self._here, state, float("-inf"))
        return None

    async def before_call(self, upstream: str, owner: str) -> None:
        """Note that the state is here.

        Raises:
            UpstreamUnavailable: it was lost with the replica that had it, raised once; or it is at another one.
        """
        session = owner.removeprefix(owner_by_session(""))
        if session != owner:
            return await self._before_call_in_session(upstream, session)
        if await self.home(upstream, owner) is not None:
            raise UpstreamUnavailable(upstream, _ELSEWHERE, remedy=_BY_ITSELF)
        if (words := self._lost.pop((upstream, owner), None)) is not None:
            _put(self._told, (upstream, owner), None)
            remedy = _ANEW if words == _GONE else "call again: it starts anew if it is not found then"
            raise UpstreamUnavailable(upstream, words, remedy=remedy)
        return None

    async def _before_call_in_session(self, upstream: str, session: str) -> None:
        if (record := self._index.of(session)) is None:
            return
        if upstream in record.lost:
            record.lost.remove(upstream)
            raise UpstreamUnavailable(upstream, _GONE, remedy=_ANEW)
        if upstream not in record.upstreams:
            record.upstreams.append(upstream)
            await self._index.write_now(session)  # nobody else would know of it if this replica were killed now

    # -- what others have claimed --------------------------------------------------------------------------------------

    async def follow(self, seconds: float) -> None:
        """Run forever: read every so often what others have claimed."""
        if self._log is None:
            return
        while True:
            await self.read_claims(self._log)
            await anyio.sleep(seconds)

    async def read_claims(self, log: ClaimLog) -> None:
        """Read what others have claimed since the last time; nothing while Redis is away."""
        try:
            while claims := await log.read():
                for key, replica in claims:
                    self._is_at(key, replica)
        except StateUnavailable:
            return

    def rewrite(self, soon: Soon, *, was_missed: bool = False) -> None:
        """Claim again what is here, and what is known of others, who may be gone: Redis has forgotten it.

        If others may have missed this replica before (`was_missed`), they are first to claim what they have taken over.
        """
        if self._log is not None:
            self._log.restart()
        if was_missed:
            self._doubtful.update(self._here)
            self._here.update(dict.fromkeys(self._here, float("-inf")))
        self._claim_all([state for state in self._here if state not in self._doubtful], soon)
        for key, (replica, at) in self._elsewhere.items():
            if self._clock() - at < KEPT_SECONDS:
                soon.write(self._claiming(Claim(key, replica)))

    def settle(self, soon: Soon) -> None:
        """Claim what others have not claimed, once all of them have had the time for that."""
        if self._doubtful and self._replicas.has_been_told:
            self._claim_all([state for state in self._doubtful if state in self._here], soon)
            self._doubtful.clear()

    def _claim_all(self, states: Iterable[State], soon: Soon) -> None:
        for state in states:
            soon.write(self._claiming(Claim(owner_key(*state), self._replicas.own.id)))

    def _is_at(self, key: str, replica: str) -> None:
        if replica == self._replicas.own.id:
            self._elsewhere.pop(key, None)
        else:
            _put(self._elsewhere, key, _Elsewhere(replica, self._clock()), _MOST_ELSEWHERE)

    def _known_elsewhere(self, state: State) -> str | None:
        found = self._elsewhere.get(owner_key(*state))
        is_valid = found is not None and self._clock() - found.at < KEPT_SECONDS + _NOTED_AGAIN_SECONDS
        return found.replica if found is not None and is_valid else None

    def _forget_elsewhere(self, state: State) -> str | None:
        known = self._known_elsewhere(state)
        self._elsewhere.pop(owner_key(*state), None)
        return known

    # -- claims in Redis -----------------------------------------------------------------------------------------------

    async def _claimed(self, state: State) -> Replica | None:
        """Return the other replica that has the state, if that is there; otherwise take it."""
        key, own = owner_key(*state), self._replicas.own.id
        async with self._connection.reached() as redis:
            before: str | None = await redis.get(key)
            if before is None and (state not in self._here or state in self._doubtful):
                # Redis may have lost what another replica will say again.
                await self._replicas.all_told()
            if before is None and await self._take_free(redis, Claim(key, own)):
                _put(self._noted, state, self._clock())
                return None
            before = before or await redis.get(key)
            if before == own:
                await self._go_on(redis, state)
                return None
        if before is None:  # it has expired just now
            return await self._claimed(state)
        if (there := await self._replicas.find(before)) is not None:
            return there

        async def take(pipe: Pipe) -> bool:
            is_free = await pipe.get(key) == before
            pipe.multi()
            if is_free:
                pipe.set(key, own, ex=KEPT_SECONDS)
                self._note(pipe, state)
            return is_free

        if not await self._connection.decided(take, key):
            return await self._claimed(state)
        _put(self._lost, state, _GONE)
        return None

    async def _take_free(self, redis: Any, claim: Claim) -> bool:
        if self._log is not None:
            return await self._log.claim(redis, claim)
        return bool(await redis.set(claim.key, claim.replica, nx=True, ex=KEPT_SECONDS))

    async def _go_on(self, redis: Any, state: State) -> None:
        """Let the claim of this replica last on."""
        async with redis.pipeline(transaction=False) as pipe:
            pipe.expire(owner_key(*state), KEPT_SECONDS)
            if self._clock() - self._noted.get(state, float("-inf")) >= _NOTED_AGAIN_SECONDS:
                self._note(pipe, state)
            await pipe.execute()

    def _note(self, pipe: Pipe, state: State) -> None:
        if self._log is not None:
            self._log.note(pipe, Claim(owner_key(*state), self._replicas.own.id))
            _put(self._noted, state, self._clock())

    def _claiming(self, claim: Claim) -> Write:
        return partial(_claim, claim) if self._log is None else self._log.claiming(claim)


def _claim(claim: Claim, pipe: Pipe) -> object:
    return pipe.set(claim.key, claim.replica, nx=True, ex=KEPT_SECONDS)


def _put(kept: OrderedDict[Key, Kept], key: Key, value: Kept, most: int = _MOST) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
