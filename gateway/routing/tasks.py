"""Tasks (the extension of 2026-07-28): remember the upstream and the client of each.

A call may be answered with a task in place of a result; the host requests the result later by the task's id.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.apps import Audience
from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import Route
from gateway.core.wording import plain
from gateway.errors import UnknownTask
from gateway.routing.per_caller import PerCaller
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

    def remember(self, result: Mapping[str, Any], route: Route, caller: Caller) -> None:
        """Remember that a call over this route returned a task to the caller."""
        task_id = result.get("taskId")
        if isinstance(task_id, str):
            self._owners.put(client_of(caller), task_id, route)

    def route(self, task_id: str, caller: Caller) -> Route:
        """Return the route of the call that returned this task to the caller.

        Raises:
            UnknownTask: no task of this caller has this id.
        """
        route = self._owners.get(client_of(caller), task_id)
        if route is None or not caller.grant.reaches_tool(route.upstream, route.tool):
            raise unknown_task(task_id)
        return route


def unknown_task(task_id: str) -> UnknownTask:
    """Return the error for a task that does not exist for a caller."""
    return UnknownTask(f"this caller has no task {plain(task_id, 100)!r}", remedy="call the tool again")


def wire_route(route: Route) -> dict[str, str]:
    """Return what another replica needs of the route of a task (`route_of`)."""
    return {
        "upstream": route.upstream,
        "tool": route.tool,
        "audience": route.audience,
        "only_app": "yes" if route.only_app else "",
    }


def route_of(wire: Mapping[str, str]) -> Route:
    """Return the route of a task that another replica was given."""
    audience = cast("Audience", wire.get("audience", "model"))
    return Route(wire["upstream"], wire["tool"], audience=audience, only_app=bool(wire.get("only_app")))
