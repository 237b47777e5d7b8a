"""The replicas of a cluster: each says in Redis that it is there, and where, until it is lost or leaves."""

import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import anyio

from gateway._version import __version__
from gateway.core.model.json_values import as_text
from gateway.errors import StateUnavailable
from gateway.serving.cluster.keys import BEGINNING, REPLICAS, RETELLING, replica_key
from gateway.serving.cluster.read_record import read_record
from gateway.serving.databases.shared_records import SharedRecords
from gateway.system.elapsed import elapsed

logger = logging.getLogger(__name__)

ReplicaState = Literal["up", "draining"]

_ID_BYTES = 6
_BEATS = 4
"""Signs of life within the time after which a replica counts as lost."""
_PATIENCE_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 0.2
"""Time between two looks for replicas that are not known, since hosts choose the ids that are looked for."""


@dataclass(frozen=True)
class Replica:
    """A replica: `address` is the origin at which the others reach it, `started` is in seconds since 1970."""

    id: str
    address: str
    state: ReplicaState = "up"
    started: float = 0.0
    version: str = __version__


def new_id() -> str:
    """Return an id for a replica that starts. No replica ever gets one again that another has had."""
    return secrets.token_hex(_ID_BYTES)


def replica_in(session: str) -> str | None:
    """Return the id of the replica that named a session; None if no replica did."""
    name, dot, _ = session.partition(".")
    is_one = len(name) == 2 * _ID_BYTES and all(each in "0123456789abcdef" for each in name)
    return name if dot and is_one else None


