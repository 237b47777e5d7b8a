"""Forwarded headers: those of one connection, and the proxy's own, are removed."""

from collections.abc import Iterable

PROXY_HEADER = "x-mcp-gateway-token"
"""The header with the proxy's own token: the Authorization header is for the model API."""
REPAIRS = b"x-mcp-gateway-repairs"

RawHeaders = list[tuple[bytes, bytes]]

# RFC 9110 section 7.6.1
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
_OURS = frozenset({b"host", b"content-length", b"expect", PROXY_HEADER.encode()})


def forwarded_headers(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return a client's headers for the model API, without the body's length, which the sender adds."""
    given = list(headers)
    dropped = _HOP_BY_HOP | _OURS | _named_by_connection(given)
    return [(name, value) for name, value in given if name.lower() not in dropped]


def back(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the model API's headers for the client."""
    given = list(headers)
    dropped = _HOP_BY_HOP | _named_by_connection(given)
    return [(name.lower(), value) for name, value in given if name.lower() not in dropped]


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first value of a header, or an empty string if there is none."""
    return next((value for key, value in headers if key.lower() == name), b"")


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    values = [value for name, value in headers if name.lower() == b"connection"]
    return frozenset(name.strip().lower() for value in values for name in value.split(b","))
