"""The bytes of an HTTP request: where it goes, and its headers."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import httpx2

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS = frozenset({"content-length", "transfer-encoding"})
"""Headers that follow from the body."""


class Origin(NamedTuple):
    """Where a connection goes."""

    is_tls: bool
    host: str
    port: int


@dataclass(frozen=True)
class Address:
    """A URL as a request needs it: the connection's origin, the request's target, and headers that the URL implies."""

    origin: Origin
    target: str
    headers: Mapping[str, str]


def address_of(url: httpx2.URL) -> Address:
    """Split a URL. Its host name and path are encoded as httpx2 does, and its user and password become Basic auth."""
    is_tls = url.scheme == "https"
    origin = Origin(is_tls, url.raw_host.decode("ascii"), url.port or (443 if is_tls else 80))
    headers = {"host": url.netloc.decode("ascii")}
    if url.username or url.password:
        credentials = base64.b64encode(f"{url.username}:{url.password}".encode())
        headers["authorization"] = f"Basic {credentials.decode('ascii')}"
    return Address(origin, url.raw_path.decode("ascii"), headers)


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case, without those that follow from the body.

    Raises httpx2.LocalProtocolError, which does not quote them, if they cannot be written.
    """
    for name, value in headers.items():
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise httpx2.LocalProtocolError("a header cannot be written")
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    return {name: value for name, value in lower.items() if name not in _OURS}


def head_of(method: str, address: Address, headers: Mapping[str, str], length: int | None) -> bytes:
    """Write the request line and the headers; `headers` were checked. `length` is that of the body, if there is one."""
    lines = [f"{method} {address.target} HTTP/1.1"]
    # A configured Host stays; Basic auth from the URL comes before a configured Authorization, as in httpx2.
    host = headers.get("host", address.headers["host"])
    lines += [f"{name}: {value}" for name, value in {**headers, **address.headers, "host": host}.items()]
    if length is not None:
        lines.append(f"content-length: {length}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")
