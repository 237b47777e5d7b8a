"""The SDK's Streamable HTTP transport, over a client that adds limits and keeps failures apart.

It is used where `takes_own_client` says no (`http_client = "sdk"`, or a proxy on the way). It turns HTTP failures into
JSON-RPC errors that do not tell them apart (401 and 503 look the same), lets one broken request end the connection with
all others on it, and reads JSON bodies of any size. So it gets a client of ours, which answers a failed request with a
JSON-RPC error of its own that has a ticket for the failure.
"""

import re
import secrets as random_secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PARSE_ERROR, ErrorData

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_text import has_more_values
from gateway.errors import UpstreamError
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.transports.causes import MessageTooLarge, NotMcp, TooManyValues
from gateway.upstream.transports.channel import STREAM_CLOSED, Channel, Ending
from gateway.upstream.transports.clients import (
    CONNECT_TIMEOUT,
    FAREWELL_TIMEOUT,
    NOTICE_TIMEOUT,
    Capped,
    beginning,
    challenges,
    client_options,
    is_encoded,
    is_event_stream,
    is_json,
    longest_call,
)
from gateway.upstream.transports.event_stream import MendedEvents
from gateway.upstream.transports.messages import mended, write_fields
from gateway.upstream.transports.refusals import refusal
from gateway.upstream.transports.send_authorized import send_request

_SMALL = 64 * 1024
_OF_THE_BODY = frozenset({"content-length", "transfer-encoding", "content-encoding"})

