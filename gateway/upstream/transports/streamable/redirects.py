"""Redirects: within the origin of a request, and only if they keep its method."""

import httpx2

from gateway.upstream.transports.streamable.response import Response

_STATUSES = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})
"""The others turn a POST into a GET without its body."""


def may_follow(method: str, url: httpx2.URL, location: httpx2.URL, status: int) -> bool:
    """Whether the SDK's transport would follow a redirect (`next_request_within_origin`)."""
    if method != "GET" and status not in _KEEP_METHOD:
        return False
    if location.userinfo and location.userinfo != url.userinfo:  # it would be sent as Basic auth
        return False
    return _is_within(url, location)


def location_of(url: httpx2.URL, response: Response) -> httpx2.URL | None:
    """Return where a redirect points; None if the response is not one, or its location makes no sense."""
    found = response.header_list(b"location")
    if response.status not in _STATUSES or not found:
        return None
    try:
        location = httpx2.URL(_as_written(found[0]))
        if location.scheme and not location.host:
            location = location.copy_with(host=url.host)
        return url.join(location) if location.is_relative_url else location
    except httpx2.InvalidURL:
        return None


def _as_written(header: str) -> str:
    """Return the text of a header, which many servers send as UTF-8."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except ValueError:
        return header


def unfollowed(url: httpx2.URL, location: httpx2.URL) -> str:
    """Describe a redirect that is not followed, without anything in its location that might be secret."""
    place = location.copy_with(userinfo=b"", query=None, fragment=None)
    if url.scheme == "https" and place.scheme == "http":
        advice = (
            "it would leave TLS. The server is probably behind a proxy whose headers it does not trust: try "
            f"{place.copy_with(scheme='https')}, or correct the proxy's settings"
        )
    else:
        advice = "use that URL as the endpoint if it is the intended server"
    return f"answered with a redirect to {place} not followed; {advice}"


def _is_within(url: httpx2.URL, location: httpx2.URL) -> bool:
    """Whether a location has the same origin, or is the same host with TLS, both on their default ports."""
    if (url.scheme, url.host, url.port) == (location.scheme, location.host, location.port):
        return True
    is_upgrade = (url.scheme, location.scheme) == ("http", "https")
    return is_upgrade and url.host == location.host and url.port is None and location.port is None
