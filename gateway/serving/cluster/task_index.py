"""Where tasks and long calls are: the route of each, the replica that was given it, and how a long call has ended."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway.errors import StateUnavailable
from gateway.routing.replica_port import CallElsewhere
from gateway.serving.cluster.keys import outcome_key, task_key
from gateway.serving.cluster.read_record import read_record
from gateway.serving.cluster.replicas import Replicas
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.shared_records import Pipe, SharedRecords

_KEPT_SECONDS = 86_400
_REPLICA = "replica"
_MOST = 10_000
_LONGEST_OUTCOME = 1024 * 1024
"""Maximum bytes of an outcome in Redis, which keeps it in memory: a larger one is lost with its replica."""
_ALL_OUTCOMES = 64 * 1024 * 1024
"""Maximum bytes of the outcomes that one replica writes again when Redis has lost them; older ones are left out."""

Task = tuple[str, str]
"""A client, and the id of one of its tasks or long calls."""


class TaskIndex:
    """Tasks and long calls of all replicas, in Redis; those of this one are written again when Redis has lost them."""

    def __init__(self, connection: SharedRecords, soon: Soon, replicas: Replicas) -> None:
        self._connection = connection
        self._soon = soon
        self._replicas = replicas
        self._here: OrderedDict[Task, str] = OrderedDict()
        self._found: OrderedDict[Task, str] = OrderedDict()
        """Those that other replicas have, as they were found: they hold while Redis is away."""
        self._outcomes: OrderedDict[Task, tuple[str, float]] = OrderedDict()
        self._held = 0

    def given(self, client: str, task: str, route: Mapping[str, str]) -> None:
        """Note a task that a client was given here, soon."""
        text = json.dumps({**route, _REPLICA: self._replicas.own.id})
        _put(self._here, (client, task), text)
        self._write_task((client, task), text)

    def ended(self, client: str, call: str, outcome: Mapping[str, Any], seconds: float) -> None:
        """Keep the outcome of a long call of this replica for so long, soon; not if it is too large."""
        text = json.dumps(outcome)
        if len(text) > _LONGEST_OUTCOME:
            return
        self._forget_outcome((client, call))
        self._outcomes[client, call] = text, seconds
        self._held += len(text)
        while self._held > _ALL_OUTCOMES:
            self._forget_outcome(next(iter(self._outcomes)))
        self._write_outcome((client, call), text, seconds)

    def forgotten(self, client: str, call: str) -> None:
        """Forget a long call of this replica, soon."""
        if self._here.pop((client, call), None) is not None:
            self._forget_outcome((client, call))
            self._soon.write(lambda pipe: pipe.delete(task_key(client, call), outcome_key(client, call)))

    def rewrite(self) -> None:
        """Write everything of this replica anew, soon: Redis has lost it."""
        for task, text in self._here.items():
            self._write_task(task, text)
        for task, (text, seconds) in self._outcomes.items():
            self._write_outcome(task, text, seconds)

    async def find(self, client: str, task: str) -> tuple[str, Mapping[str, str]] | None:
        """Return the replica that was given a task of this client, and the task's route.

        Raises:
            StateUnavailable: Redis is away, or has not been told everything again, and this replica does not know it.
        """
        try:
            async with self._connection.reached() as redis:
                text: str | None = await redis.get(task_key(client, task))
            if (found := _read(text)) is not None and text is not None:
                _put(self._found, (client, task), text)
            elif (found := _read(self._here.get((client, task)))) is None:
                await self._replicas.all_told()
        except StateUnavailable:
            found = _read(self._here.get((client, task)) or self._found.get((client, task)))
            if found is None:
                raise
        return found

    async def elsewhere(self, client: str, call: str) -> CallElsewhere | None:
        """Return what is known of a long call that another replica has, or had; None if there is none.

        Raises:
            StateUnavailable: Redis is away, or has not been told everything again.
        """
        async with self._connection.reached() as redis:
            text: str | None = await redis.get(outcome_key(client, call))
        if (outcome := read_record(text)) is not None:
            return CallElsewhere(outcome, is_running=False)
        if (found := await self.find(client, call)) is None or found[0] == self._replicas.own.id:
            return None
        return CallElsewhere(None, is_running=await self._replicas.find(found[0]) is not None)

    def _write_task(self, task: Task, text: str) -> None:
        self._soon.write(partial(_set, task_key(*task), text, _KEPT_SECONDS))

    def _write_outcome(self, task: Task, text: str, seconds: float) -> None:
        self._soon.write(partial(_set, outcome_key(*task), text, max(1, round(seconds))))

    def _forget_outcome(self, task: Task) -> None:
        text, _ = self._outcomes.pop(task, ("", 0.0))
        self._held -= len(text)


def _read(text: str | None) -> tuple[str, Mapping[str, str]] | None:
    """Return the replica and the route in a record; None if there is none, or none that a gateway has written."""
    route = {key: value for key, value in (read_record(text) or {}).items() if isinstance(value, str)}
    replica = route.pop(_REPLICA, None)
    return None if replica is None else (replica, route)


def _set(key: str, text: str, seconds: int, pipe: Pipe) -> object:
    return pipe.set(key, text, ex=seconds)


def _put(kept: OrderedDict[Task, str], task: Task, text: str) -> None:
    kept[task] = text
    kept.move_to_end(task)
    if len(kept) > _MOST:
        kept.popitem(last=False)