class Replicas:
    """Those that were there at the last look. While Redis is away, all of them count as being there.

    `on_forgotten` is called when Redis has forgotten this replica, and perhaps everything else: with True if this one
    has stood still before, so that others may have missed it, and taken over what it has. `on_found` is called after
    every other look that Redis has answered.
    """

    def __init__(
        self,
        connection: SharedRecords,
        own: Replica,
        lost_after: float,
        on_forgotten: Callable[[bool], object] = lambda was_missed: None,
        on_found: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self.own = own
        self._connection = connection
        self._lost_after = lost_after
        self._on_forgotten = on_forgotten
        self._on_found = on_found
        self._clock = clock
        self._known: dict[str, Replica] = {}
        self._gone: dict[str, float] = {}
        """Those that could not be reached, and when: they are not asked again until they would be lost anyway."""
        self.is_open = False
        """Whether this replica is to be found: not before it listens."""
        self._is_registered = False
        self._looked = 0.0
        """When the last look began."""
        self._said = self._awake_at = clock()
        """When this replica last began to say that it is there; when it was last seen to run."""
        self._has_stood_still = False
        self._forgotten = float("-inf")
        self._beginning: str | None = None
        """The name of the time since Redis was empty, as some replica has chosen it."""
        self._looking = anyio.Lock()
        self._wake = anyio.Event()
        self._has_begun = anyio.Event()
        """Set once the others can find this replica, or Redis was away when it began to listen."""

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return self._lost_after / _BEATS

    def others(self) -> Sequence[Replica]:
        """Return the other replicas that are there."""
        before = self._clock() - self._lost_after
        self._gone = {one: at for one, at in self._gone.items() if at > before}
        return [one for one in self._known.values() if one.id != self.own.id and one.id not in self._gone]

    async def others_now(self) -> Sequence[Replica]:
        """Return the other replicas that are there, also those that have come since the last look."""
        with anyio.move_on_after(_PATIENCE_SECONDS):
            await self._look_again()
        return self.others()

    async def find(self, replica: str) -> Replica | None:
        """Return another replica, if it is there. One that is not known may have come just now."""
        if replica not in self._known:
            await self._look_again()
        return next((one for one in self.others() if one.id == replica), None)

    async def _look_again(self) -> None:
        """Look, but not more often than every fifth of a second: those who wait share a look."""
        asked = self._clock()
        await anyio.sleep(max(0.0, self._looked + _LOOK_AGAIN_SECONDS - asked))
        await self.look(since=asked)

    def unreachable(self, replica: str) -> None:
        """Count a replica as lost, since nothing listens at its address."""
        if replica in self._known and replica not in self._gone:
            logger.warning("replica %s is gone: nothing listens at %s", replica, self._known[replica].address)
        self._gone[replica] = self._clock()

    def open_at(self, address: str) -> None:
        """Say from now on that this replica is there, at this address."""
        self.own = replace(self.own, address=address, started=time.time())
        self.is_open = True
        self._wake.set()

    async def run(self) -> None:
        """Run forever: say that this replica is there, and look for the others."""
        while True:
            await self.look()
            with anyio.move_on_after(self.pause):
                await self._wake.wait()
            self._wake = anyio.Event()

    async def be_known(self) -> None:
        """Say again that this replica is there, if it has stood still for so long that the others may miss it.

        Whoever waits for Redis meanwhile is told that it does not answer. So it is asked for a moment.
        """
        self._look_at_clock()
        with anyio.move_on_after(_PATIENCE_SECONDS):
            while self._may_be_missed:
                await self.look()
                if self._may_be_missed:
                    await anyio.sleep(_LOOK_AGAIN_SECONDS)
        self._has_stood_still = False

    @property
    def _may_be_missed(self) -> bool:
        is_old = self._clock() - self._said >= self._lost_after
        return self._is_registered and is_old and (self._has_stood_still or not self._connection.availability.is_away)

    def _look_at_clock(self) -> None:
        before, self._awake_at = self._awake_at, self._clock()
        if self._awake_at - before >= self._lost_after:
            self._has_stood_still = True

    async def drain(self) -> None:
        """Tell the others that this replica takes no new sessions."""
        self.own = replace(self.own, state="draining")
        await self.look()

    async def begun(self) -> None:
        """Wait until the others can find this replica, which has just begun to listen: what it has would count as lost.

        That is not awaited of a Redis that is away.
        """
        with anyio.move_on_after(_PATIENCE_SECONDS):
            await self._has_begun.wait()

    @property
    def has_begun(self) -> bool:
        """Whether `begun` would not wait."""
        return self._has_begun.is_set()

    async def look(self, since: float | None = None) -> None:
        """Say that this replica is there, and look which others are; unless a look has begun after `since`."""
        async with self._looking:
            if since is not None and self._looked >= since:
                return
            self._look_at_clock()
            self._looked, is_open = self._clock(), self.is_open
            try:
                await self._look(is_open=is_open)
            except StateUnavailable:
                logger.debug("the last look holds")
            if is_open:
                self._has_begun.set()
            self._look_at_clock()

    async def leave(self) -> None:
        """Say that this replica is no longer there."""
        self.is_open = self._is_registered = False
        try:
            async with self._connection.reached() as redis, redis.pipeline(transaction=True) as pipe:
                pipe.delete(replica_key(self.own.id))
                pipe.srem(REPLICAS, self.own.id)
                await pipe.execute()
        except StateUnavailable:
            logger.debug("the others find out by themselves that replica %s is gone", self.own.id)

    async def all_told(self) -> None:
        """Return if every replica has told Redis what it has, also after Redis has forgotten it.

        Raises:
            StateUnavailable: one may not have, or Redis is away.
        """
        async with self._connection.reached() as redis:
            is_known, is_retold = await redis.exists(replica_key(self.own.id)), await redis.exists(RETELLING)
        if self._is_registered and not (is_known and self.has_been_told and not is_retold):
            words = "not all replicas of the gateway have said yet what they have"
            raise StateUnavailable(words, remedy="try again in a moment")

    @property
    def has_been_told(self) -> bool:
        """Whether every replica has had the time to tell Redis again what that had forgotten."""
        return self._clock() - self._forgotten >= self._lost_after

    async def _look(self, *, is_open: bool) -> None:
        key, said, began = replica_key(self.own.id), json.dumps(asdict(self.own)), self._looked
        async with self._connection.reached() as redis:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.exists(key)
                if is_open:
                    pipe.set(key, said, px=round(self._lost_after * 1_000))
                    pipe.sadd(REPLICAS, self.own.id)
                pipe.set(BEGINNING, secrets.token_hex(_ID_BYTES), nx=True)
                pipe.get(BEGINNING)
                pipe.smembers(REPLICAS)
                was_there, *_, beginning, ids = await pipe.execute()
            if self._is_registered and beginning != self._beginning:
                # Replicas that have come since then have to know it, too.
                await redis.set(RETELLING, self.own.id, px=round(self._lost_after * 1_000))
            self._beginning = beginning
            others = sorted(ids - {self.own.id})
            found: list[str | None] = await redis.mget([replica_key(one) for one in others]) if others else []
            lost = [one for one, text in zip(others, found, strict=True) if text is None]
            if lost:
                await redis.srem(REPLICAS, *lost)
        is_forgotten = self._is_registered and not was_there
        if is_forgotten:
            self._forgotten = self._clock()
        said = [_read(text) for text in found if text is not None]
        known = {one.id: one for one in said if one is not None}
        # The others may not have said again yet that they are there: nobody has left only because Redis has forgotten.
        self._note(self._last_at_their_addresses(known if self.has_been_told else self._known | known))
        was_missed, self._said, self._has_stood_still = self._has_stood_still, began, False
        if is_forgotten:
            self._on_forgotten(was_missed)
        else:
            self._on_found()
        self._is_registered = is_open

    def _last_at_their_addresses(self, known: dict[str, Replica]) -> dict[str, Replica]:
        """Leave out those in whose place another one was started: that has their address, and nothing else of them."""
        last: dict[str, Replica] = {}
        for one in sorted(known.values(), key=lambda one: (one.id == self.own.id, one.started)):
            last[one.address] = one
        last[self.own.address] = self.own
        return {one.id: one for one in last.values()}

    def _note(self, known: dict[str, Replica]) -> None:
        for one in known.keys() - self._known.keys():
            logger.info("replica %s is at %s", one, known[one].address)
        for one in self._known.keys() - known.keys() - {self.own.id}:
            logger.info("replica %s has left", one)
        self._known = {self.own.id: self.own, **known}


def _read(text: str) -> Replica | None:
    """Return what a replica says of itself; None if it is of a version that says something else."""
    said = read_record(text) or {}
    name, address = as_text(said.get("id")), as_text(said.get("address"))
    if name is None or address is None or not address.startswith(("http://", "https://")):
        return None
    state: ReplicaState = "draining" if said.get("state") == "draining" else "up"
    started = said.get("started")
    since = float(started) if isinstance(started, int | float) else 0.0
    return Replica(name, address, state, since, as_text(said.get("version")) or "")
