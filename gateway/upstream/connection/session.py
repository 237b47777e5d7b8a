"""A session with one connected upstream: send requests, return raw results, and raise the gateway's own errors.

Results stay wire JSON throughout (the SDK's typed client rejects a whole result for one unknown block, and drops fields
silently); only what the protocol itself requires is checked here.
"""

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

import anyio
from anyio import to_thread
from mcp.shared.dispatcher import CallOptions, Dispatcher, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED

from gateway.core.fact_words import plain
from gateway.core.model.json_shape import is_deep, without_deep
from gateway.core.model.json_size import MANY_VALUES
from gateway.core.model.json_values import as_list, is_list, is_object
from gateway.core.model.revisions import Era
from gateway.core.model.wire import LOG_LEVELS, TASK_ID, WireObject
from gateway.core.results.output_variants import REVISION
from gateway.core.wording import nested_too_deeply
from gateway.errors import GatewayError, UpstreamLost, UpstreamRefused
from gateway.upstream.connection.allowance import Allowance
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.deadlines import Deadline, ProgressCallback, ProgressRelay
from gateway.upstream.connection.negotiate_era import Opening, agree, envelope
from gateway.upstream.connection.result_forms import ResultForms
from gateway.upstream.transports.causes import ConnectionEnded, NotMcp, SessionExpired
from gateway.upstream.transports.channel import TIMED_OUT, Channel
from gateway.upstream.transports.failures import Subject, failure_of
from gateway.upstream.transports.messages import TOO_MANY_VALUES
from gateway.upstream.transports.platforms import Work

logger = logging.getLogger(__name__)

_RETIRING = 2.0  # seconds for other requests of an expired session to get their own responses
_NEWS = 1.0  # seconds for a connection that has just ended to report why