_MESSAGE_WITH_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(?:[^"\\,]+|"(?:[^"\\]|\\.)*"),"method":')


@asynccontextmanager
async def open_http(settings: UpstreamSettings, tokens: TokenSource | None = None) -> AsyncGenerator[Channel]:
    """Connect to the upstream's URL over Streamable HTTP; leaving the context ends the session."""
    assert settings.url is not None
    tickets = Tickets()
    ending = Ending()
    async with (
        Client(settings, tickets, tokens) as client,
        streamable_http_client(settings.url, http_client=client, max_sse_event_size=settings.max_message_bytes) as (
            read,
            write,
        ),
    ):
        yield Channel(read, write, ending, tickets.failure_in, is_http=True)


class Tickets:
    """Keeps failures by ticket: a ticket passes through the SDK in an error message, and retrieves the failure.

    Upstreams cannot forge tickets, because they have a random part.
    """

    def __init__(self) -> None:
        self._mark = f"failure-{random_secrets.token_hex(12)}"
        self._ticket = re.compile(rf"{self._mark}-(\d+)")
        self._failures: dict[int, Exception] = {}
        self._count = 0

    def leave(self, failure: Exception) -> str:
        """Keep a failure and return its ticket. Only the last hundred are kept, since each is retrieved at once."""
        self._count += 1
        self._failures[self._count] = failure
        self._failures.pop(self._count - 100, None)
        return f"{self._mark}-{self._count}"

    def failure_in(self, error: ErrorData) -> Exception | None:
        """Return the failure whose ticket is in an error's message, or the failure behind an error of the SDK's own."""
        found = self._ticket.search(error.message)
        if found is not None:
            return self._failures.pop(int(found.group(1)), None)
        for code, beginning_of_message, failure in _SAID_BY_SDK:
            if error.code == code and error.message.startswith(beginning_of_message):
                return failure(error.message)
        return None


class Client(httpx2.AsyncClient):
    """The client below the SDK's transport, which answers in place of the upstream if a request fails."""

    def __init__(self, settings: UpstreamSettings, tickets: Tickets, tokens: TokenSource | None = None) -> None:
        super().__init__(**client_options(settings))
        self._limit = settings.max_message_bytes
        self._longest_call = longest_call(settings)
        self._tickets = tickets
        self._tokens = tokens

    def build_request(self, method: str, url: httpx2.URL | str, **options: Any) -> httpx2.Request:
        """Build the request as httpx2 does, but with JSON written by pydantic, which is faster and never fails."""
        if (body := options.pop("json", None)) is not None:
            options["content"] = write_fields(body)
        return super().build_request(method, url, **options)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request of the SDK's transport.

        A POST never raises: its failure is returned as a response. A GET (the standing stream) and a DELETE (the end of
        a session) may fail, which the SDK can handle.
        """
        if request.method == "GET" and "last-event-id" in request.headers:
            await STREAM_CLOSED.get()()
        if request.method == "DELETE":
            _limit(request, FAREWELL_TIMEOUT)
        elif request.method == "POST":
            # An abandoned call leaves its request behind, which must not wait forever.
            awaited = _MESSAGE_WITH_ANSWER.match(await request.aread())
            _limit(request, self._longest_call if awaited else NOTICE_TIMEOUT)
        try:
            response = await send_request(self._tokens, partial(super().send, **options), request)
        except (httpx2.RequestError, UpstreamError) as failure:
            if request.method == "DELETE":
                return httpx2.Response(204, request=request)  # nobody is left to keep the session
            if request.method != "POST" and isinstance(failure, UpstreamError):
                raise httpx2.ReadError(failure.message, request=request) from failure
            if request.method != "POST":
                raise
            return self._answer(request, failure)
        if request.method == "POST" and response.next_request is None:
            return await self._checked(request, response)
        return self._mending(response) if is_event_stream(_type_of(response)) else response

    def _mending(self, response: httpx2.Response) -> httpx2.Response:
        response.stream = MendedEvents(response, self._limit)
        return response

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if is_encoded(response.headers.get("content-encoding", "")):
            await response.aclose()
            return self._answer(request, NotMcp("answered with compressed content, which was not asked for"))
        if response.status_code >= 400:
            return await self._refused(request, response)
        if is_event_stream(_type_of(response)):
            return self._mending(response)
        if response.status_code == 202:
            return response
        response.stream = Capped(response, self._limit)
        try:
            await response.aread()
        except (MessageTooLarge, httpx2.TransportError) as failure:
            return self._answer(request, failure)
        if response.content and not is_json(_type_of(response)):
            return self._answer(request, NotMcp("answered with something that is neither JSON nor an event stream"))
        if has_more_values(response.content):
            return self._answer(request, TooManyValues())
        if (body := mended(response.content)) is not response.content:
            headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_BODY}
            return httpx2.Response(response.status_code, headers=headers, content=body, request=request)
        return response

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return a response of 400 and above unchanged if it is a JSON-RPC error, else a failure by its status."""
        body = await beginning(response, _SMALL)
        in_session = "mcp-session-id" in request.headers
        failure = refusal(response.status_code, body, challenges(response), in_session=in_session)
        if failure is not None:
            return self._answer(request, failure)
        headers = {"content-type": "application/json"}
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    def _answer(self, request: httpx2.Request, failure: Exception) -> httpx2.Response:
        error = {"code": PARSE_ERROR, "message": self._tickets.leave(failure)}
        return httpx2.Response(400, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _type_of(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "")


def _limit(request: httpx2.Request, seconds: float) -> None:
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT), pool=None)
    request.extensions = {**request.extensions, "timeout": timeout.as_dict()}


def _lost(_: str) -> Exception:
    return httpx2.ReadError("the answer broke off")


def _no_message(_: str) -> Exception:
    return NotMcp("answered with something that is not a JSON-RPC message")


_SAID_BY_SDK: tuple[tuple[int, str, Callable[[str], Exception]], ...] = (
    (-32000, "SSE stream failed: Server-sent event exceeded", lambda said: httpx2.SSEError(said)),
    (-32000, "SSE stream failed", lambda _: NotMcp("answered with a broken event stream")),
    (-32000, "SSE stream ended", _lost),
    (-32600, "server answered a request with 202", lambda _: NotMcp("accepted a request (202) and did not answer it")),
    (-32600, "Redirect to", lambda said: NotMcp(f"answered with a {said[0].lower()}{said[1:]}")),
    (-32700, "Failed to parse JSON response", _no_message),
    (-32700, "Failed to parse SSE message", _no_message),
)
"""Errors made up by the SDK's transport (mcp 2.3.0, client/streamable_http.py): code, beginning, meaning.

The same error from an upstream is interpreted in the same way, which does no harm.
"""
