"""The HTTP requests of a Streamable HTTP connection, with its session and revision, and their failures."""

import logging
from collections.abc import Callable, Mapping

import anyio
import httpx2
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, JSONRPCError

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.errors import UpstreamError
from gateway.upstream.transports.causes import NotMcp
from gateway.upstream.transports.channel import STREAM_CLOSED
from gateway.upstream.transports.clients import (
    FAREWELL_TIMEOUT,
    NOTICE_TIMEOUT,
    is_encoded,
    is_event_stream,
    longest_call,
)
from gateway.upstream.transports.messages import messages_in, read_json
from gateway.upstream.transports.refusals import refusal
from gateway.upstream.transports.streamable.client import HttpClient, Request
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.response import Response

logger = logging.getLogger(__name__)

_SESSION = "mcp-session-id"
_SMALL = 64 * 1024
_MESSAGE = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Wire:
    """Sends messages to an upstream's URL. Every method raises what the table of failures explains."""

    def __init__(self, client: HttpClient, settings: UpstreamSettings) -> None:
        self.session_id: str | None = None
        self.revision: str | None = None
        """That of the last message which named one: it is that of everything that does not."""
        self._client = client
        self._longest_call = longest_call(settings)

    @property
    def is_modern(self) -> bool:
        """Whether the end of a response's stream cancels its request."""
        return self.revision in MODERN_REVISIONS

    def begin(self, method: str, headers: Mapping[str, str]) -> None:
        """Note the revision of a message. `initialize` is sent without one, whatever was tried before it."""
        if method == "initialize":
            self.revision = None
        elif (revision := headers.get(MCP_PROTOCOL_VERSION_HEADER)) is not None:
            self.revision = revision

    async def ask(
        self,
        body: bytes,
        headers: Mapping[str, str],
        *,
        opens_session: bool,
        is_repeatable: bool,
        let_go: Callable[[Connection], None],
        on_sent: Callable[[], None],
    ) -> Response:
        """Send a request, and return the response with its answer."""
        in_session = self.session_id is not None
        sent = Request("POST", {**self._headers(), **headers}, body, self._longest_call, is_repeatable, let_go, on_sent)
        response = await self._client.send(sent)
        try:
            await _check(response, in_session=in_session)
            if response.status == 202:
                raise NotMcp("accepted a request (202) and did not answer it")
        except BaseException:
            response.close()
            raise
        if opens_session and (session_id := response.header(_SESSION.encode())):
            self.session_id = session_id
        return response

    async def tell(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no answer."""
        in_session = self.session_id is not None
        sent = Request("POST", {**self._headers(), **headers}, body, NOTICE_TIMEOUT)
        response = await self._client.send(sent)
        try:
            await _check(response, in_session=in_session)
            response.release()
        except BaseException:
            response.close()
            raise

    async def listen(self, last_id: bytes, on_sent: Callable[[], None] = lambda: None) -> Response:
        """Open an event stream: the standing one, or one that is resumed after the event with `last_id`.

        Raises NoStream if the answer is none.
        """
        headers = {**self._headers(), "cache-control": "no-store"}
        if last_id:
            await STREAM_CLOSED.get()()
            headers["last-event-id"] = last_id.decode("latin-1")
        response = await self._client.send(Request("GET", headers, on_sent=on_sent))
        is_stream = (
            response.unfollowed is None and response.status < 300 and is_event_stream(response.header(b"content-type"))
        )
        if is_stream and not is_encoded(response.header(b"content-encoding")):
            return response
        response.close()
        raise NoStream(response)

    async def end(self) -> None:
        """End the session, if there is one and the server cares."""
        if self.session_id is None:
            return
        with anyio.move_on_after(FAREWELL_TIMEOUT):
            try:
                response = await self._client.send(Request("DELETE", self._headers(), seconds=FAREWELL_TIMEOUT))
                response.close()
            except (httpx2.TransportError, UpstreamError) as failure:
                logger.debug("the end of a session was not accepted: %s", type(failure).__name__)

    def _headers(self) -> dict[str, str]:
        headers = dict(_MESSAGE)
        if self.session_id is not None:
            headers[_SESSION] = self.session_id
        if self.revision is not None:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self.revision
        return headers


class NoStream(Exception):
    """A GET was answered with something other than an event stream."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.is_final = response.status == 405 or response.unfollowed is not None
        """Whether another attempt would be answered in the same way."""


async def _check(response: Response, *, in_session: bool) -> None:
    """Raise the failure that a response to a message means, if it means one."""
    if response.unfollowed is not None:
        raise NotMcp(response.unfollowed)
    if is_encoded(response.header(b"content-encoding")):
        raise NotMcp("answered with compressed content, which was not asked for")
    if response.status < 400:
        return
    body = await response.beginning(_SMALL)
    failure = refusal(response.status, body, response.header_list(b"www-authenticate"), in_session=in_session)
    raise failure or _said_in(body, response.status)


def _said_in(body: bytes, status: int) -> MCPError:
    """Return the JSON-RPC error in a body."""
    try:
        error = next(each.error for each in messages_in(read_json(body)) if isinstance(each, JSONRPCError))
    except (NotMcp, StopIteration):
        if status == 404:
            return MCPError(METHOD_NOT_FOUND, "Not Found")
        return MCPError(INTERNAL_ERROR, "Server returned an error response")
    return MCPError(error.code, error.message, None if isinstance(error.data, Exception) else error.data)
