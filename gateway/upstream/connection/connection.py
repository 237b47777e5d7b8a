"""One connection to an upstream: a transport, the JSON-RPC dispatcher over it, and the session on top.

This module and its imports are heavy (the SDK: most of a second), so it is loaded when the first upstream connects, and
never before a host's first response.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio
from mcp.shared.dispatcher import DispatchContext, Dispatcher
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import HostRefused
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.host_requests import HostRequests
from gateway.upstream.connection.session import OnNotification, Session
from gateway.upstream.transports.bounded import BoundedDispatcher
from gateway.upstream.transports.causes import ConnectionEnded, Stopping
from gateway.upstream.transports.channel import Channel
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.printed import Hint
from gateway.upstream.transports.stdio import open_stdio

if TYPE_CHECKING:
    from gateway.upstream.recording.recorder import Recorder

TransportName = Literal["stdio", "http", "sse", "openapi", "replay"]


class ChannelDispatcher(Dispatcher[TransportContext], Protocol):
    """Sends requests over a channel, and handles what comes from it."""

    @property
    def channel(self) -> Channel: ...


OnHint = Callable[[Callable[[], Hint | None]], None]
"""Given, as soon as a channel is open, the function that says what the upstream printed meanwhile."""


@asynccontextmanager
async def connect(
    transport: TransportName,
    subject: Subject,
    identity: ClientIdentity,
    host_requests: HostRequests,
    on_notification: OnNotification,
    on_hint: OnHint,
    recorder: "Recorder | None" = None,
) -> AsyncGenerator[Session]:
    """Connect to an upstream over one transport. The same task has to enter and exit (the SDK's transports demand it).

    Requests from the upstream are answered by `host_requests`. `recorder` records what the upstream answers.

    Raises whatever the transport raises, nested in groups; `failures.failure_of` understands it.
    """
    async with _opened(transport, subject, identity, recorder) as dispatcher, anyio.create_task_group() as tasks:
        channel = dispatcher.channel
        on_hint(channel.hint)

        async def answer(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            del context
            if method == "ping":
                return {}
            try:
                return await host_requests.answer(method, params or {})
            except HostRefused as refusal:
                raise MCPError(refusal.code, refusal.message, refusal.data) from None

        async def notified(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> None:
            del context
            await on_notification(method, params or {})

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await dispatcher.run(answer, notified, task_status=task_status)
            channel.ending.name(ConnectionEnded("closed the connection"))

        await tasks.start(run)
        try:
            yield Session(dispatcher, channel, subject, identity)
        finally:
            channel.ending.name(Stopping())
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _opened(
    transport: TransportName, subject: Subject, identity: ClientIdentity, recorder: "Recorder | None"
) -> AsyncGenerator[ChannelDispatcher]:
    if transport == "replay":
        from gateway.upstream.recording.replay_dispatcher import open_replay

        async with open_replay(subject, identity.capabilities) as replayed:
            yield replayed
    elif recorder is None:
        async with _dispatching(transport, subject) as dispatcher:
            yield dispatcher
    else:
        from gateway.upstream.recording.recording_dispatcher import open_recorded

        async with open_recorded(recorder, transport, subject, identity.capabilities, _dispatching) as recorded:
            yield recorded


@asynccontextmanager
async def _dispatching(transport: TransportName, subject: Subject) -> AsyncGenerator[BoundedDispatcher]:
    settings = subject.settings
    if transport == "http" and _takes_own_client(settings):
        from gateway.upstream.transports.streamable.dispatcher import open_streamable

        async with open_streamable(settings, subject.tokens) as dispatcher:
            yield dispatcher
    else:
        async with _channel(transport, subject) as channel:
            yield BoundedDispatcher(channel, settings.max_message_bytes)


def _takes_own_client(settings: UpstreamSettings) -> bool:
    from gateway.upstream.transports.clients import takes_own_client

    return takes_own_client(settings)


def _channel(transport: TransportName, subject: Subject) -> AbstractAsyncContextManager[Channel]:
    if transport == "stdio":
        return open_stdio(subject.settings, subject.secrets)
    if transport == "openapi":
        from gateway.upstream.openapi.api_server import open_api

        return open_api(subject)
    if transport == "http":
        from gateway.upstream.transports.http import open_http

        return open_http(subject.settings, subject.tokens)
    from gateway.upstream.transports.sse import open_sse

    return open_sse(subject.settings, subject.tokens)
