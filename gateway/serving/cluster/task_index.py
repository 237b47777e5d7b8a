"""Where tasks are: the upstream and the tool of each, and the replica that was given it."""

import json
from collections.abc import Mapping

from gateway.core.model.json_values import as_object
from gateway.serving.cluster.keys import task_key
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.shared_records import SharedRecords

_KEPT_SECONDS = 86_400
_REPLICA = "replica"


class TaskIndex:
    """Tasks of all replicas, in Redis."""

    def __init__(self, connection: SharedRecords, soon: Soon, own: str) -> None:
        self._connection = connection
        self._soon = soon
        self._own = own

    def given(self, client: str, task: str, route: Mapping[str, str]) -> None:
        """Note a task that a client was given here, soon."""
        text = json.dumps({**route, _REPLICA: self._own})
        self._soon.write(lambda pipe: pipe.set(task_key(client, task), text, ex=_KEPT_SECONDS))

    async def find(self, client: str, task: str) -> tuple[str, Mapping[str, str]] | None:
        """Return the replica that was given a task of this client, and the task's route.

        Raises:
            StateUnavailable: Redis is away.
        """
        async with self._connection.reached() as redis:
            text = await redis.get(task_key(client, task))
            if text is None:
                return None
            route = {key: value for key, value in as_object(json.loads(text)).items() if isinstance(value, str)}
            replica = route.pop(_REPLICA, None)
            return None if replica is None else (replica, route)
