"""A toolset over a gateway that runs already: `gateway.connect`.

To a program the gateway is what an upstream is to the gateway: results raw, sessions renewed, a lost connection opened
again, secrets hidden in every cause.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from gateway.config.schema import Timeouts, UpstreamSettings
from gateway.core.catalogue.names import SEPARATOR
from gateway.core.model.wire import WireObject
from gateway.errors import ConfigError, GatewayUnreachable, UpstreamError
from gateway.toolset.source import Offer, Offered
from gateway.toolset.toolset import OpenGateway
from gateway.upstream import Upstream, Upstreams

_NAME = "gateway"
_LISTING = Timeouts(call=90, idle=90)
_CALLING = Timeouts(call=86_400, idle=86_400)
"""The gateway and the toolset have limits of their own."""
_PATH = "/mcp"
_REMEDY = "start one with `mcp-gateway serve --http`, and give `connect` its token"
_MAX_PAGES = 100
_MAX_MESSAGE_BYTES = 128 * 1024 * 1024
"""Above the largest result that a gateway takes by default."""


@asynccontextmanager
async def connect(url: str, token: str | None = None) -> AsyncGenerator[OpenGateway]:
    """A gateway that runs already (`mcp-gateway serve --http`), at its url: `http://127.0.0.1:8484/mcp`.

    `token` is the one that it asks for. Results arrive as the upstreams gave them, whoever else it serves.

    Raises:
        ConfigError: `url` is none.
        GatewayUnreachable: nothing answers there, or it refuses; the message shows no token.
    """
    settings = _settings(url, token)
    raised: Exception | None = None
    async with Upstreams({_NAME: settings}, on_change=_ignore) as upstreams:
        source = _OverHttp(upstreams[_NAME])
        try:
            await source.reached()
            yield OpenGateway(source)
        except Exception as error:
            # Raised below, once all is closed: the task groups here would wrap it in groups of their own.
            raised = error
    if raised is not None:
        raise raised


def _settings(url: str, token: str | None) -> UpstreamSettings:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("it begins with http:// or https://, and names a host", where="url")
    return UpstreamSettings(
        url=url if parts.path.strip("/") else parts._replace(path=_PATH).geturl(),
        transport="http",
        headers={"X-MCP-Profile": "passthrough", **({"Authorization": f"Bearer {token}"} if token else {})},
        max_message_bytes=_MAX_MESSAGE_BYTES,
    )


class _OverHttp:
    """The gateway at a url. Its upstreams are known by the prefixes of their tools."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def reached(self) -> None:
        """Wait for the first connection. Raises GatewayUnreachable."""
        if not await self._upstream.ready(self._upstream.settings.timeout.start):
            why = self._upstream.cause or "it does not answer"
            raise GatewayUnreachable(f"no gateway is reached: {why}", remedy=_REMEDY)

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """What is offered now; the gateway itself waits a little for upstreams that are starting.

        Raises:
            GatewayUnreachable: it cannot be asked.
        """
        tools: list[Offered] = []
        cursor: Any = None
        for _ in range(_MAX_PAGES):
            params = {"cursor": cursor} if cursor else {}
            try:
                page = await self._upstream.request("tools/list", params, timeout=_LISTING)
            except UpstreamError as error:
                raise GatewayUnreachable(error.message, remedy=error.remedy) from None
            listed = cast("list[Any]", page.get("tools") or [])
            tools += [_offered(cast("WireObject", tool)) for tool in listed if _is_tool(tool)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return Offer(tools, list(dict.fromkeys(tool.provider for tool in tools if tool.provider)))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """The raw result."""
        params = {"name": name, "arguments": dict(arguments)}
        return await self._upstream.request("tools/call", params, timeout=_CALLING)


def _ignore(_upstream: str, _kind: str) -> None:
    """A changed list is seen when it is asked for: `schemas` asks anew."""


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, Mapping) and isinstance(cast("WireObject", tool).get("name"), str)


def _offered(tool: WireObject) -> Offered:
    provider, separator, own_name = str(tool["name"]).partition(SEPARATOR)
    return Offered(tool, provider, own_name) if separator else Offered(tool, "", provider)
