"""Notify hosts of changes: over open connections in the handshake era, to listeners in the modern era."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.wire import INTERNAL_ERROR, INVALID_REQUEST
from gateway.errors import GatewayError, InvalidRequest
from gateway.serving.mcp.drain_streams import cancelled_without_token
from gateway.serving.mcp.request_caller import caller_of
from gateway.serving.mcp.service import Service
from gateway.upstream.connection.owners import host_of

_PATIENCE_SECONDS = 5.0
_EVENTS = {"tools": ToolsListChanged, "prompts": PromptsListChanged, "resources": ResourcesListChanged}
_MOST_WATCHED = 1_000
_MOST_STREAMS = 64
"""Maximum number for one host."""
_MOST_STREAMS_OF_ALL = 1_024

_logger = logging.getLogger(__name__)


class _Stream:
    """One open `subscriptions/listen`, with a bus of its own: each caller hears of what exists for it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.bus = InMemorySubscriptionBus()
        self.handler = ListenHandler(self.bus)


def _ignore(_connection: Connection, _kind: str) -> None:
    """Do nothing about a list that has changed."""


class Announcer:
    """Notifies the hosts that asked for it. A host that does not read does not delay the others."""

    def __init__(self, service: Service, on_list_changed: Callable[[Connection, str], None] = _ignore) -> None:
        self._service = service
        self._on_list_changed = on_list_changed
        """Called for each connection whose host is notified that a list has changed, with the kind of the list."""
        self._streams: dict[object, _Stream] = {}
        """The open `subscriptions/listen` requests."""
        self._connections: dict[Connection, dict[str, Callable[[], None]]] = {}
        """Connections of the handshake era, each with the resources that it watches and functions that end this."""
        self._callers: dict[Connection, Caller] = {}
        self._listening: Counter[str] = Counter()
        """The number of open `subscriptions/listen` requests of each host."""
        self._changed: dict[Change, None] = {}
        self._wake = anyio.Event()

    @property
    def connections(self) -> int:
        """The number of connected hosts of the handshake era."""
        return len(self._connections)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one `subscriptions/listen`. The acknowledgement leaves out resources that no upstream has."""
        asked, caller = params.notifications, caller_of(context)
        host = host_of(caller)
        if self._listening[host] >= _MOST_STREAMS:
            raise MCPError(INTERNAL_ERROR, f"a host may have {_MOST_STREAMS} subscriptions open; end one of them first")
        if len(self._streams) >= _MOST_STREAMS_OF_ALL:
            raise MCPError(INTERNAL_ERROR, "too many subscriptions are open; try again later")
        async with AsyncExitStack() as watched:
            self._listening[host] += 1
            watched.callback(self._listened, host)
            uris: list[str] = []
            for uri in (asked.resource_subscriptions or ())[:_MOST_WATCHED]:
                with suppress(GatewayError):
                    watched.callback(await self._service.watch(uri, caller))
                    uris.append(uri)
            watched.enter_context(self._service.attending(host))
            promised = asked.model_copy(update={"resource_subscriptions": uris or None})
            stream = self._streams[key := object()] = _Stream(caller)
            watched.callback(self._streams.pop, key)
            with cancelled_without_token(getattr(context.request, "scope", {})):
                return await stream.handler(context, params.model_copy(update={"notifications": promised}))
            raise MCPError(INVALID_REQUEST, "the bearer token is no longer valid")

    def _listened(self, host: str) -> None:
        self._listening[host] -= 1
        if not self._listening[host]:
            del self._listening[host]

    def follow(self, session: ServerSession, caller: Caller) -> Connection:
        """Notify this host (handshake era) for as long as its connection is open. Return the connection."""
        # The SDK has no public way to learn of the end of a connection that its own HTTP manager opened.
        connection = session._connection  # pyright: ignore[reportPrivateUsage]
        self._callers[connection] = caller  # its token may reach something else than before
        if connection not in self._connections:
            self._connections[connection] = {}
            connection.exit_stack.callback(self._forget, connection, caller.session)
        return connection

    async def subscribe(self, connection: Connection, uri: str, caller: Caller) -> None:
        """Notify this host when the resource changes.

        Raises `GatewayError` if there is no such resource, or if the host watches too many.
        """
        watched = self._connections.get(connection)
        if watched is None or uri in watched:
            return
        if len(watched) >= _MOST_WATCHED:
            raise InvalidRequest(f"a host may subscribe to {_MOST_WATCHED:,} resources", remedy="unsubscribe from some")
        watched[uri] = await self._service.watch(uri, caller)

    def unsubscribe(self, connection: Connection, uri: str) -> None:
        """Stop notifying this host of changes of the resource."""
        if (end := self._connections.get(connection, {}).pop(uri, None)) is not None:
            end()

    def _forget(self, connection: Connection, session: str | None) -> None:
        self._callers.pop(connection, None)
        for end in self._connections.pop(connection, {}).values():
            end()
        if session is not None:
            self._service.left(session)

    def changed(self, change: Change) -> None:
        """Announce a change of a list or a resource to the hosts that are to hear of it.

        Returns at once. Changes of one list that are due together are announced once.
        """
        self._changed[change] = None
        self._wake.set()

    def close(self) -> None:
        """End every `subscriptions/listen` regularly."""
        for stream in tuple(self._streams.values()):
            stream.handler.close()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Context manager: changes are announced while it is open."""
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
                changes, self._changed = tuple(self._changed), dict[Change, None]()
                # Whom a change concerns takes a while to find out for many tools: requests need not wait for all hosts.
                for connection, watched in tuple(self._connections.items()):
                    await anyio.lowlevel.checkpoint()
                    if (caller := self._callers.get(connection)) is None:  # it has ended meanwhile
                        continue
                    for kind, uri in self._heard(caller, changes).items():
                        if uri is None or uri in watched:
                            if uri is None:
                                self._on_list_changed(connection, kind)
                            tasks.start_soon(self.tell, connection, kind, uri)
                for stream in tuple(self._streams.values()):
                    await anyio.lowlevel.checkpoint()
                    for kind, uri in self._heard(stream.caller, changes).items():
                        await stream.bus.publish(_EVENTS[kind]() if uri is None else ResourceUpdated(uri=uri))

    def _heard(self, caller: Caller, changes: Sequence[Change]) -> Mapping[str, str | None]:
        """Return the kinds of those changes that this host is to hear of, with the URI of a resource."""
        return {change.kind: change.uri for change in changes if self._service.hears(caller, change)}

    async def tell_listener(self, caller: Caller, kind: str) -> None:
        """Notify a host of 2026-07-28 of a changed list, where it listens for that."""
        for stream in tuple(self._streams.values()):
            if host_of(stream.caller) == host_of(caller):
                await stream.bus.publish(_EVENTS[kind]())

    async def tell(self, connection: Connection, kind: str, uri: str | None = None) -> None:
        """Notify the host of a connection of a changed list, or resource. Waits a while for one that does not read."""
        method = f"notifications/{kind}/list_changed" if uri is None else "notifications/resources/updated"
        with anyio.move_on_after(_PATIENCE_SECONDS) as patience:
            await connection.notify(method, None if uri is None else {"uri": uri})
        if patience.cancelled_caught:
            _logger.debug("a host did not take %s", method)