OnNotification = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Called with the method and params of every notification of the upstream."""

ANSWERED = frozenset({"complete", "input_required"})
"""The result types that the gateway can carry; a result without a type is complete, since older servers send none."""


class Session:
    """A session with an upstream, from its opening until `ended` is set.

    Every method raises only the gateway's own errors.
    """

    def __init__(
        self, dispatcher: Dispatcher[TransportContext], channel: Channel, subject: Subject, identity: ClientIdentity
    ) -> None:
        self._dispatcher = dispatcher
        self._channel = channel
        self._subject = subject
        self.identity = identity
        self._level: str | None = None
        self._header_maps: dict[str, dict[tuple[str, ...], str]] = {}
        self._forms = ResultForms()
        self._running = 0
        self._fewer: anyio.Event | None = None
        """Set when a request has ended, if somebody waits for that."""
        self._expired = False
        self.opening = Opening("handshake", "")

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended, or cannot be used any longer."""
        return self._expired or self._channel.ending.has_come

    @property
    def pid(self) -> int | None:
        """The id of the upstream's process, if the gateway started one."""
        return self._channel.pid

    def work(self) -> Work | None:
        """Return the work of its process and descendants so far; blocks for a few milliseconds."""
        return self._channel.work()

    @property
    def printed(self) -> int:
        """The number of bytes that its process has written so far."""
        return self._channel.printed()

    @property
    def serves_http(self) -> bool:
        """Whether its process printed that it serves HTTP, and has sent no message."""
        return self._channel.serves_http()

    @property
    def ended(self) -> anyio.Event:
        """Set when the connection has ended."""
        return self._channel.ending.event

    @property
    def failure(self) -> Exception | None:
        """Why the connection ended; None if it has not."""
        return self._channel.ending.failure

    def finish(self, failure: Exception) -> None:
        """End the connection because of `failure`."""
        self._channel.ending.name(failure)

    async def retire(self) -> None:
        """End an expired session as soon as all its running requests have failed on their own."""
        self._expired = True
        with anyio.move_on_after(_RETIRING):
            while self._running and not self._channel.ending.has_come:
                self._fewer = self._fewer or anyio.Event()
                await self._fewer.wait()
        self.finish(SessionExpired())

    @property
    def is_http(self) -> bool:
        """Whether the transport is HTTP, so that messages have headers."""
        return self._channel.is_http

    async def open(self, first: Era, patience: float | None = None) -> Opening:
        """Agree on the era and the revision, trying `first` first. Call this once, before anything else.

        `patience` is the seconds for a response to `server/discover` (default `negotiate_era.PATIENCE`).
        """
        with self._ours(None):
            opening = await agree(self._ask, self.identity, first, patience, self._subject.newer)
        self.opening = opening
        if opening.era == "handshake":
            await self._dispatcher.notify("notifications/initialized", None, {"headers": self._version_header()})
        return opening

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        deadline: Deadline,
        on_progress: ProgressCallback | None = None,
        identity: ClientIdentity | None = None,
        chosen: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request, and return its raw result, complete or asking for input.

        Progress is always requested, since it keeps a long call alive. `identity` is presented to a modern upstream
        in place of the identity that opened the session. `chosen` are the forms of the result that the host has chosen,
        if it chooses.

        An UpstreamLost caused by SessionExpired means that the upstream refused the request without processing it.
        """
        relay = ProgressRelay(deadline, on_progress)
        of_call = TIMED_OUT.set(deadline.timed_out)
        self._running += 1
        try:
            deadline.touch()
            with self._ours(method):
                forms = self._forms if method == "tools/call" and self.opening.revision == REVISION else None
                if forms is not None:
                    params = forms.asking(params, chosen, identity or self.identity)
                answer = _answer(method, await self._send(method, params, relay, identity), identity)
                await relay.drain()
                return answer if forms is None else forms.given(params, answer)
        finally:
            self._running -= 1
            if self._fewer is not None:
                self._fewer.set()
                self._fewer = None
            TIMED_OUT.reset(of_call)
            relay.close()

    async def list_all(
        self, method: str, key: str, pages: list[WireObject] | None = None, allowance: Allowance | None = None
    ) -> tuple[dict[str, Any], ...]:
        """Fetch every item of a list page by page: objects only, within the allowance, and never the same page twice.

        The rest of each page, without its items, is added to `pages`.
        """
        allowance = allowance or Allowance()
        seen: set[str] = set()
        cursor: str | None = None
        with self._ours(method):
            while True:
                params = {} if cursor is None else {"cursor": cursor}
                result = _answer(method, await self._send(method, params))
                page = result.get(key)
                if not is_list(page):
                    raise NotMcp(f"answered {method} without a list of {key}")
                about = {name: value for name, value in result.items() if name != key}
                items = _dicts_in(page)
                goes_on = await allowance.take(items, about)
                if pages is not None and not allowance.is_over:
                    pages.append(about)
                cursor = result.get("nextCursor")
                if not goes_on or not isinstance(cursor, str) or not cursor or cursor in seen:
                    break
                if not allowance.follow():
                    break
                seen.add(cursor)
        return tuple(allowance.items)

    async def list_tools(
        self, pages: list[WireObject] | None = None, allowance: Allowance | None = None
    ) -> tuple[dict[str, Any], ...]:
        """Fetch every tool with a name. In the modern era over HTTP, tools with invalid header annotations are left
        out, as the protocol demands, and the annotations of the others are remembered for their calls.
        """
        tools = await self.list_all("tools/list", "tools", pages, allowance)
        tools = tuple(tool for tool in tools if isinstance(tool.get("name"), str))
        if self.opening.revision == REVISION:
            with self._ours("tools/list"):
                tools = self._forms.listed(tools)
        if self.opening.era == "modern" and self._channel.is_http:
            tools = tuple(tool for tool in tools if find_invalid_x_mcp_header(tool.get("inputSchema")) is None)
            self._header_maps = {tool["name"]: x_mcp_header_map(tool.get("inputSchema")) for tool in tools}
        return tools

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request of the gateway's own, on which nothing depends, and return its raw result."""
        with self._ours(method, vital=False):
            return await self._send(method, params)

    async def sign_of_life(self) -> None:
        """Wait until the upstream responds, in whatever way, which shows that it has read everything sent before."""
        await self.ask("ping" if self.opening.era == "handshake" else "server/discover", {})

    async def listen(self, notifications: Mapping[str, Any], stream: str) -> None:
        """Subscribe to changes of a modern upstream, and return when it ends the subscription.

        `stream` is the id in its notifications. A broken subscription does not affect the connection.
        """
        params = {"notifications": dict(notifications)}
        with self._ours("subscriptions/listen", vital=False):
            await self._send("subscriptions/listen", params, request_id=stream)

    async def want_logs(self, level: str) -> None:
        """Set the minimum log level of an upstream of the handshake era; of all levels requested, the lowest counts.

        An upstream that does not offer logging, or refuses, is left alone.
        """
        if self.opening.era != "handshake" or not self.opening.offers("logging") or level not in LOG_LEVELS:
            return
        if self._level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self._level):
            self._level = level
            with suppress(UpstreamRefused):
                await self.ask("logging/setLevel", {"level": level})

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification to an upstream of the handshake era; modern ones take none."""
        if self.opening.era == "handshake" and not self.has_ended:
            await self._dispatcher.notify(method, params, {"headers": self._version_header()})

    async def _ask(self, method: str, params: Mapping[str, Any], revision: str | None) -> dict[str, Any]:
        """Send a request of the negotiation, which has its own envelope."""
        headers = {} if revision is None else {MCP_PROTOCOL_VERSION_HEADER: revision, MCP_METHOD_HEADER: method}
        options: CallOptions = {"cancel_on_abandon": False, "headers": headers}
        try:
            result = await self._dispatcher.send_raw_request(method, params, options)
        except MCPError as error:
            await self._raise(error, method)
        return await self._shallow(result, method, None)

    async def _send(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: ProgressFnT | None = None,
        identity: ClientIdentity | None = None,
        request_id: str | None = None,
    ) -> dict[str, Any]:
        options: CallOptions = {"headers": self._headers(method, params)}
        if request_id is not None:
            options["request_id"] = request_id
        if on_progress is not None:
            options["on_progress"] = on_progress
        try:
            result = await self._dispatcher.send_raw_request(
                method, self._stamped(params, identity or self.identity), options
            )
        except MCPError as error:
            await self._raise(error, method)
        return await self._shallow(result, method, params.get("name"))

    async def _shallow(self, result: dict[str, Any], method: str, name: object) -> dict[str, Any]:
        """Return the result without values nested too deeply for hosts; only the items with them are affected."""
        deep = is_deep(result, most_values=MANY_VALUES)
        many = deep is None
        if not (await to_thread.run_sync(is_deep, result) if many else deep):
            if method.endswith("/list"):
                self._subject.nested.pop(method, None)
            return result
        shallow, places = await to_thread.run_sync(without_deep, result) if many else without_deep(result)
        of = f"{method} {plain(name, 100)!r}" if isinstance(name, str) else method
        words = nested_too_deeply(places)
        logger.warning("upstream %s, %s: %s", self._subject.name, of, words)
        if method.endswith("/list"):
            self._subject.nested[method] = f"{method}: {words}"
        if method == "tools/call":
            content = shallow.get("content")
            blocks = as_list(content)
            shallow["content"] = [*blocks, {"type": "text", "text": f"[{words}]"}]
            if "structuredContent" in result and "structuredContent" not in shallow:
                shallow["isError"] = True  # clients fail a call that was to have it, unless it failed
        return shallow

    def _stamped(self, params: Mapping[str, Any], identity: ClientIdentity) -> dict[str, Any]:
        """Return params with this hop's own `_meta`. Members of the host's hop were removed on arrival."""
        if self.opening.era != "modern":
            return dict(params)
        meta: Mapping[str, Any] = params.get("_meta") or {}
        return {**params, "_meta": {**meta, **envelope(self.opening.revision, identity)}}

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = self._version_header()
        if self.opening.era == "modern" and self._channel.is_http:
            headers[MCP_METHOD_HEADER] = method
            key = TASK_ID if method.startswith("tasks/") else NAME_BEARING_METHODS.get(method)
            if key is not None and isinstance(name := params.get(key), str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
            arguments = params.get("arguments")
            if method == "tools/call" and is_object(arguments):
                names = self._header_maps.get(str(params.get("name")), {})
                headers |= mcp_param_headers(names, arguments)
        return headers

    def _version_header(self) -> dict[str, str]:
        return {MCP_PROTOCOL_VERSION_HEADER: self.opening.revision}

    async def _raise(self, error: MCPError, method: str) -> NoReturn:
        """Raise the failure behind an error from the dispatcher."""
        failure = self._channel.failure_in(error.error)
        if failure is not None:
            raise failure
        if error.code == CONNECTION_CLOSED and error.message == "Connection closed":
            with anyio.move_on_after(_NEWS):
                await self.ended.wait()
            if isinstance(self.failure, SessionExpired):  # others were refused; this request may have been processed
                raise ConnectionEnded("its session expired, or the server was restarted")
            if self.failure is not None:
                raise self.failure
        data = error.data
        deep = is_deep(data, most_values=MANY_VALUES)
        if deep is None:
            logger.warning("upstream %s, an error of %s: its data %s", self._subject.name, method, TOO_MANY_VALUES)
            data = TOO_MANY_VALUES
        elif deep:
            words = nested_too_deeply(("data",))
            logger.warning("upstream %s, an error of %s: %s", self._subject.name, method, words)
            data = None
        raise UpstreamRefused(self._subject.name, error.code, error.message, data) from None

    @contextmanager
    def _ours(self, doing: str | None, *, vital: bool = True) -> Generator[None]:
        """Turn every failure inside into the gateway's own error, and end a connection that has proved broken."""
        try:
            yield
        except GatewayError:
            raise
        except Exception as error:  # whatever a transport raises: the table of failures explains it
            failure = failure_of(error, self._subject)
            # Concurrent calls may still be answered: only the last one to fail ends the connection.
            last = failure.kind is UpstreamLost and vital and self._running <= 1
            if isinstance(error, SessionExpired):
                self._expired = True
                last = not self._running
            if last:
                self.finish(error)
            raise failure.error(self._subject.name, doing) from error


def _answer(method: str, result: dict[str, Any], identity: ClientIdentity | None = None) -> dict[str, Any]:
    """Return the result if its type can be carried. Tasks are only for hosts that take them."""
    kind = result.get("resultType") or "complete"
    takes = identity is not None and identity.takes_tasks and method == "tools/call"
    if kind not in ANSWERED and not (kind == "task" and takes):
        raise NotMcp(f"answered {method} with a result of the unknown type {str(kind)[:40]!r}")
    return result


def _dicts_in(page: list[Any]) -> list[dict[str, Any]]:
    # Asked by `is_dict`, millions of other values would take seconds.
    return [cast("dict[str, Any]", item) for item in page if type(item) is dict]
