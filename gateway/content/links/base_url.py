"""Under which address a request reached us: what links in the answer begin with.

`Forwarded` (RFC 7239) and `X-Forwarded-Proto`, `-Host` and `-Prefix` say what a reverse proxy was asked for. Anybody
can send them, so they count only where the connection comes from a proxy that is trusted. Of several values the last
one counts: it is the one that our own proxy wrote, whatever it was sent itself.
"""

import ipaddress
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.types import Scope

BASE_SCOPE = "gateway.base"
"""Where an HTTP request's ASGI scope keeps the address that it reached us under."""

PRINCIPAL_SCOPE = "gateway.principal"
"""Where it keeps who is calling; nothing, where that was not found out."""

_HOST = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_PAIR = re.compile(r'\s*([A-Za-z]+)\s*=\s*(?:"([^"\\]*)"|([^\s;,"]*))\s*(?:;|$)')

_current: ContextVar[str | None] = ContextVar("gateway.base", default=None)


def current_base() -> str | None:
    """The address under which the request reached us that the running task answers; None where there is none."""
    return _current.get()


@contextmanager
def answering_under(base: str | None) -> Generator[None]:
    """While this is open, the running task (and those that it starts) answers a request that came to this address."""
    token = _current.set(base)
    try:
        yield
    finally:
        _current.reset(token)


class Bases:
    """Finds the address of each request. `root_path` is the path below which a reverse proxy serves us."""

    def __init__(self, root_path: str = "", trusted_proxies: Iterable[str] = ()) -> None:
        self.root_path = root_path
        self._trusted = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in trusted_proxies)

    def of(self, scope: Scope) -> str:
        """The address, without a slash at its end, as `https://gateway.example.com/mcp-gateway`."""
        headers = Headers(scope=scope)
        told = _forwarded(headers) if self._is_trusted(scope) else {}
        scheme = told.get("proto", "").lower()
        host, prefix = told.get("host", ""), told.get("prefix", "").rstrip("/")
        return "".join(
            (
                scheme if scheme in ("http", "https") else scope.get("scheme", "http"),
                "://",
                host if _HOST.fullmatch(host) else headers.get("host", ""),
                prefix if _PREFIX.fullmatch(prefix) else self.root_path,
            )
        )

    def enter(self, scope: Scope) -> None:
        """Put the address into the scope, and have its path begin with the root path, whether or not it came so."""
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
    """What the nearest proxy says that it was asked for."""
    told = {
        key: values[-1].rpartition(",")[2].strip()
        for key in ("proto", "host", "prefix")
        if (values := headers.getlist(f"x-forwarded-{key}"))
    }
    if standard := headers.getlist("forwarded"):
        last = standard[-1].rpartition(",")[2]
        told |= {name.lower(): quoted or token for name, quoted, token in _PAIR.findall(last)}
    return told
