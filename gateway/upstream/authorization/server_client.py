"""HTTP to authorization servers: to addresses that are permitted, within bounds, and without redirects.

Their URLs come from upstreams, which are not trusted: they may lead to this machine or its network. So a host is looked
up once, its addresses are checked, and the connection goes to exactly these. No cookies; no credentials but those that
the caller gives.
"""

import codecs
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2
from pydantic_core import from_json

from gateway._version import __version__
from gateway.config.secrets import hide, longest_first
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object, as_text, is_object
from gateway.system.addresses import Resolve, is_public, system_resolver
from gateway.system.loopback import is_loopback, is_this_machine
from gateway.system.tls import HOOKS, ssl_context
from gateway.upstream.authorization.refusals import Refused

MOST_BYTES = 256 * 1024
"""Maximum size of an answer. Metadata with a hundred scopes has a few kilobytes."""

MOST_URL = 4_096
"""Characters of a URL that a server names: it becomes a part of others, which HTTP clients bound as well."""

SECONDS = 15.0
"""Seconds for one request, from the lookup of the host to the end of the answer."""

_CONNECT = 4.0
"""Seconds after which a host's next address is tried."""

_ERROR = ("error", "error_description")
"""The members of an answer that are shown."""

_SHORTEST_SECRET = 4
"""Characters that a secret has at least, so that it would not be found within other words."""

_UNIQUE_LOCAL = ipaddress.ip_network("fc00::/7")
"""Private networks in IPv6."""


@dataclass(frozen=True)
class Answer:
    """An answer: its status, its JSON (None if that is not an object), its WWW-Authenticate and DPoP-Nonce headers."""

    status: int
    json: Mapping[str, Any] | None
    challenges: tuple[str, ...] = ()
    nonces: tuple[str, ...] = ()

    @property
    def error(self) -> str | None:
        """The error code that the server gives (RFC 6749, section 5.2)."""
        code = as_text(as_object(self.json).get("error"))
        return None if code is None else plain(code, 60)

    @property
    def cause(self) -> str:
        """The error in words: the server's code and description, or the status."""
        if self.error is None:
            return f"HTTP {self.status}"
        description = as_text(as_object(self.json).get("error_description"))
        return f"{self.error}: {plain(description, 200)}" if description else self.error

    def hiding(self, secrets: Iterable[str]) -> "Answer":
        """Return the answer without secrets of the request in its error: a server may repeat what it was sent."""
        values = longest_first(secrets, _SHORTEST_SECRET)
        said = {key: hide(text, values) for key in _ERROR if (text := as_text(as_object(self.json).get(key)))}
        return replace(self, json={**self.json, **said}) if self.json and said else self


