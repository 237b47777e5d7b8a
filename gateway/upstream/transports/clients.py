"""HTTP clients for upstreams: one shared TLS context, the configured headers, and limits on reading."""

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, TypedDict, cast
from urllib.request import getproxies

import httpx2

from gateway._version import __version__
from gateway.config.upstream_settings import UpstreamSettings
from gateway.system.gateway_chain import via
from gateway.system.loopback import is_this_machine
from gateway.system.tls import HOOKS, ssl_context
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.transports.causes import HttpStatus, MessageTooLarge, NotMcp
from gateway.upstream.transports.send_authorized import send_request

CONNECT_TIMEOUT = 30.0
"""Seconds to open a connection. Responses have no limit here, because calls have their own."""

KEEPALIVE_EXPIRY = 4.0
"""Seconds after which an idle connection is not reused: less than the 5 after which common servers close it."""

MOST_IDLE = 20
"""Idle connections that are kept for each upstream."""

NOTICE_TIMEOUT = 10.0
"""Seconds for an upstream to accept a message that has no response."""

FAREWELL_TIMEOUT = 2.0
"""Seconds for an upstream to accept the end of its session."""

_MOST_REDIRECTS = 5


def longest_call(settings: UpstreamSettings) -> float:
    """Return the seconds after which nobody can be waiting for a response, whatever limit the tool has."""
    limits = [settings.timeout.call, *(one.call for one in settings.tools.timeout.values() if one.call is not None)]
    return max(limits) + 5


class ClientOptions(TypedDict):
    """The options that every upstream client is created with. None of them follows redirects."""

    headers: dict[str, str]
    verify: ssl.SSLContext
    timeout: httpx2.Timeout
    limits: httpx2.Limits
    trust_env: bool
    event_hooks: Mapping[str, list[Any]]


def client_options(settings: UpstreamSettings) -> ClientOptions:
    """Return an upstream's client options: configured headers, shared TLS context, and a limit on connecting only.

    Compression is declined, because a small compressed body can be enormous. Proxies come from the environment, but are
    not used for this machine.
    """
    own = {"user-agent": f"mcp-gateway/{__version__}", **via(os.environ)}
    return ClientOptions(
        headers={**own, **settings.headers, "accept-encoding": "identity"},
        verify=ssl_context(),
        timeout=httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT, settings.timeout.start)),
        limits=httpx2.Limits(max_keepalive_connections=MOST_IDLE, keepalive_expiry=KEEPALIVE_EXPIRY),
        trust_env=not is_this_machine(httpx2.URL(settings.endpoint or "").host),
        event_hooks=HOOKS,
    )


def takes_own_client(settings: UpstreamSettings) -> bool:
    """Whether an upstream is reached by the gateway's own HTTP client, which knows no proxies and needs httptools.

    Otherwise, the SDK's transport is used.
    """
    if settings.http_client != "gateway" or find_spec("httptools") is None:
        return False
    url = httpx2.URL(settings.url or "")
    return is_this_machine(url.host) or not {url.scheme, "all"} & getproxies().keys()


def same_origin(url: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    return (url.scheme, url.host, url.port) == (other.scheme, other.host, other.port)


async def open_stream(client: httpx2.AsyncClient, url: str, tokens: TokenSource | None = None) -> httpx2.Response:
    """GET an event stream, following redirects only within its origin. The caller closes the response.

    Raises HttpStatus if the response is not a stream, NotMcp for a redirect elsewhere, LoginRequired, LoginFailed, and
    httpx2's errors.
    """
    request = client.build_request("GET", url, headers={"accept": "text/event-stream", "cache-control": "no-store"})
    for _ in range(_MOST_REDIRECTS):
        response = await send_request(tokens, partial(client.send, stream=True), request)
        following = response.next_request
        if following is None:
            break
        await response.aclose()
        if not same_origin(request.url, following.url):
            raise NotMcp(f"answered with a redirect to another origin, {following.url.host}, which is not followed")
        request = following
    else:
        raise NotMcp("answered with one redirect after another")
    if response.status_code != 200:
        await response.aclose()
        raise HttpStatus(response.status_code, challenges(response))
    if is_encoded(response.headers.get("content-encoding", "")):
        await response.aclose()
        raise NotMcp("answered with compressed content, which was not asked for")
    return response


def challenges(response: httpx2.Response) -> list[str]:
    """Return the WWW-Authenticate headers, which say what credentials are required."""
    return response.headers.get_list("www-authenticate")


def is_encoded(content_encoding: str) -> bool:
    """Whether a body is compressed, although `identity` was requested."""
    return content_encoding.strip().lower() not in ("", "identity")


def is_event_stream(content_type: str) -> bool:
    """Whether a body is a stream of events, each of which has its own limit."""
    return content_type.lower().startswith("text/event-stream")


def is_json(content_type: str) -> bool:
    """Whether a body is JSON, as its sender says."""
    return content_type.lower().startswith("application/json")


async def beginning(response: httpx2.Response, limit: int) -> bytes:
    """Read up to `limit` bytes of a body, and close the response."""
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in response.aiter_raw():
            parts.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
    except httpx2.TransportError:
        pass  # return what was received before the failure
    finally:
        await response.aclose()
    return b"".join(parts)[:limit]


class Capped(httpx2.AsyncByteStream):
    """A body that raises MessageTooLarge as soon as it exceeds `limit` bytes, whatever length it declares."""

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._inner = cast("httpx2.AsyncByteStream", response.stream)
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._limit:
                raise MessageTooLarge(self._limit)
            yield chunk

    async def aclose(self) -> None:
        """Close the body, read or not."""
        await self._inner.aclose()
