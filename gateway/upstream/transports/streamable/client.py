"""An HTTP client for one URL: redirects within its origin, cookies, and one more attempt where that is safe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import httpx2

from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.authorization.ports import Credentials, TokenSource
from gateway.upstream.transports.clients import CONNECT_TIMEOUT, client_options
from gateway.upstream.transports.send_authorized import Refusal, send_authorized
from gateway.upstream.transports.streamable.connection import Connection
from gateway.upstream.transports.streamable.pool import ConnectionPool
from gateway.upstream.transports.streamable.redirects import location_of, may_follow, unfollowed
from gateway.upstream.transports.streamable.requests import Address, address_of, checked_headers, head_of
from gateway.upstream.transports.streamable.response import Response

_MOST_REDIRECTS = 20


@dataclass(frozen=True)
class Request:
    """A request to the URL of an upstream, whose response may be silent for `seconds` (None: for any time).

    `is_repeatable` says that it does no harm twice, so that it may be sent again on a new connection if the server has
    closed the one that was used without any answer. Other requests are not (RFC 9110, 9.2.2): the server may have
    processed them. `on_sent` is called when it was written, and `let_go` gets its connection if it is cancelled.
    """

    method: str
    headers: Mapping[str, str]
    body: bytes | None = None
    seconds: float | None = None
    is_repeatable: bool = False
    let_go: Callable[[Connection], None] = Connection.abort
    on_sent: Callable[[], None] = lambda: None


class HttpClient:
    """Sends requests to an upstream's URL, over connections that it keeps open for a short while."""

    def __init__(self, settings: UpstreamSettings, tokens: TokenSource | None = None) -> None:
        """Raises httpx2.InvalidURL, and httpx2.LocalProtocolError for headers that cannot be sent."""
        options = client_options(settings)
        self._url = httpx2.URL(settings.url or "")
        self._address = address_of(self._url)
        self._headers = {"connection": "keep-alive", **checked_headers(options["headers"])}
        self._connect_seconds = options["timeout"].connect or CONNECT_TIMEOUT
        self._cookies = httpx2.Cookies()
        self._tokens = tokens
        self._pool = ConnectionPool()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    async def send(self, request: Request) -> Response:
        """Return the response as soon as its headers are complete; the caller closes or releases it.

        Redirects are followed as by the SDK's transport. Any other is returned, and described in `unfollowed`.

        Raises httpx2's errors, LoginRequired and LoginFailed.
        """
        if self._tokens is None:
            return await self._send(request)
        return await send_authorized(self._tokens, partial(self._send, request), _refusal_in, _discard)

    async def _send(self, request: Request, token: Credentials | None = None) -> Response:
        # A token goes wherever a redirect is followed to: the same origin, or the same host with TLS.
        url, address = self._url, self._address
        followed = 0
        while True:
            response = await self._exchange(request, url, address, token)
            location = location_of(url, response) if 300 <= response.status < 400 else None
            if location is None:
                return response
            if followed == _MOST_REDIRECTS or not may_follow(request.method, url, location, response.status):
                response.unfollowed = unfollowed(url, location)
                return response
            response.release()
            followed += 1
            there = address_of(location)
            url, address = location, replace(there, headers={**address.headers, **there.headers})

    async def _exchange(
        self, request: Request, url: httpx2.URL, address: Address, token: Credentials | None
    ) -> Response:
        given = request.headers if token is None else {**request.headers, **token.headers(request.method, str(url))}
        headers = {**self._headers, **checked_headers(given)}
        if self._cookies.jar and "cookie" not in headers:  # one that is configured is the one that is meant
            sent = httpx2.Request(request.method, url)
            self._cookies.set_cookie_header(sent)
            headers |= {"cookie": sent.headers["cookie"]} if "cookie" in sent.headers else {}
        body = request.body or b""
        head = head_of(request.method, address, headers, None if request.body is None else len(body))
        response = await self._sent(request, address, head, body)
        if token is not None:
            token.heed(str(url), response.header_list(b"dpop-nonce"))
        if set_cookies := response.header_list(b"set-cookie"):
            self._keep(set_cookies, request.method, url)
        return response

    async def _sent(self, request: Request, address: Address, head: bytes, body: bytes) -> Response:
        connection = self._pool.take(address.origin)
        is_reused = connection is not None
        while True:
            if connection is None:
                seconds = self._connect_seconds
                if request.seconds is not None:
                    seconds = min(request.seconds, CONNECT_TIMEOUT)
                connection = await self._pool.open(address.origin, seconds)
            response = connection.begin(request.seconds)
            try:
                await connection.write(response, head, body)
                request.on_sent()
                await response.opened()
                return response
            except httpx2.TransportError as error:
                connection.abort()
                is_stale = is_reused and not response.has_begun and not isinstance(error, httpx2.TimeoutException)
                if not is_stale or not request.is_repeatable:
                    raise
                connection, is_reused = None, False
            except BaseException:
                request.let_go(connection)
                raise

    def _keep(self, set_cookies: list[str], method: str, url: httpx2.URL) -> None:
        # Others could not be sent back: a cookie is ASCII (RFC 6265, 4.1.1).
        headers = [(b"set-cookie", each.encode("ascii")) for each in set_cookies if each.isascii()]
        answer = httpx2.Response(200, headers=headers, request=httpx2.Request(method, url))
        self._cookies.extract_cookies(answer)


def _refusal_in(response: Response) -> Refusal:
    return Refusal(response.status, response.header_list(b"www-authenticate"))


async def _discard(response: Response) -> None:
    response.release()
