"""The Streamable HTTP transport: the SDK's, over a client that keeps it within limits and out of trouble.

The SDK's transport turns an HTTP failure into a JSON-RPC error that no longer says which (401 and 503 look the same),
lets one broken request end the connection with all others on it, and reads JSON bodies of any size. So its client is
ours: a failed request is answered with a made-up JSON-RPC error that carries a ticket, which names the failure.
"""

import re
import secrets as random_secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import METHOD_NOT_FOUND, PARSE_ERROR, ErrorData
from pydantic_core import from_json

from gateway.config.schema import UpstreamSettings
from gateway.core.model.json_values import is_dict
from gateway.upstream.transports.channel import STREAM_CLOSED, Channel, Ending
from gateway.upstream.transports.clients import (
    CONNECT_TIMEOUT,
    Capped,
    beginning,
    challenges,
    client_options,
    is_encoded,
    is_event_stream,
    longest_call,
)
from gateway.upstream.transports.event_stream import MendedEvents
from gateway.upstream.transports.failures import HttpStatus, MessageTooLarge, NotMcp, SessionExpired
from gateway.upstream.transports.messages import mended, write_fields

_SMALL = 64 * 1024
_NOTICE_TIMEOUT = 10.0
"""Seconds for the upstream to accept a message that has no answer; the SDK sends nothing else meanwhile."""

_FAREWELL_TIMEOUT = 2.0
"""Seconds for the upstream to accept the end of its session."""

_UNKNOWN_SESSION = re.compile(
    r"\b(?:no valid|invalid|unknown|expired)\b.{0,20}\bsession"
    r"|\bsession\b.{0,20}\b(?:not found|expired|invalid|unknown)",
    re.IGNORECASE,
)
"""What servers on the official TypeScript example say, with 400 in place of 404, to a session that they do not know."""

_OF_THE_BODY = frozenset({"content-length", "transfer-encoding", "content-encoding"})

