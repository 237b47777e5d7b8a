"""The messages that have no answer, one after the other: notifications, and answers to the upstream's requests."""

import logging

import anyio
import httpx2
from anyio.abc import AsyncResource
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification

from gateway.errors import UpstreamError
from gateway.upstream.transports.causes import HttpStatus, NotMcp, SessionExpired
from gateway.upstream.transports.messages import write_message
from gateway.upstream.transports.streamable.wire import Wire

logger = logging.getLogger(__name__)


class Notices(AsyncResource):
    """A write stream that posts what it is given."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._turn = anyio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        """Post a message. A failure is nobody's: the next request meets it as well, if it lasts."""
        metadata, message = item.metadata, item.message
        headers = (metadata.headers if isinstance(metadata, ClientMessageMetadata) else None) or {}
        async with self._turn:
            self._wire.begin(message.method if isinstance(message, JSONRPCNotification) else "", headers)
            try:
                await self._wire.tell(write_message(message), headers)
            except (HttpStatus, NotMcp, SessionExpired, MCPError, UpstreamError, httpx2.TransportError) as failure:
                logger.debug("an upstream did not take a message: %s", type(failure).__name__)

    async def aclose(self) -> None:
        """There is nothing to close: the connections are the client's."""
