"""A dispatcher that answers requests from a recording, in place of an upstream: nothing is started or connected to."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext

from gateway.core.model.json_values import as_object
from gateway.core.model.wire import ACKNOWLEDGED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, SUBSCRIPTION_ID
from gateway.errors import ConfigError, UpstreamUnavailable
from gateway.upstream.recording.lines import LISTS, OPENING, Exchange
from gateway.upstream.recording.read_recording import RecordedUpstream, read_recording
from gateway.upstream.recording.recording_dispatcher import NOT_RECORDED
from gateway.upstream.recording.replay import NotRecorded, ReplayedConnection
from gateway.upstream.transports.channel import Channel, Ending
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.messages import failure_in


@asynccontextmanager
async def open_replay(subject: Subject, capabilities: Mapping[str, Any]) -> "AsyncGenerator[ReplayDispatcher]":
    """Open a connection to what was recorded of an upstream, for a host with these capabilities.

    Raises UpstreamUnavailable if the recording cannot be used, or has nothing of it, and the recorded failure if it
    could not be connected to when it was recorded.
    """
    folder = subject.settings.replay
    assert folder is not None
    try:
        upstreams = await to_thread.run_sync(read_recording, folder)
    except ConfigError as error:
        raise UpstreamUnavailable(subject.name, error.message, remedy=error.remedy) from None
    upstream = upstreams.get(subject.name)
    if upstream is None:
        raise UpstreamUnavailable(
            subject.name,
            f"the recording {folder} has nothing of it",
            remedy=f"it has {', '.join(upstreams)}",
        )
    connection = ReplayedConnection(upstream, capabilities, subject.settings.replay_match)
    if (failed := connection.failure) is not None and failed.failure is not None:
        raise failed.failure.error(subject.name)
    never, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, nobody = anyio.create_memory_object_stream[SessionMessage](0)
    with never, read, write, nobody:
        channel = Channel(read, write, Ending(), failure_in, is_http=connection.transport == "http")
        yield ReplayDispatcher(channel, upstream, connection, subject.name)


class ReplayDispatcher:
    """Answers requests with recorded exchanges: results and errors of the upstream, and failures, as they came."""

    def __init__(self, channel: Channel, upstream: RecordedUpstream, connection: ReplayedConnection, name: str) -> None:
        self.channel = channel
        self._upstream = upstream
        self._connection = connection
        self._name = name
        self._one = anyio.CapacityLimiter(1)  # requests take what was recorded in order
        self._on_notify: OnNotify | None = None

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Wait until the connection is closed: a recording asks nothing, and announces nothing."""
        self._on_notify = on_notify
        task_status.started()
        await self.channel.ending.event.wait()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Ignore a notification."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the recorded result.

        Raises MCPError with the recorded error, or if nothing was recorded, and the recorded failure.
        """
        if method in NOT_RECORDED:
            return await self._unrecorded(method, params or {}, opts or {})
        try:
            exchange = await to_thread.run_sync(self._connection.find, method, params or {}, limiter=self._one)
            result = await to_thread.run_sync(self._upstream.result_of, exchange)
            data = await to_thread.run_sync(self._upstream.error_data_of, exchange) if exchange.error else None
        except NotRecorded as error:
            code = METHOD_NOT_FOUND if method in OPENING | LISTS else INVALID_PARAMS
            raise MCPError(code, str(error)) from None
        except ConfigError as error:
            raise MCPError(INTERNAL_ERROR, f"the recording cannot be used: {error}") from None
        return result if result is not None else self._without_result(exchange, data)

    def _without_result(self, exchange: Exchange, data: Any) -> dict[str, Any]:
        if (error := exchange.error) is not None:
            raise MCPError(error.code, error.message, data)
        if exchange.failure is not None:
            raise exchange.failure.error(self._name)
        raise UpstreamUnavailable(
            self._name,
            f"{exchange.method} was cancelled by its host when it was recorded, so there is no answer",
            remedy="record it again",
        )

    async def _unrecorded(self, method: str, params: Mapping[str, Any], opts: CallOptions) -> dict[str, Any]:
        if method != "subscriptions/listen":
            return {}
        if self._on_notify is not None:
            notifications = dict(as_object(params.get("notifications")))
            about = {"notifications": notifications, "_meta": {SUBSCRIPTION_ID: opts.get("request_id")}}
            # Nothing of it is read: our handler takes the method and the params alone.
            nothing = cast("DispatchContext[TransportContext]", None)
            await self._on_notify(nothing, ACKNOWLEDGED, about)
        await anyio.sleep_forever()
        return {}