class ServerClient:
    """Sends requests to the authorization servers of one upstream.

    `configured` are URLs that the user wrote into the configuration: their hosts may have any address, and plain HTTP
    if the URL has it. What else is named may be elsewhere on the internet. If a configured host is not on the public
    internet itself, the others may be on a private network too, and on this machine if it is there.
    """

    def __init__(self, configured: Sequence[str], resolve: Resolve = system_resolver) -> None:
        urls = [httpx2.URL(url) for url in configured]
        self._hosts = frozenset(url.host for url in urls)
        self._plain = frozenset((url.host, url.port) for url in urls if url.scheme == "http")
        self._ports = {url.host: url.port or (443 if url.scheme == "https" else 80) for url in urls}
        self._resolve = resolve

    def checked(self, url: str) -> httpx2.URL:
        """Return a URL that may be used, as far as it can be seen without looking up its host.

        Raises Refused if it is not a URL, has no TLS, or contains a user or a fragment.
        """
        try:
            parsed = httpx2.URL(url)
            port = urlsplit(url).port  # reads a host more strictly, and knows which ports there are
        except (httpx2.InvalidURL, ValueError):
            raise Refused("its authorization server is named by something that is not a URL") from None
        if len(url) > MOST_URL or port == 0:
            raise Refused("its authorization server is named by a URL that cannot be used")
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo or parsed.fragment:
            raise Refused("its authorization server is named by a URL that cannot be used")
        is_plain = parsed.scheme == "http" and (parsed.host, parsed.port) not in self._plain
        if is_plain and not is_this_machine(parsed.host):
            raise Refused(f"its authorization server at {parsed.host} does not use TLS (https)")
        return parsed

    async def get(self, url: str) -> Answer:
        """Fetch metadata."""
        return await self._send("GET", url, {})

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> Answer:
        """Send a form or JSON."""
        return await self._send("POST", url, headers, content)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None) -> Answer:
        target = self.checked(url)
        try:
            with anyio.fail_after(SECONDS):
                addresses = await self._addresses(target)
                for address in addresses:
                    seconds = SECONDS if address == addresses[-1] else _CONNECT
                    try:
                        return await self._exchange(method, target, address, headers, content, seconds)
                    except (httpx2.ConnectError, httpx2.ConnectTimeout):
                        if address == addresses[-1]:
                            raise
                raise AssertionError("a host without addresses was refused")
        except (TimeoutError, httpx2.TimeoutException):
            raise Refused(f"{target.host} did not answer within {SECONDS:g} s", is_passing=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            cause = plain(str(error), 200) or type(error).__name__
            raise Refused(f"{target.host} cannot be reached: {cause}", is_passing=True) from None

    async def _exchange(
        self,
        method: str,
        target: httpx2.URL,
        address: str | None,
        headers: Mapping[str, str],
        content: bytes | None,
        seconds: float,
    ) -> Answer:
        """Send one request to one address; None: through the proxy that the environment names."""
        sent = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"mcp-gateway/{__version__}",
            **headers,
            "host": target.netloc.decode("ascii"),
        }
        # A client for each request: two names that share an address must not share a connection.
        async with httpx2.AsyncClient(
            verify=ssl_context(), trust_env=address is None, follow_redirects=False, event_hooks=HOOKS
        ) as client:
            request = client.build_request(
                method,
                target if address is None else target.copy_with(host=address),
                headers=sent,
                content=content,
                extensions={} if address is None else {"sni_hostname": target.host},
                timeout=httpx2.Timeout(SECONDS, connect=seconds),
            )
            response = await client.send(request, stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise Refused(f"the answer of {target.host} is larger than {MOST_BYTES:,} bytes")
                challenges = tuple(response.headers.get_list("www-authenticate"))
                nonces = tuple(response.headers.get_list("dpop-nonce"))
                return Answer(response.status_code, _object_in(bytes(body)), challenges, nonces)
            finally:
                await response.aclose()

    async def _addresses(self, target: httpx2.URL) -> Sequence[str | None]:
        if _through_proxy(target):
            return (None,)
        host, port = target.host, target.port or (443 if target.scheme == "https" else 80)
        found = await self._looked_up(host, port)
        if host not in self._hosts and not all(is_public(address) for address in found):
            near = [address for one, port in self._ports.items() for address in await self._looked_up(one, port)]
            if not all(_is_near(address, near) for address in found):
                raise Refused(f"its authorization server {host} is at an address that is not public")
        return found

    async def _looked_up(self, host: str, port: int) -> Sequence[str]:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Refused(f"the name {host} cannot be resolved: {plain(str(error))}", is_passing=True) from None
        if not found:
            raise Refused(f"the name {host} has no address", is_passing=True)
        return found


def _is_near(address: str, configured: Sequence[str]) -> bool:
    """Whether an address may be used because a configured host is as near: on this machine, or on its network."""
    if is_public(address):
        return True
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if ip.is_loopback:
        return any(is_loopback(one) for one in configured)
    is_odd = ip.is_link_local or ip.is_unspecified or ip.is_multicast or ip.is_reserved
    # An IPv4 address in an IPv6 one may be any of the above.
    is_wrapped = ip.version == 6 and ip not in _UNIQUE_LOCAL
    return ip.is_private and not is_odd and not is_wrapped and any(not is_public(one) for one in configured)


def _through_proxy(target: httpx2.URL) -> bool:
    """Whether the environment names a proxy for a URL, which then looks the host up itself."""
    if is_this_machine(target.host) or not {target.scheme, "all"} & getproxies().keys():
        return False
    try:
        ipaddress.ip_address(target.host)
    except ValueError:
        return not proxy_bypass(target.host)
    return False


def _object_in(body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object in a body; None if there is none, or a text in it that cannot be sent on (half a pair)."""
    try:
        value: Any = from_json(body.removeprefix(codecs.BOM_UTF8), allow_inf_nan=False)
    except ValueError:
        return None
    return value if is_object(value) else None
