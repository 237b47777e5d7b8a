"""Channels to hosts: requests and notifications of upstreams for a host, during a call and afterwards."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError

from gateway.core.model.approval_mark import unforged
from gateway.core.model.caller import Caller
from gateway.core.model.wire import LOG_LEVELS, METHOD_NOT_FOUND
from gateway.errors import HostRefused
from gateway.serving.mcp.safe_json import json_safe
from gateway.upstream.connection.owners import host_of as host_of_caller

LOG = "notifications/message"

_PATIENCE_SECONDS = 5.0
_LEVEL = "gateway.log_level"
_CLIENT = "gateway.client"

_logger = logging.getLogger(__name__)


def introduce(connection: Connection, params: Mapping[str, Any]) -> None:
    """Store the params of `initialize`, with which a host of the handshake era introduces itself."""
    connection.state[_CLIENT] = params


def introduced(connection: Connection) -> Mapping[str, Any]:
    """Return these params unmodified: the SDK's models lose fields that they do not know."""
    return connection.state.get(_CLIENT, {})


def level_of(connection: Connection) -> str | None:
    """The minimum log level that a host of the handshake era has set, or None."""
    return connection.state.get(_LEVEL)


def set_level(connection: Connection, level: str) -> None:
    """Store the minimum log level (`logging/setLevel`)."""
    connection.state[_LEVEL] = level


class HostChannel:
    """One host over one channel: that of a request (the stream of its answer), or its connection beyond any request.

    A host of the modern era is never sent requests here, and only notifications that its own request asks for.
    """

    bounds_waiting = False

    def __init__(
        self,
        channel: Outbound,
        caller: Caller,
        connection: Connection | None,
        close_stream: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._channel = channel
        self._caller = caller
        self._beyond = connection
        self._close_stream = close_stream
        self.party = host_of_caller(caller)

    @property
    def connection(self) -> "HostChannel | None":
        """The same host beyond its request; None in the modern era."""
        return None if self._beyond is None else HostChannel(self._beyond, self._caller, None)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to the host and return its result.

        Raises:
            HostRefused: the host returned an error, or the channel allows no requests.
        """
        if self._caller.is_modern:
            raise HostRefused(METHOD_NOT_FOUND, f"a host of {self._caller.revision} is not asked {method}")
        try:
            return await self._channel.send_raw_request(method, await json_safe(unforged(params)))
        except MCPError as error:
            raise HostRefused(error.code, error.message, await json_safe(error.data)) from None

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, if the host wants it. A host that does not read does not delay the upstream."""
        if not self._wants(method, params):
            return
        with anyio.move_on_after(_PATIENCE_SECONDS):
            try:
                await self._channel.notify(method, await json_safe(unforged(params)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, MCPError):
                _logger.debug("a host is gone: %s was not sent", method)

    async def let_go(self) -> None:
        """Close the stream of the answer; a host that supports it (2025-11-25, SEP-1699) resumes it later."""
        if self._close_stream is not None:
            await self._close_stream()

    def _wants(self, method: str, params: Mapping[str, Any]) -> bool:
        if method != LOG:
            return not self._caller.is_modern
        wanted, level = self._caller.log_level, params.get("level")
        if wanted is None:
            return not self._caller.is_modern  # 2026-07-28: only those that a request asks for
        known = level in LOG_LEVELS and wanted in LOG_LEVELS
        return known and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)


def host_channel(context: ServerRequestContext[Any, Any], caller: Caller) -> HostChannel:
    """Return the channel to the host that sent this request."""
    # The SDK exposes neither channel; raw messages need both.
    session = context.session
    request = session._request_outbound  # pyright: ignore[reportPrivateUsage]
    if caller.is_modern:
        return HostChannel(request, caller, None)
    connection = session._connection  # pyright: ignore[reportPrivateUsage]
    return HostChannel(request, caller, connection, context.close_sse_stream)
