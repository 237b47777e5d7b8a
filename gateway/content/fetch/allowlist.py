"""Check URLs against the configured allowlist."""

from collections.abc import Sequence
from urllib.parse import unquote

import httpx2

from gateway.config.content_settings import FetchSettings
from gateway.core.fact_words import plain
from gateway.errors import FetchRefused

_LONGEST = 8_192
_PORTS = {"http": 80, "https": 443}


class Address:
    """A URL that may be fetched: checked against the rules, with its parts as a server will interpret them."""

    def __init__(self, url: str, settings: FetchSettings) -> None:
        """Raises FetchRefused if the URL may not be fetched; the message does not reveal its path or query."""
        if not settings.allow:
            raise FetchRefused("this gateway does not fetch URLs", remedy="see [fetch] allow")
        self.url = _parsed(url)
        self.scheme = self.url.scheme
        self.host = self.url.raw_host.decode("ascii")
        self.port = self.url.port or _PORTS[self.scheme]
        self.authority = self.url.netloc.decode("ascii")
        """Host and port, as in the Host header."""
        path = _decoded(self.url.raw_path.partition(b"?")[0].decode("ascii"))
        if not any(self._is_allowed_by(pattern, path) for pattern in settings.allow):
            raise FetchRefused(f"this URL at {self} is not one that may be fetched", remedy="see [fetch] allow")
        self.may_be_private = any(self._is_named_by(name) for name in settings.allow_private)

    def __str__(self) -> str:
        """The form for messages: without path and query, which may contain keys."""
        return f"{self.scheme}://{self.authority}"

    def _is_allowed_by(self, pattern: str, path: str) -> bool:
        scheme, _, rest = pattern.partition("://")
        authority, slash, allowed = rest.partition("/")
        host, port = _host_and_port(authority)
        if (self.scheme, self.port) != (scheme, port or _PORTS[scheme]) or not _is_host(host, self.host):
            return False
        return _matches(path, (f"/{allowed}" if slash else "/*").split("*"))

    def _is_named_by(self, name: str) -> bool:
        host, port = _host_and_port(name)
        return _is_host(host, self.host) and port in (None, self.port)


def _parsed(url: str) -> httpx2.URL:
    if len(url) > _LONGEST:
        raise FetchRefused(f"a URL of {len(url):,} characters is not fetched")
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, ValueError):
        raise FetchRefused(f"{plain(url, 40)!r} is not a URL") from None
    if parsed.scheme not in _PORTS or not parsed.host:
        raise FetchRefused(f"only http:// and https:// URLs are fetched, not {plain(parsed.scheme, 20) or 'others'}")
    if parsed.userinfo:
        raise FetchRefused("a URL with a user or a password in it is not fetched")
    return parsed


def _matches(path: str, parts: Sequence[str]) -> bool:
    """Whether the path consists of the parts with anything between them. A regex could backtrack on hostile paths."""
    first, *rest = parts
    if not rest:
        return path == first
    if not path.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(path) - at >= len(rest[-1]) and path.endswith(rest[-1])


def _decoded(path: str) -> str:
    """Return the path as a server may interpret it. Raises FetchRefused if that could lead elsewhere.

    Some servers decode twice, and some treat `..;x` as `..`.
    """
    decoded = unquote(path)
    again = unquote(decoded)
    steps = {step.partition(";")[0] for step in again.split("/")}
    if "\\" in again or "\0" in again or {".", ".."} & steps:
        raise FetchRefused("a URL whose path leads upwards is not fetched")
    return decoded


def _host_and_port(authority: str) -> tuple[str, int | None]:
    host, colon, port = authority.rpartition(":")
    is_port = bool(colon) and port.isdecimal() and (":" not in host or host.endswith("]"))
    return (host, int(port)) if is_port else (authority, None)


def _is_host(allowed: str, host: str) -> bool:
    if allowed.startswith("*."):
        return host.endswith("." + _ascii(allowed[2:]))
    return host == _ascii(allowed)


def _ascii(host: str) -> str:
    """Return a host as it is sent: in lower case, without brackets, with non-ASCII letters in punycode."""
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    try:
        return httpx2.URL(f"http://{bracketed}").raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError):
        return host
