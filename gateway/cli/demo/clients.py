"""Connect as a host does, with its transport, protocol revision and name, and read results raw.

The transports and the dispatcher are the MCP SDK's. The opening is written out here, because a host's own revision and
capabilities must be presented. Results are read raw, because a typed client would drop members that it does not know.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from gateway.core.model.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN
from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.hosts.simulators.host import SimulatedHost
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED, input_requests

CALL_SECONDS = 90.0
MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Real hosts read events of any size; the SDK's own limit of 1 MiB would break the direct calls of this demo."""
_META = "io.modelcontextprotocol/"
_ROUNDS = 8


@dataclass(frozen=True)
class Stdio:
    """A server that is started for this connection. Its stderr goes to `errors`."""

    command: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    errors: TextIO


@dataclass(frozen=True)
class StreamableHttp:
    """A server at a URL, over Streamable HTTP."""

    url: str
    token: str | None = None


@dataclass(frozen=True)
class Sse:
    """A server at a URL, over HTTP+SSE."""

    url: str
    token: str | None = None


Target = Stdio | StreamableHttp | Sse


@dataclass
class DemoConnection:
    """An open connection of one host. `revision` is the one agreed on."""

    host: SimulatedHost
    revision: str
    _dispatcher: JSONRPCDispatcher[TransportContext] = field(repr=False)

    async def tools(self) -> dict[str, dict[str, Any]]:
        """Return all offered tools by name."""
        found: dict[str, dict[str, Any]] = {}
        cursor: str | None = None
        for _ in range(100):
            page = await self.request("tools/list", {"cursor": cursor} if cursor else {})
            found |= {tool["name"]: tool for tool in page.get("tools", [])}
            cursor = cast("str | None", page.get("nextCursor"))
            if not cursor:
                break
        return found

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return its raw result. Raises MCPError."""
        return await self.request("tools/call", {"name": name, "arguments": dict(arguments)})

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request with the fields of this host's revision, and answer the server's requests meanwhile.

        Raises MCPError.
        """
        result = await self._sent(method, params)
        for _ in range(_ROUNDS):
            if result.get("resultType") != INPUT_REQUIRED:
                break
            asked = input_requests(result)
            answers = {key: await _answer(None, wanted, details) for key, (wanted, details) in asked.items()}
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            result = await self._sent(method, {**params, "inputResponses": answers, **state})
        return result

    async def _sent(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        options: CallOptions = {"timeout": CALL_SECONDS, "headers": {"mcp-protocol-version": self.revision}}
        if self.revision != NEWEST_MODERN:
            return await self._dispatcher.send_raw_request(method, params, options)
        options["headers"]["mcp-method"] = method
        if isinstance(name := params.get("name"), str):
            options["headers"]["mcp-name"] = name
        return await self._dispatcher.send_raw_request(method, {**params, "_meta": self._identity()}, options)

    async def open(self) -> None:
        """Perform the handshake, or `server/discover`, which replaces it since 2026-07-28."""
        if self.revision == NEWEST_MODERN:
            await self.request("server/discover", {})
            return
        opening = {
            "protocolVersion": self.revision,
            "capabilities": self.host.capabilities,
            "clientInfo": self.host.client_info,
        }
        answer = await self._dispatcher.send_raw_request(
            "initialize", opening, {"timeout": CALL_SECONDS, "cancel_on_abandon": False}
        )
        self.revision = str(answer["protocolVersion"])
        headers = {"mcp-protocol-version": self.revision}
        await self._dispatcher.notify("notifications/initialized", None, {"headers": headers})

    def _identity(self) -> dict[str, Any]:
        return {
            f"{_META}protocolVersion": self.revision,
            f"{_META}clientInfo": self.host.client_info,
            f"{_META}clientCapabilities": self.host.capabilities,
        }


@asynccontextmanager
async def connected(target: Target, host: SimulatedHost) -> AsyncGenerator[DemoConnection]:
    """Connect to `target` as `host`, until the block is left.

    HTTP+SSE is a transport of the handshake revisions, so a newer host uses the last of those with it.

    Raises:
        MCPError: the server refused; ExceptionGroup, OSError: it could not be reached.
    """
    revision = NEWEST_HANDSHAKE if isinstance(target, Sse) and host.revision == NEWEST_MODERN else host.revision
    async with _transport(target, host) as (read, write):
        dispatcher = JSONRPCDispatcher[TransportContext](read, write)
        async with anyio.create_task_group() as tasks:
            await tasks.start(dispatcher.run, _answer, _ignore)
            connection = DemoConnection(host, revision, dispatcher)
            await connection.open()
            yield connection
            tasks.cancel_scope.cancel()


def _transport(target: Target, host: SimulatedHost) -> AbstractAsyncContextManager[Any]:
    match target:
        case Stdio():
            program = StdioServerParameters(
                command=target.command[0], args=list(target.command[1:]), env=dict(target.variables), cwd=target.folder
            )
            return stdio_client(program, errlog=target.errors)
        case StreamableHttp():
            return _streamable_http(target, host)
        case Sse():
            return sse_client(target.url, headers=_headers(target, host), httpx_client_factory=_http_client)


@asynccontextmanager
async def _streamable_http(target: StreamableHttp, host: SimulatedHost) -> AsyncGenerator[Any]:
    async with (
        _http_client(_headers(target, host), httpx2.Timeout(30, read=300)) as client,
        streamable_http_client(target.url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES) as streams,
    ):
        yield streams


def _headers(target: StreamableHttp | Sse, host: SimulatedHost) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    return {**headers, "User-Agent": host.user_agent} if host.user_agent else headers


def _http_client(
    headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    # Everything here is on the loopback address, so a proxy of the environment must not be used.
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False)


async def _answer(
    _context: DispatchContext[TransportContext] | None, method: str, _params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Answer a server's request to its host: there are no roots, and no user who could be asked."""
    if method == "roots/list":
        return {"roots": []}
    if method == "ping":
        return {}
    raise MCPError(code=METHOD_NOT_FOUND, message=f"{method} is not answered in this demo")


async def _ignore(_context: DispatchContext[TransportContext], _method: str, _params: Mapping[str, Any] | None) -> None:
    """Ignore notifications."""
