"""The built-in authorization server: hosts that cannot send a header get tokens that a person has approved (OAuth 2.1).

The MCP SDK does the protocol of `/token` and `/register`; `provider` says what is done here, and why.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.config.claim_header_settings import COMPANY, company_claims
from gateway.config.schema import Settings
from gateway.core.model.json_values import as_object
from gateway.errors import ConfigError, StateUnavailable
from gateway.routing.replica_port import SharedUse
from gateway.serving.access import Fault, Identified
from gateway.serving.access.tokens import ACCESS_PREFIX
from gateway.serving.authorization import approvals
from gateway.serving.authorization.approvals import Approval
from gateway.serving.authorization.authorize_request import SCOPE, Place
from gateway.serving.authorization.listeners import Listeners
from gateway.serving.authorization.people import PASSPHRASE, People, grant_of
from gateway.serving.authorization.person_endpoints import PersonEndpoints
from gateway.serving.authorization.program_endpoints import GRANT_TYPES, ProgramEndpoints
from gateway.serving.authorization.provider import Provider
from gateway.serving.authorization.sqlite_database import database_path
from gateway.serving.authorization.state import State, state_of
from gateway.system.loopback import is_loopback

logger = logging.getLogger(__name__)

_ENDPOINTS = ("/mcp", "/sse")
_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_LOOK_AGAIN_SECONDS = 5.0
_REMEMBERED = 1_000


class AuthorizationServer:
    """An OAuth authorization server for one gateway, and the verifier of the tokens that it issues.

    Raises ConfigError if hosts could not reach it (`issuer_of`).
    """

    def __init__(self, settings: Settings, state: State, clock: Callable[[], float] = time.time) -> None:
        server = settings.access.authorization_server
        assert server is not None, "only made if it is configured"
        self.issuer = issuer_of(settings)
        """Its URL, below which its endpoints are."""
        self._settings = server
        self._state = state
        self._clock = clock
        self._people = People(settings.access.people, server.oidc)
        self._upstreams, self._scopes = _enabled(settings), _scopes(settings)
        self._claims = _claims(settings)
        endpoint = f"{self.issuer}{_ENDPOINTS[0]}"
        place = Place(settings.gateway.name, self.issuer, endpoint, self.is_resource, lambda: self._scopes)
        self.listeners = Listeners()
        """Who is told of logins and approvals."""
        provider = Provider(server, state, self._may_use, self.listeners, clock)
        self.shared: SharedUse | None = None
        """Counts registrations, and failed attempts to log in, for several replicas together, if there are any."""
        self._programs = ProgramEndpoints(
            provider, state, self.is_resource, self._forget, self.listeners, lambda: self.shared
        )
        self._persons = PersonEndpoints(
            server,
            place,
            self._people,
            provider,
            state,
            self.listeners,
            lambda: self._upstreams,
            lambda: self._claims,
            clock,
            lambda: self.shared,
        )
        self._known: dict[str, tuple[float, approvals.Token]] = {}

    def reconfigure(self, settings: Settings) -> None:
        """Apply changed people and upstreams: tokens of people who were removed are refused from then on."""
        self._people.reconfigure(settings.access.people)
        self._upstreams, self._scopes = _enabled(settings), _scopes(settings)
        self._claims = _claims(settings)

    async def aclose(self) -> None:
        """Close the state."""
        await self._state.close()

    def narrow(self, written: Mapping[str, Any]) -> None:
        """Drop the people who are gone from `[access.people]` as it is written, though it cannot be applied."""
        self._people.narrow(written)

    def is_resource(self, url: str) -> bool:
        """Whether a URL is one of the gateway's MCP endpoints, or the gateway as a whole (RFC 8707)."""
        if "?" in url or "#" in url or not url.isprintable():
            return False
        base = _comparable(self.issuer)
        found = _comparable(url)
        if base is None or found is None or found[:2] != base[:2]:
            return False
        path = found[2].removeprefix(base[2])
        if not found[2].startswith(base[2]) or "/../" in f"{path}/":
            return False
        return path == "" or any(path == one or path.startswith(f"{one}/") for one in _ENDPOINTS)

    async def verify(self, token: str) -> Identified | Fault | None:
        """Return whom an access token of this server identifies; None if it is not one."""
        if not token.startswith(ACCESS_PREFIX):
            return None
        now = self._clock()
        try:
            found = await self._found(token, now)
        except StateUnavailable:
            return "unavailable"
        if found is None or not self.is_resource(found.approval.resource):
            return "wrong"
        if found.expires <= now:
            return "expired"
        approval = found.approval
        reach = self._people.reach_of(approval.principal, approval.login)
        if reach is None:
            return "wrong"
        return Identified(
            approval.principal,
            grant_of(reach),
            reach.profile,
            found.expires,
            scopes=frozenset(found.scope.split()),
            is_admin=getattr(reach, "admin", False),
            issuer=None if approval.login == PASSPHRASE else COMPANY,
            claims=as_object(json.loads(approval.claims)),
            toolset=reach.toolset,
        )

    async def _found(self, token: str, now: float) -> approvals.Token | None:
        """Return an access token. One that was found is not looked up again for a few seconds."""
        key = approvals.digest(token)
        until, known = self._known.get(key, (0.0, None))
        if known is not None and now < until <= now + _LOOK_AGAIN_SECONDS:
            return known
        self._known.pop(key, None)
        found = await self._state.find_access_token(token, now)
        if found is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = (now + _LOOK_AGAIN_SECONDS, found)
        return found

    def _forget(self) -> None:
        """Look all tokens up again: one has been revoked."""
        self._known.clear()

    def _may_use(self, approval: Approval) -> bool:
        return self._people.reach_of(approval.principal, approval.login) is not None

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the endpoints and of the metadata, which need no token."""
        persons, programs = self._persons, self._programs
        suffix = urlsplit(self.issuer).path.rstrip("/")
        metadata = [Route(place + form, self._metadata) for place in _METADATA for form in {"", suffix}]
        return [
            Route("/authorize", persons.authorize, methods=["GET"]),
            Route("/authorize", persons.log_in, methods=["POST"]),
            Route("/authorize/company", persons.company, methods=["GET"]),
            Route("/authorize/callback", persons.callback, methods=["GET"]),
            Route("/authorize/approve/{key}", persons.ask, methods=["GET"]),
            Route("/authorize/approve/{key}", persons.decide, methods=["POST"]),
            Route("/token", programs.token, methods=["POST"]),
            Route("/revoke", programs.revoke, methods=["POST"]),
            *([Route("/register", programs.register, methods=["POST"])] if self._settings.registration else []),
            *metadata,
        ]

    async def _metadata(self, _: Request) -> Response:
        """Answer with the metadata (RFC 8414)."""
        methods = ["none", "client_secret_post", "client_secret_basic"]
        metadata: dict[str, object] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(GRANT_TYPES),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "scopes_supported": [SCOPE, *sorted(self._scopes)],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": self._settings.client_documents,
        }
        if self._settings.registration:
            metadata["registration_endpoint"] = f"{self.issuer}/register"
        return JSONResponse(metadata, headers={"Cache-Control": "public, max-age=300"})


def opened_server(settings: Settings, folder: Path | None) -> AuthorizationServer:
    """Return the authorization server that the settings ask for; `folder` is where its file would be.

    Raises:
        ConfigError: hosts could not reach it, or its state cannot be used.
    """
    shared = settings.access.authorization_server
    if (shared is None or shared.state is None) and database_path(settings, folder) is None:
        logger.warning("there is no folder for the state: at the next start, every host has to be approved again")
    server = AuthorizationServer(settings, state := state_of(settings, folder))
    state.check()
    return server


def issuer_of(settings: Settings) -> str:
    """Return the issuer URL: the public URL, or on this machine the address that is listened on.

    Raises:
        ConfigError: there is none that hosts could use.
    """
    where = "access.authorization_server"
    public, http = settings.gateway.public_url, settings.http
    if public is not None:
        parts = urlsplit(public)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ConfigError(
                "passphrases and tokens would be sent without TLS",
                where=where,
                remedy="let [gateway] public_url begin with https://, and put a reverse proxy in front",
            )
        return public.rstrip("/")
    if http.port == 0 or not is_loopback(http.bind):
        raise ConfigError(
            "hosts have to know the address of the authorization server",
            where=where,
            remedy='set [gateway] public_url, as "https://tools.example.com"',
        )
    host = f"[{http.bind}]" if ":" in http.bind else http.bind
    scheme = "http" if http.tls_certificate is None else "https"
    return f"{scheme}://{host}:{http.port}{settings.gateway.root_path}"


def _enabled(settings: Settings) -> Sequence[str]:
    return [name for name, upstream in settings.upstreams.items() if upstream.enabled]


def _claims(settings: Settings) -> frozenset[str]:
    """Return the claims of the company's provider that upstreams are told."""
    upstreams = settings.upstreams.values()
    return frozenset[str]().union(*(company_claims(one.headers_from_claims, one.claims_from) for one in upstreams))


def _scopes(settings: Settings) -> frozenset[str]:
    return frozenset(scope for scopes in settings.access.scopes.values() for scope in scopes) - {SCOPE}


def _comparable(url: str) -> tuple[str, str, str] | None:
    """Return scheme, authority and path of a URL. All names of the loopback interface are one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.username is not None or parts.password is not None:
        return None
    port = port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, f"{'localhost' if is_loopback(host) else host}:{port}", parts.path.rstrip("/")
