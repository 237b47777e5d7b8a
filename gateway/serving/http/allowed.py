"""Allowed values of the Host and Origin headers.

A web page that a user happens to visit can make the browser send requests to 127.0.0.1, and can read the answers too,
if its own domain name resolves there (DNS rebinding). So the Host header must name the gateway, and an Origin, which
browsers add, must be an allowed one.
"""

from collections.abc import Iterable

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

ANY = "*"
"""In place of an origin: any."""


class Allowed:
    """The allowed values of Host and Origin: those of loopback, the address bound to, and those given."""

    def __init__(self, bind: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        local = (f"{scheme}://{host}" for scheme in ("http", "https") for host in LOOPBACK)
        self.hosts = frozenset(_without_wildcard(host) for host in (*LOOPBACK, _bracketed(bind), *hosts))
        origins = tuple(origins)
        self.any_origin = ANY in origins
        """Whether pages of any origin may call, which then need a token."""
        self.origins = frozenset(_without_wildcard(origin.rstrip("/")) for origin in (*local, *origins))

    def host(self, value: str) -> bool:
        """Whether a Host header names the gateway. An entry without a port matches every port."""
        return _matches(value, self.hosts)

    def origin(self, value: str) -> bool:
        """Whether a page of this origin may call. An entry without a port matches every port."""
        return self.any_origin or _matches(value, self.origins)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _without_wildcard(entry: str) -> str:
    return entry.lower().removesuffix(":*")


def _matches(value: str, entries: frozenset[str]) -> bool:
    value = value.lower()
    name, colon, port = value.rpartition(":")
    return value in entries or (bool(colon) and port.isdecimal() and name in entries)
