"""Allowed values of the Host and Origin headers.

A web page that a user happens to visit can make the browser send requests to 127.0.0.1, and can read the answers too,
if its own domain name resolves there (DNS rebinding). So the Host header must name the gateway, and an Origin, which
browsers add, must be an allowed one.

An IP address in Host cannot have been rebound: the browser connected to what the user or the page named. So beyond
loopback, where a token is required in any case, a gateway may be called by any IP address, whether it is the machine's
own or that of a router or container in front of it. The machine's own name may be used there too, because whoever
answers for it on the local network still has no token.
"""

import ipaddress
import logging
import socket
from collections.abc import Iterable

from gateway.core.fact_words import plain
from gateway.system.loopback import is_loopback

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

ANY = "*"
"""In place of an origin: any."""


class Allowed:
    """The allowed values of Host and Origin: those of loopback, the address bound to, and those given.

    Bound to another address than a loopback one: also any IP address, and the names of this machine.
    """

    def __init__(self, bind: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        local = (f"{scheme}://{host}" for scheme in ("http", "https") for host in LOOPBACK)
        self.any_address = not is_loopback(bind)
        """Whether an IP address is allowed as Host, whichever it is."""
        hosts = tuple(hosts)
        self.names = tuple(dict.fromkeys((*(_machine_names() if self.any_address else ()), *hosts)))
        """The names by which other machines may call, as they are written."""
        named = (*LOOPBACK, _bracketed(bind), *self.names)
        self.hosts = frozenset(_without_wildcard(host) for host in named)
        origins = tuple(origins)
        self.any_origin = ANY in origins
        """Whether pages of any origin may call, which then need a token."""
        self.origins = frozenset(_without_wildcard(origin.rstrip("/")) for origin in (*local, *origins))

    def host(self, value: str) -> bool:
        """Whether a Host header names the gateway. An entry without a port matches every port."""
        return _matches(value, self.hosts) or (self.any_address and _is_address(value))

    def origin(self, value: str) -> bool:
        """Whether a page of this origin may call. An entry without a port matches every port."""
        return self.any_origin or _matches(value, self.origins)


class RefusedHosts:
    """Logs each refused Host once, up to a bound: it may be the name by which the gateway is meant to be reached."""

    _LOGGED = 20

    def __init__(self, what: str, remedy: str) -> None:
        self._what = what
        self._remedy = remedy
        self._seen: set[str] = set()

    def refused(self, hosts: Iterable[str]) -> None:
        """Log the value of a request's Host header, or its values."""
        shown = plain(", ".join(hosts), 100) or "none"
        if shown in self._seen or len(self._seen) >= self._LOGGED:
            return
        self._seen.add(shown)
        last = " (further ones are not logged)" if len(self._seen) == self._LOGGED else ""
        logger.warning("%s: refused a request with the Host %s: %s%s", self._what, shown, self._remedy, last)


def _machine_names() -> tuple[str, ...]:
    """Return the names of this machine without asking a resolver; `.local` is multicast DNS (RFC 6762)."""
    name = socket.gethostname().lower()
    first = name.partition(".")[0]
    return tuple(dict.fromkeys((name, first, f"{first}.local"))) if first else ()


def _is_address(value: str) -> bool:
    """Whether a Host header is an IP address, with or without a port."""
    if value.startswith("["):
        host, bracket, port = value[1:].partition("]")
        if not bracket or (port and not (port[0] == ":" and _is_port(port[1:]))):
            return False
        version = 6
    else:
        host, colon, port = value.partition(":")
        if colon and not _is_port(port):
            return False
        version = 4
    try:
        return ipaddress.ip_address(host).version == version
    except ValueError:
        return False


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _without_wildcard(entry: str) -> str:
    return entry.lower().removesuffix(":*")


def _matches(value: str, entries: frozenset[str]) -> bool:
    value = value.lower()
    name, colon, port = value.rpartition(":")
    return value in entries or (bool(colon) and port.isdecimal() and name in entries)
