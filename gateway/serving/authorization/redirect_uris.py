"""Redirect URIs: where a person's browser may be sent with a code, and how that is put in words. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from gateway.core.fact_words import plain
from gateway.system.loopback import is_loopback

LONGEST = 2_000

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LOOPBACK_PORT = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost)):\d{1,5}(?=[/?]|$)", re.IGNORECASE)
_NOT_OF_PROGRAMS = frozenset(
    {
        *("about", "blob", "chrome", "data", "file", "filesystem", "ftp", "javascript", "mailto", "tel", "vbscript"),
        *("view-source", "ws", "wss"),
    }
)
"""Schemes that a browser handles by itself: no program has registered them."""


@dataclass(frozen=True)
class Destination:
    """Where a redirect URI leads, for people and for a page's security policy."""

    words: str
    """A host, or what else is to be said of it."""
    is_local: bool
    """Whether it is a program on the same device, which any program there could claim to be."""
    policy: str
    """The sources in `form-action`: browsers apply it to redirects after a form, too, and to those that follow."""


def fault_of(uri: str) -> str | None:
    """Return what is wrong with a redirect URI that a host registers; None for nothing."""
    if len(uri) > LONGEST:
        return f"has more than {LONGEST:,} characters"
    if not _PRINTABLE.fullmatch(uri) or "\\" in uri:
        return "has characters that a URI cannot have"
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URI"
    if "#" in uri:
        return "has a fragment"
    if parts.username is not None or parts.password is not None:
        return "has a user or a password"
    if parts.scheme == "https":
        return None if host else "has no host"
    if parts.scheme == "http":
        return None if host and is_loopback(host) else "is neither https:// nor at the loopback interface"
    if not _SCHEME.fullmatch(parts.scheme) or parts.scheme in _NOT_OF_PROGRAMS:
        return "has a scheme that no program can receive"
    return None


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether the URI is one of those registered: compared exactly, but for the port of a loopback address.

    A native program listens on a port that it gets at the time (RFC 8252, 7.3).
    """
    without = _without_port(uri)
    return any(uri == one or (without is not None and without == _without_port(one)) for one in registered)


def _without_port(uri: str) -> str | None:
    """Return a loopback URI without its port; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "::1", "localhost") or "@" in parts.netloc:
        return None
    return _LOOPBACK_PORT.sub(r"\1", uri, count=1)


def destination(uri: str) -> Destination:
    """Return where a registered redirect URI leads."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return Destination(f"a program on this device ({plain(parts.scheme, 40)}:)", True, f"{parts.scheme}:")
    host = parts.hostname or ""
    if is_loopback(host):
        # Policies have no syntax for the IPv6 loopback address.
        policy = "http:" if ":" in host else "http://127.0.0.1:* http://localhost:*"
        return Destination("a program on this device", True, policy)
    return Destination(plain(parts.netloc, 200), False, f"https://{parts.netloc}")


def with_parameters(uri: str, parameters: Iterable[tuple[str, str]]) -> str:
    """Return the redirect URI with these parameters after those of its own query. Nothing else of it changes."""
    separator = "?" if "?" not in uri else "" if uri.endswith(("?", "&")) else "&"
    return f"{uri}{separator}{urlencode(list(parameters))}"
