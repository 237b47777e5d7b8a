"""The base URL under which a request reached the gateway: links in the response begin with it.

`Forwarded` (RFC 7239) and `X-Forwarded-Proto`, `-Host` and `-Prefix` hold the address that a reverse proxy was asked
for. Anybody can send them, so they count only if the connection comes from a trusted proxy. Of several values the
last one counts, because the nearest proxy wrote that one, whatever it received itself.
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

PRINCIPAL_SCOPE = "gateway.principal"
"""The key in the scope for the principal; missing if nobody was authenticated."""

_HOST = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_PAIR = re.compile(r'\s*([A-Za-z]+)\s*=\s*(?:"([^"\\]*)"|([^\s;,"]*))\s*(?:;|$)')

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

    def enter(self, scope: Scope) -> None:
        """Put the base URL into the scope, and prefix its path with the root path unless it already has it."""
        scope[BASE_SCOPE] = self.of(scope)
        if self.root_path:
            path: str = scope["path"]
            if path == self.root_path:
                scope["path"] = f"{path}/"
            elif not path.startswith(f"{self.root_path}/"):
                scope["path"] = self.root_path + path  # the proxy has taken it off; ASGI has it in both
            scope["root_path"] = self.root_path

    def _is_trusted(self, scope: Scope) -> bool:
        client = scope.get("client")
        try:
            ip = ipaddress.ip_address(str(client[0]).partition("%")[0]) if client else None
        except ValueError:  # a Unix socket, or a test's client
            return False
        return ip is not None and any(ip.version == one.version and ip in one for one in self._trusted)


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
