"""Toolsets over a gateway that is already running: `gateway.connect`.

The program connects to the gateway as the gateway connects to an upstream: results are raw, sessions are renewed, lost
connections are reopened, and secrets are redacted in every cause.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import pybase64

from gateway.agents.answer_approvals import ApprovalAnswers
from gateway.agents.approval import AskByProgram, OnApproval
from gateway.agents.gateway_context import GatewayContext
from gateway.agents.source import PROFILE, Offer, Offered, StoredContent
from gateway.agents.toolset import OpenGateway
from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.content.store import ContentStore
from gateway.core.fact_words import plain
from gateway.core.model.approval_mark import ASKS, HEADER
from gateway.core.model.caller import Caller
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import as_object, is_dict
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.model.wire import WireObject
from gateway.core.own_names import OWN_TOOLS, PUT_TOOL
from gateway.errors import (
    ConfigError,
    ContentError,
    FailureCode,
    GatewayUnreachable,
    UpstreamError,
    UpstreamUnavailable,
)
from gateway.upstream import Upstream, Upstreams
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.upstream import nobody

_NAME = "gateway"
_LISTING = Timeouts(call=90, idle=90)
_CALLING = Timeouts(call=86_400, idle=86_400)
"""The gateway and the toolset have limits of their own."""
_CALLER = Caller(revision=NEWEST_HANDSHAKE)
_PATH = "/mcp"
_REMEDY = "start one with `mcp-gateway serve --http`, and give `connect` its token"
_UNAUTHORIZED = frozenset({FailureCode.UNAUTHORIZED, FailureCode.LOGIN_REQUIRED})
_TO_MAKE_ONE = "`mcp-gateway token add NAME` makes one, unless it is that of [http] token"
_MAX_PAGES = 100
_MAX_MESSAGE_BYTES = 128 * 1024 * 1024
"""Larger than the largest result that a gateway accepts by default."""


def connect(url: str, token: str | None = None, *, on_approval: OnApproval | None = None) -> GatewayContext:
    """Connect to a running gateway (`mcp-gateway serve --http`) at its URL: `http://127.0.0.1:8484/mcp`.

    Enter the result, or await and close it, as for `gateway.open`. `token` is the one that the gateway requires.
    Results arrive as the upstreams gave them, whatever other hosts the gateway serves.

    `on_approval` asks the user about a call of this program that a rule of the gateway lets pass only with an approval,
    as for `gateway.open`. It is not asked if the gateway's `[policy] approval` is `terminal`.

    Raises, on entering:
        ConfigError: `url` is not the address of a gateway, or `on_approval` is not a function.
        GatewayUnreachable: nothing answers there, or it refuses. The message never contains the token.
    """
    return GatewayContext(lambda: _connected(url, token, on_approval))


@asynccontextmanager
async def _connected(url: str, token: str | None, on_approval: OnApproval | None) -> AsyncGenerator[OpenGateway]:
    ask = None if on_approval is None else AskByProgram(on_approval)
    settings = _settings(url, token, answers=ask is not None)
    # Only in the handshake era can the gateway ask while a call is running.
    expected = nobody if ask is None else lambda: _CALLER
    raised: Exception | None = None
    async with Upstreams({_NAME: settings}, on_change=_ignore, expected=expected) as upstreams:
        source = _OverHttp(upstreams[_NAME], ask)
        try:
            await source.reached()
            yield OpenGateway(source)
        except Exception as error:
            # Raised below, once everything is closed: the task groups here would wrap it in groups of their own.
            raised = error
    if raised is not None:
        raise raised


def _settings(url: str, token: str | None, *, answers: bool) -> UpstreamSettings:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("it begins with http:// or https://, and names a host", where="url")
    headers = {"X-MCP-Profile": PROFILE}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if answers:
        headers[HEADER] = ASKS
    return UpstreamSettings(
        url=url if parts.path.strip("/") else parts._replace(path=_PATH).geturl(),
        transport="http",
        headers=headers,
        max_message_bytes=_MAX_MESSAGE_BYTES,
    )


class _OverHttp:
    """The gateway at a URL. Its upstreams are recognised by the prefixes of their tools."""

    def __init__(self, upstream: Upstream, ask: AskByProgram | None) -> None:
        self._upstream = upstream
        self._ask = ask

    async def reached(self) -> None:
        """Wait for the first connection. Raises GatewayUnreachable."""
        if not await self._upstream.ready(self._upstream.settings.timeout.start):
            failure = self._upstream.failure
            if failure is not None and failure.code in _UNAUTHORIZED:
                raise self._unauthorized()
            why = self._upstream.cause or "it does not answer" if failure is None else failure.message
            raise GatewayUnreachable(f"the gateway cannot be reached: {why}", remedy=_REMEDY)

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """Return what is offered now. The gateway itself waits a little for upstreams that are starting.

        Raises:
            GatewayUnreachable: the gateway cannot be reached.
        """
        tools: list[Offered] = []
        cursor: Any = None
        for _ in range(_MAX_PAGES):
            params = {"cursor": cursor} if cursor else {}
            try:
                page = await self._upstream.request("tools/list", params, timeout=_LISTING)
            except UpstreamError as error:
                if isinstance(error, UpstreamUnavailable) and error.failure.code in _UNAUTHORIZED:
                    raise self._unauthorized() from None
                raise GatewayUnreachable(error.message, remedy=error.remedy) from None
            listed = cast("list[Any]", page.get("tools") or [])
            tools += [_offered(cast("WireObject", tool)) for tool in listed if _is_tool(tool)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return Offer(tools, list(dict.fromkeys(tool.provider for tool in tools if tool.provider)))

    def _unauthorized(self) -> GatewayUnreachable:
        """Return the error of a gateway that answers without a token, or with this one, that it is not let in."""
        settings = self._upstream.settings
        parts = urlsplit(settings.url or "")
        where = f"the gateway at {parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # a token may be in the path
        if "Authorization" in settings.headers:
            return GatewayUnreachable(f"{where} does not take this token", remedy=_TO_MAKE_ONE)
        return GatewayUnreachable(f"{where} wants a token: connect(url, token=...)", remedy=_TO_MAKE_ONE)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """Call a tool and return its raw result.

        Raises:
            NotAllowed: the user of this program has not approved the call.
        """
        params = {"name": name, "arguments": dict(arguments)}
        if self._ask is None:
            return await self._upstream.request("tools/call", params, timeout=_CALLING)
        host = ApprovalAnswers(self._ask)
        context = RequestContext(_CALLER, host=host)
        try:
            return await self._upstream.request("tools/call", params, context, _CALLING)
        finally:
            if host.error is not None:
                raise host.error

    @property
    def store(self) -> ContentStore:
        """Raises ConfigError: the store is in another process."""
        raise ConfigError(
            "the store of a connected gateway is in another process",
            remedy="use `put`, or open the same store with gateway.open_store",
        )

    async def put(self, content: bytes, media_type: str | None, name: str | None) -> StoredContent:
        """Keep content by means of the gateway's own tool."""
        given = {"data": pybase64.b64encode_as_string(content), "media_type": media_type, "name": name}
        arguments = {key: value for key, value in given.items() if value is not None}
        result = await self.call(PUT_TOOL, arguments)
        told: Any = result.get("structuredContent")
        if result.get("isError") or not is_dict(told):
            raise ContentError(f"the gateway did not keep the content: {_first_text(result)}")
        return StoredContent(told["handle"], told["media_type"], told["size"], told["kind"], told.get("name"))


def _first_text(result: WireObject) -> str:
    for block in cast("list[Any]", result.get("content") or []):
        text = as_object(block).get("text")
        if isinstance(text, str):
            return plain(text, 500)
    return "it gave no reason"


def _ignore(*_: object) -> None:
    """Ignore changes: `schemas` requests the list again each time."""


def _is_tool(tool: Any) -> bool:
    """Whether this is a tool of an upstream: the gateway's own tools are for hosts, and for `put`."""
    name = as_object(tool).get("name")
    return isinstance(name, str) and name not in OWN_TOOLS


def _offered(tool: WireObject) -> Offered:
    provider, separator, own_name = str(tool["name"]).partition(SEPARATOR)
    return Offered(tool, provider, own_name) if separator else Offered(tool, "", provider)