_MESSAGE_WITH_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(?:[^"\\,]+|"(?:[^"\\]|\\.)*"),"method":')


@asynccontextmanager
async def open_http(settings: UpstreamSettings) -> AsyncGenerator[Channel]:
    """Talk to the upstream's url over Streamable HTTP; leaving ends the session."""
    assert settings.url is not None
    tickets = Tickets()
    ending = Ending()
    async with (
        Client(settings, tickets) as client,
        streamable_http_client(settings.url, http_client=client, max_sse_event_size=settings.max_message_bytes) as (
            read,
            write,
        ),
    ):
        yield Channel(read, write, ending, tickets.failure_in, is_http=True)


class Tickets:
    """Failures, left at the cloakroom: a ticket goes through the SDK in an error message and gets the failure back.

    A ticket cannot be forged by an upstream: it has a random part.
    """

    def __init__(self) -> None:
        self._mark = f"failure-{random_secrets.token_hex(12)}"
        self._ticket = re.compile(rf"{self._mark}-(\d+)")
        self._failures: dict[int, Exception] = {}
        self._count = 0

    def leave(self, failure: Exception) -> str:
        """Keep a failure; the ticket for it. Only the last hundred are kept: each is asked for at once."""
        self._count += 1
        self._failures[self._count] = failure
        self._failures.pop(self._count - 100, None)
        return f"{self._mark}-{self._count}"

    def failure_in(self, error: ErrorData) -> Exception | None:
        """The failure whose ticket is in an error's message, or what else the SDK itself meant by the error."""
        found = self._ticket.search(error.message)
        if found is not None:
            return self._failures.pop(int(found.group(1)), None)
        for code, beginning_of_message, failure in _SAID_BY_SDK:
            if error.code == code and error.message.startswith(beginning_of_message):
                return failure(error.message)
        return None


class Client(httpx2.AsyncClient):
    """The client under the SDK's transport: answers for the upstream when the upstream does not."""

    def __init__(self, settings: UpstreamSettings, tickets: Tickets) -> None:
        super().__init__(**client_options(settings))
        self._limit = settings.max_message_bytes
        self._longest_call = longest_call(settings)
        self._tickets = tickets

    def build_request(self, method: str, url: httpx2.URL | str, **options: Any) -> httpx2.Request:
        """The request as httpx2 builds it, with JSON written by pydantic: faster, and never failing."""
        if (body := options.pop("json", None)) is not None:
            options["content"] = write_fields(body)
        return super().build_request(method, url, **options)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request of the SDK's transport.

        A POST never raises: its failure is the answer. A GET (the standing stream) and a DELETE (the end of a session)
        may fail, which the SDK takes well.
        """
        if request.method == "GET" and "last-event-id" in request.headers:
            await STREAM_CLOSED.get()()
        if request.method == "DELETE":
            _limit(request, _FAREWELL_TIMEOUT)
        elif request.method == "POST":
            # A call that was given up leaves its request behind, which must not wait for ever.
            awaited = _MESSAGE_WITH_ANSWER.match(await request.aread())
            _limit(request, self._longest_call if awaited else _NOTICE_TIMEOUT)
        try:
            response = await super().send(request, **options)
        except httpx2.RequestError as failure:
            if request.method == "DELETE":
                return httpx2.Response(204, request=request)  # nobody is left who would keep the session
            if request.method != "POST":
                raise
            return self._answer(request, failure)
        if request.method == "POST" and response.next_request is None:
            return await self._checked(request, response)
        return self._mending(response) if is_event_stream(response) else response

    def _mending(self, response: httpx2.Response) -> httpx2.Response:
        response.stream = MendedEvents(response, self._limit)
        return response

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if is_encoded(response):
            await response.aclose()
            return self._answer(request, NotMcp("answered with compressed content, which was not asked for"))
        if response.status_code >= 400:
            return await self._refused(request, response)
        if is_event_stream(response):
            return self._mending(response)
        if response.status_code == 202:
            return response
        response.stream = Capped(response, self._limit)
        try:
            await response.aread()
        except (MessageTooLarge, httpx2.TransportError) as failure:
            return self._answer(request, failure)
        if response.content and not _is_json(response):
            return self._answer(request, NotMcp("answered with something that is neither JSON nor an event stream"))
        if (body := mended(response.content)) is not response.content:
            headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_BODY}
            return httpx2.Response(response.status_code, headers=headers, content=body, request=request)
        return response

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """An answer of 400 and above: as it is when it is a JSON-RPC error of the upstream's, else by its status."""
        body = await beginning(response, _SMALL)
        code, said = _error_in(body)
        if "mcp-session-id" in request.headers and code != METHOD_NOT_FOUND:
            status = response.status_code
            if status in (404, 410) or (status == 400 and _UNKNOWN_SESSION.search(said)):
                return self._answer(request, SessionExpired())
        if code is None or response.status_code in (401, 403, 407):
            return self._answer(request, HttpStatus(response.status_code, challenges(response)))
        headers = {"content-type": "application/json"}
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    def _answer(self, request: httpx2.Request, failure: Exception) -> httpx2.Response:
        error = {"code": PARSE_ERROR, "message": self._tickets.leave(failure)}
        return httpx2.Response(400, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def _limit(request: httpx2.Request, seconds: float) -> None:
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT), pool=None)
    request.extensions = {**request.extensions, "timeout": timeout.as_dict()}


def _error_in(body: bytes) -> tuple[int | None, str]:
    """Code and message of the JSON-RPC error that a body is; None and nothing when it is none."""
    try:
        value = from_json(body)
    except ValueError:
        return None, ""
    error = value.get("error") if is_dict(value) else None
    fields = error if is_dict(error) else {}
    code, message = fields.get("code"), fields.get("message")
    return (code, message[:200] if isinstance(message, str) else "") if isinstance(code, int) else (None, "")


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
"""Errors that the SDK's transport makes up (mcp 2.3.0, client/streamable_http.py): code, beginning, what they mean.

An upstream that sends the very same error is understood in the same way, which is no loss.
"""
