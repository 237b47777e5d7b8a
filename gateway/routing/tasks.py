"""Tasks (the extension of 2026-07-28): remember the upstream and the client of each.

A call may be answered with a task in place of a result; the host requests the result later by the task's id.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.apps import Audience
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import Route
from gateway.errors import UnknownTask
from gateway.routing.per_caller import PerCaller
from gateway.routing.replica_port import ReplicaPort
from gateway.upstream.connection.owners import client_of

TASK = "task"
"""The `resultType` of a result that is a task."""

METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})


class Tasks:
    """Remembers the route of each task, separately for each client, so that no client can read another's tasks.

    A client is a principal, a name and a chosen profile: a host may well ask for a task over another connection.
    """

    def __init__(self) -> None:
        self._owners: PerCaller[Route] = PerCaller()
        self.replica: ReplicaPort | None = None
        """This replica among the others, if there are any: they know one another's tasks."""

    async def remember(self, result: Mapping[str, Any], route: Route, caller: Caller) -> None:
        """Remember that a call over this route returned a task to the caller."""
        task_id = result.get("taskId")
        if isinstance(task_id, str):
            self._owners.put(client_of(caller), task_id, route)
            if self.replica is not None:
                self.replica.task_given(client_of(caller), task_id, _wire(route))
                await self.replica.told()

    def route(self, task_id: str, caller: Caller) -> Route:
        """Return the route of the call that returned this task to the caller.

        Raises:
            UnknownTask: no task of this caller has this id.
        """
        route = self._owners.get(client_of(caller), task_id)
        if route is None or not caller.grant.reaches_tool(route.upstream, route.tool):
            raise unknown_task(task_id)
        return route

    async def find(self, task_id: str, caller: Caller) -> Route:
        """Return the route of a task, which another replica may have been given.

        Raises:
            UnknownTask: no task of this caller has this id.
            StateUnavailable: the other replicas cannot be asked.
        """
        client = client_of(caller)
        if self.replica is not None and self._owners.get(client, task_id) is None:
            found = await self.replica.route_of_task(client, task_id)
            if found is not None and {"upstream", "tool"} <= found.keys():
                self._owners.put(client, task_id, _read(found))
        return self.route(task_id, caller)


def unknown_task(task_id: str) -> UnknownTask:
    """Return the error for a task that does not exist for a caller."""
    return UnknownTask(f"this caller has no task {plain(task_id, 100)!r}", remedy="call the tool again")


def _wire(route: Route) -> dict[str, str]:
    """Return what another replica needs of the route of a task (`_read`)."""
    return {
        "upstream": route.upstream,
        "tool": route.tool,
        "audience": route.audience,
        "only_app": "yes" if route.only_app else "",
    }


def _read(wire: Mapping[str, str]) -> Route:
    """Return the route of a task that another replica was given."""
    audience = cast("Audience", wire.get("audience", "model"))
    return Route(wire["upstream"], wire["tool"], audience=audience, only_app=bool(wire.get("only_app")))
