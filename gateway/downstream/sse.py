"""HTTP+SSE, the transport of 2024-11-05: a stream of events to the host, and a route that takes its messages."""

from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from gateway.downstream.calling import PROFILE_SCOPE
from gateway.downstream.handshake import Handshake
from gateway.downstream.security import refusal
from gateway.downstream.serving import Downstream
from gateway.downstream.streams import StreamConnection

MESSAGES_PATH = "/messages"


class SseEndpoints:
    """Both routes. A profile chosen for the stream stays in the path to which the host sends its messages."""

    def __init__(self, downstream: Downstream, security: TransportSecuritySettings, max_request_bytes: int) -> None:
        self._downstream = downstream
        self._security = security
        self._max_request_bytes = max_request_bytes
        # The SDK's transport has one path to post to: so there is one for each profile.
        self._transports: dict[str | None, SseServerTransport] = {}

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET: serve one host for as long as it holds the stream open."""
        if scope["method"] != "GET":
            return await refusal(405, "GET opens the stream of events", {"Allow": "GET"})(scope, receive, send)
        transport = self._transport(scope[PROFILE_SCOPE])
        async with transport.connect_sse(scope, receive, send) as (reads, writes):
            handshake = Handshake(self._downstream.identity)
            await StreamConnection(self._downstream, reads, writes, handshake).serve()
        return None

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST: take one message for a stream that is open."""
        await self._transport(scope[PROFILE_SCOPE]).handle_post_message(scope, receive, send)

    def _transport(self, profile: str | None) -> SseServerTransport:
        if profile not in self._transports:
            path = MESSAGES_PATH if profile is None else f"{MESSAGES_PATH}/{profile}"
            self._transports[profile] = SseServerTransport(path, self._security, self._max_request_bytes)
        return self._transports[profile]
