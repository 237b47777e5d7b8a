"""A dispatcher that records the requests to an upstream, and what became of each, while it passes them on."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED

from gateway.core.model.json_values import as_object, objects_in
from gateway.errors import FailureCode, UpstreamError
from gateway.upstream.recording.lines import CONNECT, Exchange, FailurePart, RefusalPart
from gateway.upstream.recording.recorder import RecordedConnection, Recorder
from gateway.upstream.transports.bounded import BoundedDispatcher
from gateway.upstream.transports.channel import TIMED_OUT
from gateway.upstream.transports.failures import Subject, failure_of

Transported = TypeVar("Transported", bound=str)

NOT_RECORDED = frozenset(
    {"ping", "logging/setLevel", "subscriptions/listen", "resources/subscribe", "resources/unsubscribe"}
)
"""Requests whose answers say nothing; a replay answers them by itself."""

_SENT_AGAIN = frozenset(
    {
        *(FailureCode.SESSION_EXPIRED, FailureCode.RECONFIGURED, FailureCode.STOPPING),
        *(FailureCode.ASLEEP, FailureCode.VACATED),
    }
)
"""Failures of requests that the upstream has not processed: the gateway sends them again, or is ending."""


@asynccontextmanager
async def open_recorded(
    recorder: Recorder,
    transport: Transported,
    subject: Subject,
    capabilities: Mapping[str, Any],
    opened: "Callable[[Transported, Subject], AbstractAsyncContextManager[BoundedDispatcher]]",
) -> "AsyncGenerator[RecordingDispatcher]":
    """Open a connection whose exchanges are recorded, or whose failure is, if it cannot be opened."""
    connection = await recorder.connected(subject.name, transport, capabilities, subject.settings)
    is_open = False
    try:
        async with opened(transport, subject) as dispatcher:
            is_open = True
            yield RecordingDispatcher(dispatcher, connection, subject)
    except Exception as error:
        if not is_open:
            failure = failure_of(error, subject)
            await connection.record(
                Exchange(connection=connection.number, method=CONNECT, failure=FailurePart.of(failure))
            )
        raise


class RecordingDispatcher:
    """Passes everything to another dispatcher, and records its answers on a connection."""

    def __init__(self, inner: BoundedDispatcher, connection: RecordedConnection, subject: Subject) -> None:
        self.channel = inner.channel
        self._inner = inner
        self._connection = connection
        self._subject = subject
        self._running: dict[int, list[str]] = {}
        """What the upstream has asked the host during each request that is running."""
        self._discovered = False

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Handle what the upstream sends until the connection is closed."""

        async def noted(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method not in NOT_RECORDED:
                for asked in self._running.values():
                    asked.append(method)
            return await on_request(context, method, params)

        await self._inner.run(noted, on_notify, on_notify_intercept, task_status=task_status)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request, and return its result once it is recorded. Raises as the other dispatcher does."""
        if method in NOT_RECORDED or (method == "server/discover" and self._discovered):
            return await self._inner.send_raw_request(method, params, opts)
        asked: list[str] = []
        self._running[id(asked)] = asked
        about: dict[str, Any] = {
            "connection": self._connection.number,
            "method": method,
            "params": {key: value for key, value in (params or {}).items() if key != "_meta"},
            "asked": asked,
        }
        try:
            result = await self._inner.send_raw_request(method, params, opts)
        except MCPError as error:
            await self._record_error(about, method, error)
            raise
        except anyio.get_cancelled_exc_class():
            if (late := TIMED_OUT.get()(self._subject.name, method)) is not None:
                await self._record_failure(about, late)
            else:
                await self._connection.record(Exchange(**about, cancelled=True))
            raise
        except Exception as error:
            await self._record_failure(about, self._explained(error, method))
            raise
        finally:
            del self._running[id(asked)]
        self._learn(method, result)
        await self._connection.record(Exchange.model_construct(**about, result=result))
        return result

    async def _record_error(self, about: dict[str, Any], method: str, error: MCPError) -> None:
        failure = self.channel.failure_in(error.error)
        if failure is None and error.code == CONNECTION_CLOSED and self.channel.ending.failure is not None:
            failure = self.channel.ending.failure
        if failure is not None:
            await self._record_failure(about, self._explained(failure, method))
            return
        refusal = RefusalPart.model_construct(code=error.code, message=error.message, data=error.data)
        await self._connection.record(Exchange.model_construct(**about, error=refusal))

    async def _record_failure(self, about: dict[str, Any], error: UpstreamError) -> None:
        if error.failure.code not in _SENT_AGAIN:
            await self._connection.record(Exchange(**about, failure=FailurePart.of(error.failure)))

    def _explained(self, failure: Exception, method: str) -> UpstreamError:
        return failure_of(failure, self._subject).error(self._subject.name, method)

    def _learn(self, method: str, result: Mapping[str, Any]) -> None:
        self._discovered = self._discovered or method == "server/discover"
        if method == "tools/list":
            tools = objects_in(as_object(result).get("tools"))
            self._connection.knows_tools({str(tool.get("name")): tool.get("inputSchema") for tool in tools})
