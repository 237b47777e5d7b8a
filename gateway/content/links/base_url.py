"""What trusted proxies say of a request: the base URL under which it reached the gateway, and where it comes from.

Links in the response begin with the base URL; the log and the audit trail have the client's address.

`Forwarded` (RFC 7239) and `X-Forwarded-Proto`, `-Host` and `-Prefix` hold the address that a reverse proxy was asked
for. Anybody can send them, so they count only if the connection comes from a trusted proxy. Of several values the
last one counts, because the nearest proxy wrote that one, whatever it received itself. Addresses (`Forwarded` and
`X-Forwarded-For`) are read from the last one on, as long as those that wrote them are trusted proxies.
"""

import ipaddress
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.types import Scope

BASE_SCOPE = "gateway.base"
"""The key in an HTTP request's ASGI scope for the base URL under which the request reached the gateway."""

CLIENT_SCOPE = "gateway.client_address"
"""The key in the scope for the client's address; missing unless a trusted proxy gives one."""

PRINCIPAL_SCOPE = "gateway.principal"
"""The key in the scope for the principal; missing if nobody was authenticated."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HOST = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_PAIR = re.compile(r'\s*([A-Za-z]+)\s*=\s*(?:"([^"\\]*)"|([^\s;,"]*))\s*(?:;|$)')

_MOST_HOPS = 16
"""Maximum number of proxies whose addresses are read."""

_current: ContextVar[str | None] = ContextVar("gateway.base", default=None)


def current_base() -> str | None:
    """Return the base URL of the request that the running task answers; None outside a request."""
    return _current.get()


@contextmanager
def answering_under(base: str | None) -> Generator[None]:
    """Set the base URL of the request that the running task, and the tasks it starts, answer inside the context."""
    token = _current.set(base)
    try:
        yield
    finally:
        _current.reset(token)


class Bases:
    """Finds the base URL of each request. `root_path` is the path below which a reverse proxy serves the gateway."""

    def __init__(self, root_path: str = "", trusted_proxies: Iterable[str] = ()) -> None:
        self.root_path = root_path
        self._trusted = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in trusted_proxies)

    def of(self, scope: Scope) -> str:
        """Return the base URL without a trailing slash, such as `https://gateway.example.com/mcp-gateway`."""
        headers = Headers(scope=scope)
        forwarded = _forwarded(headers) if self._is_trusted(scope) else {}
        scheme = forwarded.get("proto", "").lower()
        host, prefix = forwarded.get("host", ""), forwarded.get("prefix", "").rstrip("/")
        return "".join(
            (
                scheme if scheme in ("http", "https") else scope.get("scheme", "http"),
                "://",
                host if _HOST.fullmatch(host) else headers.get("host", ""),
                prefix if _PREFIX.fullmatch(prefix) else self.root_path,
            )
        )

    def client_of(self, scope: Scope) -> str | None:
        """Return the address of the client before all trusted proxies; None if it is the peer's.

        If the two headers say different things, one of them is the client's own, and neither counts.
        """
        if not self._is_trusted(scope):
            return None
        headers = Headers(scope=scope)
        lists = (_listed(headers, "x-forwarded-for"), _listed_in_standard(headers))
        found = {self._before_proxies(addresses) for addresses in lists if addresses}
        return found.pop() if len(found) == 1 else None

    def _before_proxies(self, addresses: list[str]) -> str | None:
        """Return the last address that is not a trusted proxy's, or the one closest to the client that can be read."""
        nearest = None
        for text in reversed(addresses[-_MOST_HOPS:]):
            address = _address(text)
            if address is None:
                break
            nearest = str(address)
            if not self._is_proxy(address):
                break
        return nearest

    def enter(self, scope: Scope) -> None:
        """Put the base URL and the client's address into the scope.

        The path is prefixed with the root path unless it already has it.
        """
        scope[BASE_SCOPE] = self.of(scope)
        if self._trusted and (client := self.client_of(scope)) is not None:
            scope[CLIENT_SCOPE] = client
        if self.root_path:
            path: str = scope["path"]
            if path == self.root_path:
                scope["path"] = f"{path}/"
            elif not path.startswith(f"{self.root_path}/"):
                scope["path"] = self.root_path + path  # the proxy has taken it off; ASGI has it in both
            scope["root_path"] = self.root_path

    def _is_trusted(self, scope: Scope) -> bool:
        client = scope.get("client")
        address = _address(str(client[0])) if client else None  # None: a Unix socket, or a test's client
        return address is not None and self._is_proxy(address)

    def _is_proxy(self, address: Address) -> bool:
        return any(address.version == one.version and address in one for one in self._trusted)


def _address(text: str) -> Address | None:
    """Return the address in a header's value, without its port; None if it is none, such as `unknown`."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _listed(headers: Headers, name: str) -> list[str]:
    return [each for value in headers.getlist(name) for each in value.split(",")]


def _listed_in_standard(headers: Headers) -> list[str]:
    """Return the addresses in `Forwarded`, one for each proxy; "" for one that gives none."""
    hops = [_PAIR.findall(hop) for hop in _listed(headers, "forwarded")]
    found = [next((quoted or token for name, quoted, token in pairs if name.lower() == "for"), "") for pairs in hops]
    return found if any(found) else []


def _forwarded(headers: Headers) -> dict[str, str]:
    """Return the scheme, host and prefix that the nearest proxy was asked for."""
    forwarded = {
        key: values[-1].rpartition(",")[2].strip()
        for key in ("proto", "host", "prefix")
        if (values := headers.getlist(f"x-forwarded-{key}"))
    }
    if standard := headers.getlist("forwarded"):
        last = standard[-1].rpartition(",")[2]
        forwarded |= {name.lower(): quoted or token for name, quoted, token in _PAIR.findall(last)}
    return forwarded
