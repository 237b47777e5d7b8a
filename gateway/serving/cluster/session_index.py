"""What another replica needs to take a session over, in Redis: whose it is, and how its host has configured it."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import anyio

from gateway.core.model.json_values import as_list, as_object, as_text, objects_in
from gateway.errors import StateUnavailable
from gateway.serving.cluster.keys import answers_key, session_key
from gateway.serving.cluster.read_record import read_json, read_record
from gateway.serving.databases.shared_records import Pipe, SharedRecords

logger = logging.getLogger(__name__)

_LONGEST = 64 * 1024
"""Maximum bytes of a record: a host that says more of itself starts over when its replica is gone."""
_ANSWERS = 1024 * 1024
_ALL_ANSWERS = 64 * 1024 * 1024
"""Maximum bytes of the answers that are left behind for one session, and for all: Redis keeps them in memory."""
_ANSWER_SECONDS = 300
_REFRESHES = 4
"""How often a record is written anew within the time that it is kept."""
_AT_ONCE = 200
_PATIENCE_SECONDS = 1.0


@dataclass
class SessionRecord:
    """A session of the handshake era over Streamable HTTP.

    `initialize` has the params of the request that opened it; `level` and `watched` are what the host has asked for
    since. `upstreams` are those that keep state for it; `lost` are those whose state was lost with a replica, which the
    host has yet to be told. `replica` is the one that has it; None: it was handed over. `taken` is how often a replica
    has taken it over: what one writes that has missed the last time does not count.
    """

    id: str
    replica: str | None
    principal: str
    token: str | None
    initialize: Mapping[str, Any]
    level: str | None = None
    watched: list[str] = field(default_factory=list[str])
    upstreams: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    taken: int = 0


class SessionIndex:
    """The records of this replica's sessions, written in the background; and a look at those of others.

    `idle` is the number of seconds after which a session without requests is forgotten. A replica that stood still for
    a while is missed by the others, who take its sessions over: it finds that out here when it writes (`is_elsewhere`).
    If Redis has forgotten that too, it is known once `has_been_told` says that all replicas have told it again.
    """

    def __init__(
        self,
        connection: SharedRecords,
        own: str,
        idle: float,
        clock: Callable[[], float] = time.monotonic,
        has_been_told: Callable[[], bool] = lambda: True,
    ) -> None:
        self._connection = connection
        self._has_been_told = has_been_told
        self._own = own
        self._idle = idle
        self._clock = clock
        self._records: dict[str, SessionRecord] = {}
        self._written: dict[str, float] = {}
        self._due: dict[str, None] = {}
        self._ending: set[str] = set()
        """Sessions that have ended, and whose records have yet to be deleted."""
        self._unsure: set[str] = set()
        """Sessions that others may have taken over: Redis has forgotten this replica since they were written."""
        self._was_missed = False
        """Whether others may have missed this replica before Redis forgot it."""
        self._doubtful: set[str] = set()
        """Sessions of which Redis knew less than this replica then: others may have taken them over before."""
        self._elsewhere: set[str] = set()
        self._wake = anyio.Event()
        self.is_frozen = False
        """Whether the records stay as they are, since this replica stops."""
        self._writing = anyio.Lock()
        """What is written of a session at last is what was true at last."""

    def __len__(self) -> int:
        return len(self._records)

    def of(self, session: str) -> SessionRecord | None:
        """Return the record of a session of this replica, to be changed; call `changed` afterwards."""
        return self._records.get(session)

    def add(self, record: SessionRecord) -> None:
        """Keep the record of a session that this replica has from now on."""
        record.replica = self._own
        self._records[record.id] = record
        self._ending.discard(record.id)
        self._elsewhere.discard(record.id)
        self.changed(record.id)

    def changed(self, session: str) -> None:
        """Write the record of a session, soon."""
        if self.is_frozen:
            return
        self._due[session] = None
        self._wake.set()

    def is_elsewhere(self, session: str) -> bool:
        """Whether another replica has taken over a session that is still open here."""
        return session in self._elsewhere

    async def confirm(self, session: str) -> None:
        """Find out whether a session is still this replica's; it counts as that while Redis is away.

        Raises:
            StateUnavailable: another replica may have it, and has not yet said so to a Redis that has forgotten it.
        """
        if session in self._unsure:
            await self.write_now(session)
        if session in self._doubtful and not self._has_been_told():
            words = "it is not known yet whether another replica of the gateway has taken the session over"
            raise StateUnavailable(words, remedy="try again in a moment")

    async def write_now(self, session: str) -> None:
        """Write the record of a session, and wait for that; while Redis is away, it is written later."""
        try:
            await self._write([session], self._own)
        except StateUnavailable:
            self.changed(session)

    def remove(self, session: str) -> None:
        """Forget a session that has ended, unless it ended because this replica stops."""
        self._elsewhere.discard(session)
        if not self.is_frozen and session in self._records:
            self._forget(session)
            self._ending.add(session)
            self.changed(session)

    def is_ending(self, session: str) -> bool:
        """Whether a session has ended here, which its record does not say yet."""
        return session in self._ending

    def let_go(self, session: str) -> None:
        """Forget a session that was claimed and cannot be opened now: it may be claimed again."""
        self._forget(session)

    def rewrite(self, *, was_missed: bool = False) -> None:
        """Write all records anew: Redis has lost them, or has missed this replica; `was_missed` if others may have."""
        self._was_missed = was_missed or (self._was_missed and bool(self._unsure))
        self._unsure.update(self._records)
        self._due.update(dict.fromkeys(self._records))
        self._wake.set()

    async def run(self) -> None:
        """Run forever: write what has changed, and keep the records of sessions that are there."""
        while True:
            with anyio.move_on_after(self._idle / _REFRESHES):
                await self._wake.wait()
            self._wake = anyio.Event()
            old = self._clock() - self._idle / _REFRESHES
            self._due.update({one: None for one, at in self._written.items() if at <= old})
            while self._due:
                await self.flush()

    async def flush(self) -> None:
        """Write some of what has changed; wait for a moment if Redis is away."""
        batch = list(self._due)[:_AT_ONCE]
        for one in batch:
            del self._due[one]
        try:
            await self._write(batch, self._own)
        except StateUnavailable:
            self._due = {**dict.fromkeys(batch), **self._due}
            await anyio.sleep(_PATIENCE_SECONDS)

    def freeze(self) -> None:
        """Let the records be as they are: this replica stops, and with it its sessions, which others may go on with."""
        self.is_frozen = True
        self._due.clear()

    async def leave(self, session: str, answers: Sequence[Mapping[str, Any]]) -> None:
        """Leave one session to whichever replica is asked for it first, with the answers that its host lacks.

        Raises:
            StateUnavailable: Redis is away; the session stays here.
        """
        await self._leave([session], {session: answers} if answers else {})
        self._forget(session)

    async def hand_over(self, answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Leave all sessions to whichever replica is asked for them first, with the answers that their hosts lack.

        Raises:
            StateUnavailable: Redis is away.
        """
        await self._leave(list(self._records), answers)

    async def _leave(self, sessions: Sequence[str], answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        room = _ALL_ANSWERS
        for start in range(0, len(sessions), _AT_ONCE):
            await self._write(sessions[start : start + _AT_ONCE], None)
        async with self._connection.reached() as redis:
            for session, messages in answers.items():
                text = json.dumps(messages)
                if len(text) <= min(room, _ANSWERS):
                    room -= len(text)
                    await redis.set(answers_key(session), text, ex=_ANSWER_SECONDS)

    async def answers(self, session: str) -> Sequence[Mapping[str, Any]]:
        """Return the answers that a replica has left behind for a session.

        Raises:
            StateUnavailable: Redis is away.
        """
        async with self._connection.reached() as redis:
            text = await redis.get(answers_key(session))
        return objects_in(as_list(read_json(text)))

    async def forget_answers(self, session: str) -> None:
        """Delete them, or let them expire while Redis is away."""
        with suppress(StateUnavailable):
            async with self._connection.reached() as redis:
                await redis.delete(answers_key(session))

    async def find(self, session: str) -> SessionRecord | None:
        """Return the record of any session.

        Raises:
            StateUnavailable: Redis is away.
        """
        async with self._connection.reached() as redis:
            return _read(session, await redis.get(session_key(session)))

    async def claim(self, found: SessionRecord) -> SessionRecord | None:
        """Take over a session as it was found, and return its record; None if another replica was faster.

        Raises:
            StateUnavailable: Redis is away.
        """
        key = session_key(found.id)

        async def take(pipe: Pipe) -> SessionRecord | None:
            now = _read(found.id, await pipe.get(key))
            if now is None or now.replica != found.replica:
                return None
            now.replica, now.taken = self._own, now.taken + 1
            now.lost = list(now.upstreams)  # of which nobody knows whether the host was told of an earlier loss
            pipe.multi()
            pipe.set(key, _wire(now), px=self._milliseconds)
            return now

        return await self._connection.decided(take, key)

    async def _write(self, sessions: Sequence[str], replica: str | None) -> None:
        """Write records, or delete those of sessions that have ended, except where others have taken them over."""
        if not sessions:
            return

        async def write(pipe: Pipe) -> Mapping[str, SessionRecord]:
            async with self._connection.reached() as redis:  # the pipeline of a Redis cluster has no mget
                texts = await redis.mget([session_key(one) for one in sessions])
            found = {one: _read(one, text) for one, text in zip(sessions, texts, strict=True)}
            own = [one for one in sessions if self._is_own(one, found[one])]
            if self._was_missed:
                self._doubtful.update(one for one in own if one in self._unsure and self._is_older(one, found[one]))
            pipe.multi()
            for one in own:
                self._write_one(pipe, one, replica)
            return {one: self._records[one] for one in sessions if one in self._records and one not in own}

        async with self._writing:
            taken = await self._connection.decided(write, *map(session_key, sessions))
        self._ending.difference_update(sessions)
        now = self._clock()
        if self._has_been_told():  # until then, one that has taken a session over may not have told Redis again
            self._unsure.difference_update(sessions)
            self._doubtful.difference_update(sessions)
        self._written.update((one, now) for one in sessions if one in self._records)
        for one, record in taken.items():
            if self._records.get(one) is record:
                logger.info("a session is given up: another replica has taken it over while this one was missed")
                self._forget(one)
                self._elsewhere.add(one)

    def _is_own(self, session: str, there: SessionRecord | None) -> bool:
        record = self._records.get(session)
        if record is None:
            return session in self._ending and there is not None and there.replica == self._own
        return there is None or there.taken <= record.taken

    def _is_older(self, session: str, there: SessionRecord | None) -> bool:
        """Whether Redis knows less of a session than this replica: it was emptied."""
        record = self._records.get(session)
        return record is not None and (there is None or there.taken < record.taken)

    def _write_one(self, pipe: Pipe, session: str, replica: str | None) -> None:
        record = self._records.get(session)
        if record is None:
            pipe.delete(session_key(session))
            return
        record.replica = replica
        if len(text := _wire(record)) <= _LONGEST:
            pipe.set(session_key(session), text, px=self._milliseconds)

    def _forget(self, session: str) -> None:
        for kept in (self._records, self._written, self._due):
            kept.pop(session, None)
        self._unsure.discard(session)
        self._doubtful.discard(session)

    @property
    def _milliseconds(self) -> int:
        return round(self._idle * 1_000)


def _wire(record: SessionRecord) -> str:
    return json.dumps(asdict(record))


def _read(session: str, text: str | None) -> SessionRecord | None:
    """Return a record; None if there is none, or none that a gateway of this version can have written.

    A session of which nothing can be read is unknown: its host opens another one.
    """
    if (said := read_record(text)) is None:
        return None
    principal = as_text(said.get("principal"))
    if said.get("id") != session or principal is None:
        logger.warning("the record of a session is of another version: its host has to open another one")
        return None
    return SessionRecord(
        session,
        as_text(said.get("replica")),
        principal,
        as_text(said.get("token")),
        as_object(said.get("initialize")),
        as_text(said.get("level")),
        [one for one in as_list(said.get("watched")) if isinstance(one, str)],
        [one for one in as_list(said.get("upstreams")) if isinstance(one, str)],
        [one for one in as_list(said.get("lost")) if isinstance(one, str)],
        taken if isinstance(taken := said.get("taken"), int) else 0,
    )
