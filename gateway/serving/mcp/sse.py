"""HTTP+SSE, the transport of 2024-11-05: an event stream to the host, and a route for its messages."""

import logging

import anyio
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from gateway.config.toolset_settings import AUTO
from gateway.serving.http import address_of
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.handshake import Handshake
from gateway.serving.mcp.request_caller import PROFILE_SCOPE, grant_of, principal_of
from gateway.serving.mcp.security import refused_response
from gateway.serving.mcp.streams import StreamConnection
from gateway.serving.mcp.toolset_choice import chosen_in
from gateway.upstream.transports.backlog import Backlog
from gateway.upstream.transports.bounded import json_in

logger = logging.getLogger(__name__)

MESSAGES_PATH = "/messages"


class SseEndpoints:
    """Both routes. What is chosen for the stream is part of the path to which the host sends its messages."""

    def __init__(
        self,
        downstream: Downstream,
        security: TransportSecuritySettings,
        max_request_bytes: int,
        max_unread_bytes: int,
        path: str = MESSAGES_PATH,
    ) -> None:
        self._path = path
        self._downstream = downstream
        self._security = security
        self._max_request_bytes = max_request_bytes
        self._max_unread_bytes = max_unread_bytes
        # The SDK's transport has a single path to post to, so there is one transport for each choice.
        self._transports: dict[str, SseServerTransport] = {}

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET: serve one host for as long as it keeps the stream open."""
        if scope["method"] != "GET":
            return await refused_response(405, "GET opens the stream of events", {"Allow": "GET"})(scope, receive, send)
        transport = self._transport(scope[PROFILE_SCOPE], chosen_in(scope))
        with anyio.CancelScope() as connection:

            def give_up(much: str) -> None:
                logger.warning("a host at %s does not read its stream: %s; it is ended", address_of(scope), much)
                connection.cancel()

            async with transport.connect_sse(scope, receive, send) as (reads, writes):
                unread = Backlog[SessionMessage](writes, self._max_unread_bytes, give_up, json_of=json_in)
                request = Request(scope)
                handshake = Handshake(self._downstream.identity.towards(grant_of(request), principal_of(request)))
                await StreamConnection(self._downstream, reads, unread, handshake).serve()
        return None

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST: accept one message for an open stream."""
        transport = self._transport(scope[PROFILE_SCOPE], chosen_in(scope, by_header=False))
        await transport.handle_post_message(scope, receive, send)

    def _transport(self, profile: str | None, toolset: str | None) -> SseServerTransport:
        if toolset is not None:
            path = f"{self._path}/{profile or AUTO}/{toolset}"
        else:
            path = self._path if profile is None else f"{self._path}/{profile}"
        if path not in self._transports:
            self._transports[path] = SseServerTransport(path, self._security, self._max_request_bytes)
        return self._transports[path]
