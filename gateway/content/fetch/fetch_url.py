"""Fetch one URL: check it, look up its host once, and connect to exactly that address.

URLs from upstreams, models and redirects are not trusted: they may lead back to this machine or its network, be
endless, or unpack into gigabytes. So only URLs that the configuration names are requested, each redirect is checked
like the first URL, and addresses are checked after the lookup, which is never repeated, since a second one might give
another address. No cookies, no credentials, no proxies from the environment.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2

from gateway._version import __version__
from gateway.config.content_settings import FetchSettings
from gateway.content.fetch.allowlist import Address
from gateway.content.fetch.decompress import decompressed
from gateway.content.fetch.file_names import name_in_disposition, name_in_url
from gateway.content.fetch.sniff import peeked, typed
from gateway.core.fact_words import counted, plain
from gateway.errors import FetchFailed, FetchRefused
from gateway.system.addresses import Resolve, addresses_of, system_resolver
from gateway.system.tls import HOOKS, ssl_context

_NEXT_ADDRESS = 3.0
"""Seconds after which a host's next address is tried."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Fetched:
    """Content while it is fetched: its type (by its bytes, else as declared), its name, and its bytes, once.

    `size` is the size that the server declares; None if it declares none, or if the content is compressed.
    """

    media_type: str
    name: str | None
    size: int | None
    chunks: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks


@asynccontextmanager
async def fetch(
    url: str,
    settings: FetchSettings,
    *,
    max_bytes: int | None = None,
    resolve: Resolve = system_resolver,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[Fetched]:
    """Fetch a URL. `max_bytes` may lower the limit in the settings. The time limits also apply to reading.

    `resolve` and `tls` are for tests.

    Raises, on entering or while it is read:
        FetchRefused: the URL, or a URL that it redirects to, may not be fetched.
        FetchFailed: there is no response, or no content, or it is too slow or too large.
    """
    most = settings.max_bytes if max_bytes is None else min(max_bytes, settings.max_bytes)
    patience = _Patience(settings)
    async with AsyncExitStack() as stack:
        address = Address(url, settings)
        for _ in range(settings.redirects + 1):
            response = await _asked(address, settings, patience, resolve, tls or ssl_context(), stack)
            if response.status_code not in _REDIRECTS or "location" not in response.headers:
                break
            address = Address(_next(address, response), settings)
        else:
            raise FetchFailed(f"more than {counted(settings.redirects, 'redirect')}, the last to {address}")
        if response.status_code != 200:
            raise FetchFailed(f"{address} answered {response.status_code}")
        size = _declared_size(response)
        if size is not None and size > most:
            raise _too_large(address, most)
        chunks = await stack.enter_async_context(aclosing(_body(response, address, most, patience)))
        head, rest = await peeked(chunks)
        whole = await stack.enter_async_context(aclosing(rest))
        headers = response.headers
        media_type = typed(head, headers.get("content-type"))
        name = name_in_disposition(headers.get("content-disposition")) or name_in_url(str(address.url))
        yield Fetched(media_type, name, size, whole)


@dataclass(frozen=True)
class Fetcher:
    """`fetch` with fixed settings."""

    settings: FetchSettings

    def __call__(self, url: str, *, max_bytes: int | None = None) -> AbstractAsyncContextManager[Fetched]:
        """Fetch a URL; see `fetch`."""
        return fetch(url, self.settings, max_bytes=max_bytes)


class _Patience:
    """The remaining time of a fetch."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._deadline = anyio.current_time() + settings.timeout

    def left(self, address: Address) -> float:
        """Return the seconds for the next step. Raises FetchFailed if the total time is used up."""
        left = self._deadline - anyio.current_time()
        if left <= 0:
            raise self.over(address)
        return min(left, self._settings.idle)

    def over(self, address: Address) -> FetchFailed:
        limits = f"{self._settings.idle:g} s of silence, {self._settings.timeout:g} s in all"
        return FetchFailed(f"{address} took too long ({limits})", remedy="see [fetch] timeout and idle")


async def _asked(
    address: Address,
    settings: FetchSettings,
    patience: _Patience,
    resolve: Resolve,
    tls: ssl.SSLContext,
    stack: AsyncExitStack,
) -> httpx2.Response:
    """Send a GET to the host's first address that accepts a connection. Return the response with its body unread."""
    seconds = patience.left(address)
    found = await addresses_of(address.host, address.port, resolve, private=address.may_be_private, seconds=seconds)
    # A client for each step: two names that share an address must not share a connection.
    client = await stack.enter_async_context(
        httpx2.AsyncClient(verify=tls, trust_env=False, follow_redirects=False, event_hooks=HOOKS)
    )
    failure: Exception | None = None
    for ip in found:
        seconds = patience.left(address)
        request = client.build_request(
            "GET",
            address.url.copy_with(host=ip),
            headers={
                "host": address.authority,
                "user-agent": f"mcp-gateway/{__version__}",
                "accept-encoding": "identity",
            },
            extensions={"sni_hostname": address.host},
            # Unless it is the last address, a short limit to connect leaves time to try the next one.
            timeout=httpx2.Timeout(seconds, connect=seconds if ip == found[-1] else min(seconds, _NEXT_ADDRESS)),
        )
        try:
            with anyio.fail_after(seconds):
                response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = error
            continue
        except (TimeoutError, httpx2.TimeoutException):
            raise patience.over(address) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FetchFailed(f"{address} cannot be asked: {plain(str(error), 200)}") from None
        stack.push_async_callback(response.aclose)
        return response
    raise FetchFailed(f"{address} cannot be reached: {plain(str(failure), 200)}")


def _next(address: Address, response: httpx2.Response) -> str:
    try:
        return str(address.url.join(response.headers["location"]))
    except (httpx2.InvalidURL, ValueError):
        raise FetchRefused(f"{address} redirects to what is not a URL") from None


async def _body(response: httpx2.Response, address: Address, most: int, patience: _Patience) -> AsyncGenerator[bytes]:
    size = 0
    async with aclosing(_raw(response, address, patience)) as raw:
        async for chunk in decompressed(raw, response.headers.get("content-encoding", ""), str(address)):
            size += len(chunk)
            if size > most:
                raise _too_large(address, most)
            yield chunk


async def _raw(response: httpx2.Response, address: Address, patience: _Patience) -> AsyncGenerator[bytes]:
    """Yield the bytes as they arrive, with a limit on each wait."""
    stream = response.aiter_raw()
    while True:
        try:
            with anyio.fail_after(patience.left(address)):
                chunk = await anext(stream, None)
        except (TimeoutError, httpx2.TimeoutException):
            raise patience.over(address) from None
        except httpx2.HTTPError as error:
            raise FetchFailed(f"the answer of {address} broke off: {plain(str(error), 200)}") from None
        if chunk is None:
            return
        yield chunk


def _declared_size(response: httpx2.Response) -> int | None:
    length = response.headers.get("content-length", "")
    is_plain = response.headers.get("content-encoding", "identity").lower() == "identity"
    return int(length) if is_plain and length.isascii() and length.isdigit() and len(length) < 19 else None


def _too_large(address: Address, most: int) -> FetchFailed:
    return FetchFailed(f"what {address} sends is larger than {most:,} bytes", remedy="see [fetch] max_bytes")
