"""Telling hosts that a list has changed: the live connections of the handshake era, the listeners of the modern one."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams, SubscriptionsListenResult

_PATIENCE_SECONDS = 5.0
_EVENTS = {"tools": ToolsListChanged, "resources": ResourcesListChanged}

_logger = logging.getLogger(__name__)


class Announcer:
    """Knows who is to be told, and tells them. A host that does not read costs the others nothing."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self._bus)
        self._connections: set[Connection] = set()
        self._changed: set[str] = set()
        self._wake = anyio.Event()

    @property
    def connections(self) -> int:
        """How many hosts of the handshake era are connected."""
        return len(self._connections)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one `subscriptions/listen`. Promised is only what can happen: changes of tools and of resources."""
        asked = params.notifications
        offered = SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed, resources_list_changed=asked.resources_list_changed
        )
        return await self._listeners(context, params.model_copy(update={"notifications": offered}))

    def follow(self, session: ServerSession) -> Connection:
        """Tell this host too, for as long as its connection lives (handshake era); returns the connection."""
        # The SDK has no public handle for the end of a connection that its own HTTP manager opened.
        connection = session._connection  # pyright: ignore[reportPrivateUsage]
        if connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._connections.discard, connection)
        return connection

    def changed(self, kind: str) -> None:
        """The list of this kind ("tools" or "resources") has changed. At once; what is due together is told once."""
        self._changed.add(kind)
        self._wake.set()

    def close(self) -> None:
        """End every `subscriptions/listen` in good order."""
        self._listeners.close()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While this is open, changes are told."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_all)
            yield
            self.close()
            tasks.cancel_scope.cancel()

    async def _tell_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                kinds, self._changed = sorted(self._changed), set[str]()
                for kind in kinds:
                    for connection in tuple(self._connections):
                        tasks.start_soon(self._tell, connection, kind)
                    if event := _EVENTS.get(kind):
                        await self._bus.publish(event())

    async def _tell(self, connection: Connection, kind: str) -> None:
        with anyio.move_on_after(_PATIENCE_SECONDS) as patience:
            await connection.notify(f"notifications/{kind}/list_changed", None)
        if patience.cancelled_caught:
            _logger.debug("a host did not take notifications/%s/list_changed", kind)
