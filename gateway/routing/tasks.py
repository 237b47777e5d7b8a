"""Tasks (the extension of 2026-07-28): which upstream has which, and for whom.

A call may be answered with a task in place of a result; the host asks for the result later, by the task's id.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.wording import plain
from gateway.errors import InvalidRequest

TASK = "task"
"""The `resultType` of a result that is a task."""

METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

_REMEMBERED = 10_000


class Tasks:
    """Remembers who has the tasks that hosts were given: of each principal its own, so that nobody reads another's."""

    def __init__(self) -> None:
        self._owners: OrderedDict[tuple[str, str], str] = OrderedDict()

    def remember(self, result: Mapping[str, Any], upstream: str, caller: Caller) -> None:
        """Keep in mind that this upstream has given the caller a task."""
        task_id = result.get("taskId")
        if isinstance(task_id, str):
            self._owners[caller.principal, task_id] = upstream
            while len(self._owners) > _REMEMBERED:
                self._owners.popitem(last=False)

    def upstream(self, task_id: str, caller: Caller) -> str:
        """The upstream that has a task of this caller.

        Raises:
            InvalidRequest: nobody has, as far as is known.
        """
        upstream = self._owners.get((caller.principal, task_id))
        if upstream is None:
            raise InvalidRequest(f"no task of this caller is {plain(task_id, 100)!r}", remedy="call the tool again")
        return upstream
