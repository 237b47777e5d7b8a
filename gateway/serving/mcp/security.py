"""Access control for the gateway over HTTP: the same checks before every route.

Host and Origin are checked (`gateway.serving.http.allowed` says why). Beyond loopback a bearer token is always
required, except for content under a link, which is signed.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from urllib.parse import quote, urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.config.http_settings import HttpSettings
from gateway.content.links.base_url import BASE_SCOPE, PRINCIPAL_SCOPE, Bases
from gateway.content.links.links import is_link
from gateway.core.fact_words import plain
from gateway.errors import ConfigError, ScopeMissing
from gateway.serving.access import Access, Fault, Identified
from gateway.serving.access.resource_metadata import challenge
from gateway.serving.http import (
    ANY,
    KNOWN,
    STANDING,
    Allowed,
    Limits,
    RefusedHosts,
    RepeatedLines,
    TlsFiles,
    WrongTokens,
)
from gateway.serving.http.tokens import address_of
from gateway.serving.mcp.cluster_port import HOP_SCOPE
from gateway.serving.mcp.request_caller import ENDED_SCOPE, IDENTIFIED_SCOPE
from gateway.system.loopback import is_loopback

HEALTH_PATH = "/healthz"
READINESS_PATH = "/readyz"

logger = logging.getLogger(__name__)

_WITHOUT_TOKEN = frozenset({HEALTH_PATH, READINESS_PATH})
"""Routes for monitoring.

