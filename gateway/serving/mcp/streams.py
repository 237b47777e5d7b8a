"""Serve one host of either era over a pair of message streams (stdio, HTTP+SSE)."""

import secrets
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import ClientCapabilities, Implementation, InitializeRequestParams
from pydantic import ValidationError

from gateway.core.model.wire import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.handshake import Handshake, Refusal, enveloped
from gateway.serving.mcp.hosts import introduce
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.upstream.connection.owners import owner_by_session

_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when a subscription ends, so nothing waits for the answer."""


class StreamConnection:
    """One host on a pair of streams.

    `opened_elsewhere`: requests of the handshake are answered before they get here, and only the others arrive.
    `first_id`: the last id of a request to this host by a gateway before this one, over the same connection.
    """

    def __init__(
        self,
        downstream: Downstream,
        reads: ReadStream[SessionMessage | Exception],
        writes: WriteStream[SessionMessage],
        handshake: Handshake,
        *,
        opened_elsewhere: bool = False,
        first_id: int = 0,
    ) -> None:
        self._downstream = downstream
        self._server = downstream.server
        self._session = f"stream {secrets.token_hex(8)}"
        self._handshake = handshake
        self._opened_elsewhere = opened_elsewhere
        self._dispatcher: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(
            reads,
            writes,
            # In order: messages that a host sends right after it already count as initialized.
            inline_methods=frozenset({"initialize"}),
        )
        self._dispatcher._next_id = first_id  # pyright: ignore[reportPrivateUsage]  # it counts on from there
        self._notifications = NotifyOnlyOutbound(self._dispatcher)
        self._legacy = Connection.for_loop(self._dispatcher, session_id=self._session)
        self._runner = ServerRunner(self._server, self._legacy, None)
        self._client: Mapping[str, Any] | None = None
        self._requests = RunningRequests()

    @property
    def session(self) -> str:
        """The name of the host's session."""
        return self._session

    async def serve(self) -> None:
        """Serve until the read stream ends, then cancel what still runs and close the write stream."""
        try:
            with self._downstream.attending(owner_by_session(self._session)):
                await self._dispatcher.run(self._on_request, self._on_notify)
        finally:
            await aclose_shielded(self._legacy)
            self._downstream.left(self._session)

    async def settle(self, patience: float) -> None:
        """Wait at most `patience` seconds until no request is being answered."""
        with anyio.move_on_after(patience):
            await self._requests.quiet()

    async def _on_request(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if method in _ENDLESS:
            return await self._answer(context, method, params)
        with self._requests.one():
            return await self._answer(context, method, params)

    async def _answer(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if not self._opened_elsewhere:
            try:
                answer = self._handshake.answer(method, params)
            except Refusal as refusal:
                raise MCPError(refusal.code, refusal.message, refusal.data) from None
            if answer is not None:
                return answer
        if params is not None and enveloped(params):
            return await self._modern(context, method, params)
        self._know_the_client()
        return await self._runner.on_request(context, method, params)

    async def _modern(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        meta: Mapping[str, Any] = params["_meta"]
        connection = Connection.from_envelope(
            meta[PROTOCOL_VERSION],
            meta.get(CLIENT_INFO),
            meta.get(CLIENT_CAPABILITIES),
            outbound=self._notifications,
        )
        connection.session_id = self._session  # one host, all of whose requests come here
        return await serve_one(self._server, context, method, params, connection=connection, lifespan_state=None)

    async def _on_notify(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> None:
        # The one notification of 2026-07-28, `notifications/cancelled`, is the dispatcher's.
        if self._handshake.era == "handshake":
            self._know_the_client()
            await self._runner.on_notify(context, method, params)

    def _know_the_client(self) -> None:
        client = self._handshake.client
        if client is not None and client is not self._client:
            self._client = client
            introduce(self._legacy, client)
            self._legacy.client_params = _client_params(client)
            self._legacy.protocol_version = self._handshake.revision


def _client_params(client: Mapping[str, Any]) -> InitializeRequestParams:
    """Return the host's `initialize` params. If the SDK's models cannot read them, only the name is kept."""
    try:
        return InitializeRequestParams.model_validate(client, by_name=False)
    except ValidationError:
        info = client["clientInfo"]
        return InitializeRequestParams(
            protocol_version=client["protocolVersion"],
            capabilities=ClientCapabilities(),
            client_info=Implementation(name=info["name"], version=info["version"]),
        )
