"""Access control for the gateway over HTTP: the same checks before every route.

Host and Origin are checked (`gateway.serving.http.allowed` says why). Beyond loopback a bearer token is always
required, except for content under a link, which is signed.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.config.schema import HttpSettings
from gateway.content.links.base_url import PRINCIPAL_SCOPE, Bases
from gateway.content.links.links import is_link
from gateway.errors import ConfigError
from gateway.serving.access import Access, Fault, Identified
from gateway.serving.http import KNOWN, STANDING, Allowed, Limits, WrongTokens
from gateway.serving.mcp.request_caller import ENDED_SCOPE, IDENTIFIED_SCOPE
from gateway.system.loopback import is_loopback

HEALTH_PATH = "/healthz"
READINESS_PATH = "/readyz"

_WITHOUT_TOKEN = frozenset({HEALTH_PATH, READINESS_PATH})
"""Routes for monitoring.

Host and Origin are checked here too. Without a token the scope has no principal, and the answer omits details.
"""

_STREAMS = 4
"""The limit of unread bytes for all connections together, as a multiple of that for one stream."""

_EXPOSED = "Mcp-Session-Id, WWW-Authenticate"
_METHODS = "GET, POST, DELETE, OPTIONS"


def check_bind(settings: HttpSettings, *, needs_token: bool) -> None:
    """Raise `ConfigError` if other machines could reach the gateway without a token."""
    if not needs_token and not is_loopback(settings.bind):
        raise ConfigError(
            f"{settings.bind} can be reached from other machines, so a token is needed",
            where="http.bind",
            remedy="`mcp-gateway token add NAME` makes one; or set [http] token, or bind to 127.0.0.1",
        )


def refused_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response to a refused request: `{"error": message}`."""
    body = json.dumps({"error": message}, ensure_ascii=False)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def limits_of(settings: HttpSettings) -> Limits:
    """Return the limits for the port's peers."""
    return Limits(
        request=settings.request_timeout,
        unread_bytes=_STREAMS * settings.max_unread_bytes,
        connections=settings.max_connections,
        connections_per_address=settings.max_connections_per_address,
        proxies=settings.trusted_proxies,
    )


def allowed_by(settings: HttpSettings, public_url: str | None = None) -> Allowed:
    """Return the values of Host and Origin that the settings allow, including the host of `public_url`."""
    own = [urlsplit(public_url).netloc] if public_url else []
    return Allowed(settings.bind, (*settings.allowed_hosts, *own), settings.allowed_origins)


def for_sdk(allowed: Allowed) -> TransportSecuritySettings:
    """Return the same lists in the form of the SDK, whose transports check them once more."""
    return TransportSecuritySettings(
        allowed_hosts=_with_ports(allowed.hosts), allowed_origins=_with_ports(allowed.origins)
    )


class Guard:
    """ASGI middleware that checks Host, Origin and token, and adds the CORS headers that an allowed page needs."""

    def __init__(self, app: ASGIApp, access: Access, allowed: Allowed, bases: Bases) -> None:
        self._app = app
        self._allowed = allowed
        self._bases = bases
        self._access = access
        self._wrong_tokens = WrongTokens("the gateway")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None  # no WebSockets here
        # One HTTP parser keeps the whitespace around a value, which is not part of it (RFC 9110, 5.5).
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if (refused := self._foreign(headers)) is not None:
            return await refused(scope, receive, send)
        answer = send if origin is None else _readable_for(origin, send)
        if origin is not None and scope["method"] == "OPTIONS":
            return await _preflight(headers)(scope, receive, answer)
        self._bases.enter(scope)
        path = scope["path"].removeprefix(self._bases.root_path)
        found = self._access.identify(headers.get("authorization", ""))
        if isinstance(found, Identified):
            scope[IDENTIFIED_SCOPE] = found
            scope[ENDED_SCOPE] = partial(self._access.ended, found)
            scope[PRINCIPAL_SCOPE] = found.principal
            scope["user"] = _user(found.principal)  # the SDK refuses sessions of other users
            scope[STANDING] = KNOWN
        elif path not in _WITHOUT_TOKEN and not is_link(scope["method"], path):
            if found == "wrong":
                await self._wrong_tokens.refused(scope)
            return await _unauthorised(found)(scope, receive, answer)
        return await self._app(scope, receive, answer)

    def _foreign(self, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.host(hosts[0]):
            return refused_response(421, "this Host is not one of the gateway's; [http] allowed_hosts names others")
        if any(not self._allowed.origin(origin) for origin in headers.getlist("origin")):
            return refused_response(403, "this Origin may not call the gateway; [http] allowed_origins names others")
        return None


@lru_cache(maxsize=1_000)
def _user(principal: str) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))


def _unauthorised(fault: Fault) -> Response:
    if fault == "missing":
        return refused_response(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})
    words = "the bearer token has expired" if fault == "expired" else "the bearer token is wrong"
    return refused_response(401, words, {"WWW-Authenticate": 'Bearer error="invalid_token"'})


def _readable_for(origin: str, send: Send) -> Send:
    async def add_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = _EXPOSED
            headers.add_vary_header("Origin")
        await send(message)

    return add_headers


def _preflight(headers: Headers) -> Response:
    allowed = {"Access-Control-Allow-Methods": _METHODS, "Access-Control-Max-Age": "600"}
    if wanted := headers.get("access-control-request-headers"):
        allowed["Access-Control-Allow-Headers"] = wanted
    return Response(status_code=204, headers=allowed)


def _with_ports(entries: Iterable[str]) -> list[str]:
    return sorted(form for entry in entries for form in (entry, f"{entry}:*"))