Host and Origin are checked here too. Without a token the scope has no principal, and the answer omits details.
"""

_GUESSED = 16
"""Characters of a token; one with fewer is warned about where other machines can reach the gateway."""

_STREAMS = 4
"""The limit of unread bytes for all connections together, as a multiple of that for one stream."""

BEFORE_URL_TOKEN = "/t/"  # noqa: S105 - a path, no token
"""Before a token that is a part of the path, for hosts that can do nothing but a URL: `/t/<token>/mcp`."""

_EXPOSED = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After"
_FOR_HOSTS = ("/mcp", "/sse")
_QUERY_TOKEN = re.compile(rb"(?:^|[&;])access_token=")
"""RFC 6750, 2.3, which OAuth 2.1 forbids."""

_FAULTS: Mapping[Fault, tuple[int, str]] = {
    "missing": (401, "a bearer token is needed"),
    "wrong": (401, "the bearer token is wrong"),
    "expired": (401, "the bearer token has expired"),
    "insufficient": (403, "the bearer token lacks a scope that is needed here"),
    "forbidden": (403, "the account that the bearer token belongs to has no access to this gateway"),
    "unavailable": (503, "the bearer token cannot be checked at present"),
}

OnTooMany = Callable[[str, str | None], object]
"""Called with the principal, and the name of its token if it has one."""

_METHODS = "GET, POST, DELETE, OPTIONS"


def check_bind(settings: HttpSettings, *, needs_token: bool, public_url: str | None = None) -> None:
    """Check whether the gateway may and can be served with these settings, and at this public URL.

    Raises:
        ConfigError: other machines, also through a proxy, or pages of any origin could reach it without a token, or its
            certificate cannot be used.
    """
    behind = _proxied_by(settings, public_url)
    if not needs_token and behind is not None:
        raise ConfigError(
            "what a proxy passes on comes from other machines, so a token is needed",
            where=behind,
            remedy="`mcp-gateway token add NAME` makes one; or set [http] token",
        )
    if not needs_token and ANY in settings.allowed_origins:
        raise ConfigError(
            "every page that is open in a browser could reach the gateway, so a token is needed",
            where="http.allowed_origins",
            remedy="`mcp-gateway token add NAME` makes one; or name the origins",
        )
    if not needs_token and not is_loopback(settings.bind):
        raise ConfigError(
            f"{settings.bind} can be reached from other machines, so a token is needed",
            where="http.bind",
            remedy="`mcp-gateway token add NAME` makes one; or set $MCP_GATEWAY_TOKEN, or bind to 127.0.0.1",
        )
    if settings.token is not None and len(settings.token) < _GUESSED and not is_loopback(settings.bind):
        said = "http.token has only %d characters, so it can be guessed: `openssl rand -hex 24` makes a better one"
        logger.warning(said, len(settings.token))
    tls_files(settings)


def _proxied_by(settings: HttpSettings, public_url: str | None) -> str | None:
    """Return the key that says that a proxy passes on requests of others; None if none does."""
    if settings.trusted_proxies:
        return "http.trusted_proxies"
    host = urlsplit(public_url).hostname if public_url else None
    return None if host is None or is_loopback(host) else "gateway.public_url"


def tls_files(settings: HttpSettings) -> TlsFiles | None:
    """Return the certificate; None if there is none. Raises `ConfigError` if it cannot be used."""
    certificate, key = settings.tls_certificate, settings.tls_key
    return None if certificate is None or key is None else TlsFiles(certificate, key, "http.tls_certificate")


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
    """Return the values of Host and Origin that the settings allow, including the host and origin of `public_url`."""
    if not public_url:
        return Allowed(settings.bind, settings.allowed_hosts, settings.allowed_origins)
    own = urlsplit(public_url)
    origins = (*settings.allowed_origins, f"{own.scheme}://{own.netloc}")  # the forms of the approval page
    return Allowed(settings.bind, (*settings.allowed_hosts, own.netloc), origins)


def for_sdk(allowed: Allowed) -> TransportSecuritySettings:
    """Return the same lists in the form of the SDK, whose transports check them once more."""
    if allowed.any_origin or allowed.any_address:  # it has no word for these; `Guard` has checked both headers
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return TransportSecuritySettings(
        allowed_hosts=_with_ports(allowed.hosts), allowed_origins=_with_ports(allowed.origins)
    )


class Guard:
    """ASGI middleware that checks Host, Origin and token, and adds the CORS headers that an allowed page needs.

    `public` are routes that need no token, besides those for monitoring and content under a link. `public_url` is the
    address that hosts know the gateway by, if it is not that of their request. `on_too_many` is called with whoever
    sends more requests than its limits allow.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        allowed: Allowed,
        bases: Bases,
        public: Sequence[BaseRoute] = (),
        public_url: str | None = None,
        on_too_many: OnTooMany | None = None,
    ) -> None:
        self._app = app
        self._allowed = allowed
        self._bases = bases
        self._access = access
        self._public = public
        self._public_url = public_url
        self._on_too_many = on_too_many
        self._wrong_tokens = WrongTokens("the gateway", shared=lambda: access.rates.shared)
        self._refused_requests = RepeatedLines(logger)
        self._refused_hosts = RefusedHosts("the gateway", "list it in [http] allowed_hosts if it is the gateway's")

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
        answer = send if origin is None else _readable_for(ANY if self._allowed.any_origin else origin, send)
        if origin is not None and scope["method"] == "OPTIONS":
            return await _preflight(headers)(scope, receive, answer)
        self._bases.enter(scope)
        path = scope["path"].removeprefix(self._bases.root_path)
        if path.startswith(BEFORE_URL_TOKEN):
            return await self._with_url_token(path, scope, receive, answer)
        return await self._with_header(path, headers.get("authorization", ""), scope, receive, answer)

    async def _with_header(self, path: str, authorization: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request whose token is in its Authorization header, if it has one."""
        is_public = self._is_public(scope, path)
        if self._access.needs_token and not is_public and _QUERY_TOKEN.search(scope["query_string"]):
            return await _in_query()(scope, receive, send)
        found = await self._access.identify(authorization)
        if isinstance(found, Identified):
            if path not in _WITHOUT_TOKEN and (seconds := await self._too_soon(found, scope)):
                return await _too_many(seconds)(scope, receive, send)
            self._enter(scope, found, authorization)
        elif not is_public:
            await self._refused(found, path, scope)
            return await self._unauthorised(found, path, scope)(scope, receive, send)
        return await self._app(scope, receive, send)

    async def _with_url_token(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request whose token is in its path; from here on, it is not."""
        token, _, rest = path.removeprefix(BEFORE_URL_TOKEN).partition("/")
        found = self._access.identify_by_url(token)
        is_endpoint = rest == "mcp" or rest.startswith("mcp/")
        if not isinstance(found, Identified) or not is_endpoint:
            if not isinstance(found, Identified):
                await self._refused(found, path, scope)
            return await refused_response(404, "not found; the address may have been withdrawn")(scope, receive, send)
        if seconds := await self._too_soon(found, scope):
            return await _too_many(seconds)(scope, receive, send)
        scope["path"] = f"{self._bases.root_path}/{rest}"
        scope["raw_path"] = quote(scope["path"]).encode("ascii")
        self._enter(scope, found, f"Bearer {token}")
        return await self._app(scope, receive, send)

    async def _refused(self, fault: Fault, path: str, scope: Scope) -> None:
        """Tell who listens of a refused token, and slow down whoever tries tokens."""
        if fault != "missing":
            self._access.on_refusal(address_of(scope), fault)
        elif path.startswith(_FOR_HOSTS) and not self._access.authorization_servers:
            # Where there is one, hosts ask without a token first, to be told where to get it.
            self._refused_requests.warn("no token", f"the gateway: no token in a request from {address_of(scope)}")
        if fault == "wrong":
            await self._wrong_tokens.refused(scope)

    async def _too_soon(self, identified: Identified, scope: Scope) -> int:
        """Return the seconds after which whoever asks may ask again, and tell who listens; 0 for now."""
        if HOP_SCOPE in scope:  # the replica that passed it on has counted it
            return 0
        seconds = await self._access.rates.wait(identified.principal, identified.grant, identified.token)
        if seconds:
            who = plain(identified.principal, 100)
            self._refused_requests.warn(who, f"the gateway: requests of {who} are refused, which are too many")
            if self._on_too_many is not None:
                self._on_too_many(identified.principal, identified.token)
        return seconds

    def _enter(self, scope: Scope, found: Identified, authorization: str) -> None:
        """Put whoever sent the request into its scope."""
        scope[IDENTIFIED_SCOPE] = found
        scope[ENDED_SCOPE] = partial(self._access.ended, found, authorization)
        scope[PRINCIPAL_SCOPE] = found.principal
        scope["user"] = _user(found.principal)  # the SDK refuses sessions of other users
        scope[STANDING] = KNOWN

    def _is_public(self, scope: Scope, path: str) -> bool:
        if path in _WITHOUT_TOKEN or is_link(scope["method"], path):
            return True
        return any(route.matches(scope)[0] is not Match.NONE for route in self._public)

    def _foreign(self, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.host(hosts[0]):
            self._refused_hosts.refused(hosts)
            return refused_response(421, "this Host is not one of the gateway's; [http] allowed_hosts names others")
        if any(not self._allowed.origin(origin) for origin in headers.getlist("origin")):
            return refused_response(403, "this Origin may not call the gateway; [http] allowed_origins names others")
        return None

    def _unauthorised(self, fault: Fault, path: str, scope: Scope) -> Response:
        status, words = _FAULTS[fault]
        if status == 503:
            return refused_response(status, words, {"Retry-After": "10"})
        asked = challenge(self._access, self._public_url or scope[BASE_SCOPE], path, fault)
        return refused_response(status, words, {"WWW-Authenticate": asked})


@lru_cache(maxsize=1_000)
def _user(principal: str) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))


def lacking_scopes(access: Access, public_url: str | None, scope: Scope, missing: ScopeMissing) -> Response:
    """Return the response to a call that needs scopes which its token lacks: those to ask for, with those it has."""
    found = scope[IDENTIFIED_SCOPE]
    kept = sorted(found.scopes.intersection(access.all_scopes)) if isinstance(found, Identified) else []
    base, path = public_url or scope[BASE_SCOPE], scope["path"].removeprefix(scope.get("root_path", ""))
    asked = challenge(access, base, path, "insufficient", (*kept, *missing.scopes))
    return refused_response(403, missing.message, {"WWW-Authenticate": asked})


def _in_query() -> Response:
    words = "a token in the query of an address is refused, because addresses are kept in logs: send it in a header"
    return refused_response(400, words, {"WWW-Authenticate": 'Bearer error="invalid_request"'})


def _too_many(seconds: int) -> Response:
    words = f"too many requests: try again in {seconds} s"
    return refused_response(429, words, {"Retry-After": str(seconds)})


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
