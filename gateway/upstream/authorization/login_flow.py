"""The steps of a login with the authorization server of one upstream, without any state between them.

Heavy (the MCP SDK, PyJWT), so it is imported when the first upstream wants a token.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio.to_thread
import httpx2
from mcp.client.auth import PKCEParameters
from mcp_types import LATEST_PROTOCOL_VERSION

from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain
from gateway.system.addresses import Resolve, system_resolver
from gateway.upstream.authorization.challenge import Challenge
from gateway.upstream.authorization.client_identification import configured_client, identify
from gateway.upstream.authorization.discovery import AuthorizationServer, ServerMetadata, discover
from gateway.upstream.authorization.pending_logins import LoginAttempt
from gateway.upstream.authorization.ports import ClientIdentification, Tokens, bare_url
from gateway.upstream.authorization.proof_key import ALGORITHM, ProofKey
from gateway.upstream.authorization.refusals import Refused
from gateway.upstream.authorization.server_client import ServerClient
from gateway.upstream.authorization.token_requests import IssuedTokens, TokenEndpoint

_OFFLINE = "offline_access"
_LARGEST_ASSERTION = 64 * 1024


class LoginFlow:
    """The steps for the upstream at `url`. Each raises Refused if the server cannot be used, or refuses."""

    def __init__(self, settings: UpstreamSettings, resolve: Resolve = system_resolver) -> None:
        assert settings.endpoint is not None
        self._url = bare_url(settings.endpoint)
        self._headers = settings.headers
        self._settings = settings.auth or UpstreamAuthSettings()
        exchange = self._settings.exchange
        configured = self._url, self._settings.issuer, exchange and exchange.token_endpoint
        self._http = ServerClient([url for url in configured if url], resolve)

    async def discover(self, challenge: Challenge) -> AuthorizationServer:
        """Find the authorization server."""
        return await discover(self._http, self._url, challenge.resource_metadata, self._settings.issuer)

    async def probe(self) -> Sequence[str]:
        """Return the WWW-Authenticate headers with which the upstream answers a request without a token."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": f"probe-{token_hex(4)}", "method": "tools/list", "params": {}}
        headers = {
            **{name.lower(): value for name, value in self._headers.items()},
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": LATEST_PROTOCOL_VERSION,
        }
        try:
            answer = await self._http.post(self._url, headers, json.dumps(body).encode())
        except Refused:
            return ()  # it may still have metadata
        return answer.challenges

    def scopes(self, server: AuthorizationServer, challenge: Challenge, more: Sequence[str]) -> tuple[str, ...]:
        """Select scopes: those configured, else those of the challenge, and `more`; else those the upstream lists."""
        settings = self._settings
        listed = None if more else server.scopes
        selected = next((each for each in (settings.scopes, challenge.scopes, listed) if each is not None), ())
        asked = tuple(dict.fromkeys(scope for scope in (*more, *selected) if scope != _OFFLINE))
        offers_refresh = _OFFLINE in (server.metadata.scopes_supported or ())
        is_for_people = settings.grant == "authorization_code"
        return (*asked, _OFFLINE) if asked and offers_refresh and is_for_people else asked

    def begin(
        self,
        upstream: str,
        principal: str,
        server: AuthorizationServer,
        client: ClientIdentification,
        redirect_uri: str,
        scopes: Sequence[str],
        *,
        is_step_up: bool,
        key: ProofKey | None,
    ) -> LoginAttempt:
        """Return an attempt with everything that was decided."""
        pkce = PKCEParameters.generate()
        return LoginAttempt(
            upstream=upstream,
            principal=principal,
            url=self._url,
            server=server,
            client=client,
            redirect_uri=redirect_uri,
            scopes=scopes,
            code_challenge=pkce.code_challenge,
            verifier=pkce.code_verifier,
            is_step_up=is_step_up,
            key=key,
        )

    def proof_key(self, server: AuthorizationServer, challenge: Challenge) -> ProofKey | None:
        """Return a new key to bind tokens to (DPoP), None for bearer tokens.

        That the authorization server can bind tokens does not say that the upstream takes such: unless the
        configuration decides, both have to. Some servers bind whatever they are asked to, for any upstream.
        """
        supported, taken = server.metadata.dpop_signing_alg_values_supported, server.proof_algorithms
        misses = next((each for each in (supported, taken) if each is not None and ALGORITHM not in each), None)
        if self._is_bound(server):
            if misses is not None:
                raise Refused(f"takes proofs (DPoP) of other algorithms than {ALGORITHM}, which is all that there is")
            return ProofKey.generate()
        is_common = supported is not None and (challenge.takes_proofs or taken is not None) and misses is None
        return ProofKey.generate() if is_common and self._settings.dpop is None else None

    def _is_bound(self, server: AuthorizationServer) -> bool:
        """Whether no tokens will do but those that are bound to a key."""
        return server.needs_proofs if self._settings.dpop is None else self._settings.dpop

    def check(self, server: AuthorizationServer) -> None:
        """Raise Refused if nobody can log in to the server, or not safely."""
        methods = server.metadata.code_challenge_methods_supported
        if server.metadata.authorization_endpoint is None:
            raise Refused("its authorization server has no page on which somebody could log in")
        if "S256" not in (methods or ()) and (methods is not None or server.resource is not None):
            raise Refused("its authorization server does not protect codes (PKCE with S256), so it is not used")

    async def identify(
        self,
        server: AuthorizationServer,
        redirect_uri: str,
        scopes: Sequence[str],
        public_url: str | None,
        known: Sequence[ClientIdentification],
    ) -> ClientIdentification:
        """Identify the gateway to the server, which may register it."""
        client = await identify(self._http, server, self._settings, redirect_uri, scopes, public_url, known)
        self._check_page(server.metadata, client)
        return client

    def _check_page(self, metadata: ServerMetadata, client: ClientIdentification) -> None:
        """Raise Refused if the login might be another server's, which knows the client as well (RFC 9700, 4.4).

        There, somebody may have agreed to this client before, so that a code comes back without a question. Honest
        servers too have their page elsewhere: they tell who has answered (RFC 9207), register the client just for
        themselves, or are named in the configuration.
        """
        page = metadata.authorization_endpoint or ""
        is_shared = client.redirect_uri is None
        is_safe = metadata.authorization_response_iss_parameter_supported or self._settings.issuer is not None
        if is_shared and not is_safe and _origin(page) != _origin(metadata.issuer):
            ours, theirs = (plain(_origin(url), 100) for url in (metadata.issuer, page))
            raise Refused(
                f"its authorization server {ours} has its page at {theirs}, which may be another server's",
                remedy="if both are the same server, set auth.issuer to the URL of its issuer",
            )

    def page(self, attempt: LoginAttempt, state: str) -> str:
        """Return the URL of the page on which somebody logs in."""
        assert attempt.server.metadata.authorization_endpoint is not None
        page = self._http.checked(attempt.server.metadata.authorization_endpoint)
        parameters = {
            "response_type": "code",
            "client_id": attempt.client.client_id,
            "redirect_uri": attempt.redirect_uri,
            "state": state,
            "code_challenge": attempt.code_challenge,
            "code_challenge_method": "S256",
        }
        if attempt.server.resource is not None:
            parameters["resource"] = attempt.server.resource
        if attempt.scopes:
            parameters["scope"] = " ".join(attempt.scopes)
        if _OFFLINE in attempt.scopes:  # OpenID Connect Core, section 11
            parameters["prompt"] = "consent"
        try:
            return str(page.copy_merge_params(parameters))
        except httpx2.InvalidURL:
            raise Refused("the URL of its page would be too long", remedy="set auth.scopes to those needed") from None

    async def complete(self, attempt: LoginAttempt, query: Mapping[str, str]) -> Tokens:
        """Return the tokens for the code with which the browser returned."""
        metadata = attempt.server.metadata
        # RFC 9207, 2.4: before anything else, and compared as text. A response of another server ends here (mix-up).
        issuer = query.get("iss")
        if issuer is None and metadata.authorization_response_iss_parameter_supported:
            raise Refused("the login did not come back from its authorization server (no iss), which is refused")
        if issuer is not None and issuer != metadata.issuer:
            raise Refused("the login came back from another authorization server (iss), which is refused")
        if (error := query.get("error")) is not None:
            description = query.get("error_description")
            said = f"{plain(error, 60)}: {plain(description, 200)}" if description else plain(error, 60)
            raise Refused(f"the login was not granted ({said})", error=plain(error, 60))
        if not (code := query.get("code")):
            raise Refused("the login came back without a code")
        endpoint = self._endpoint(metadata.token_endpoint, metadata.issuer, attempt.client, attempt.key)
        resource = attempt.server.resource
        issued = await endpoint.with_code(code, attempt.redirect_uri, attempt.verifier, resource)
        return self._tokens(attempt.server, attempt.client, issued, attempt.scopes, attempt.key)

    async def refresh(self, tokens: Tokens, issuer: str) -> Tokens:
        """Return new tokens for a refresh token."""
        assert tokens.refresh_token is not None
        key = None if tokens.proof_key is None else ProofKey(tokens.proof_key)
        endpoint = self._endpoint(tokens.token_endpoint, issuer, tokens.client, key)
        issued = await endpoint.with_refresh_token(tokens.refresh_token, tokens.resource)
        if tokens.is_bound and not issued.is_bound:
            raise Refused("its authorization server no longer binds tokens to the key of the login (DPoP)")
        # What the server leaves out has not changed (RFC 6749, section 6).
        kept = {
            "access_token": issued.access_token,
            "refresh_token": issued.refresh_token or tokens.refresh_token,
            "expires": issued.expires,
            "lifetime": issued.expires_in,
            "scopes": issued.granted(tokens.scopes),
            "is_bound": issued.is_bound,
        }
        return tokens.model_copy(update=kept)

    async def obtain(
        self, server: AuthorizationServer, scopes: Sequence[str], subject: str | None, key: ProofKey | None
    ) -> Tokens:
        """Return tokens that need nobody's login; `subject` is the caller's own token, if it came with one."""
        client = configured_client(self._settings, server.metadata)
        endpoint = self._endpoint(server.metadata.token_endpoint, server.issuer, client, key)
        match self._settings.grant:
            case "token_exchange":
                issued = await self._exchanged(server, endpoint, scopes, subject, key)
            case "jwt_bearer":
                assert self._settings.assertion_file is not None
                assertion = await anyio.to_thread.run_sync(_read, self._settings.assertion_file)
                issued = await endpoint.with_assertion(assertion, scopes, server.resource)
            case _:
                issued = await endpoint.with_client_credentials(scopes, server.resource)
        return self._tokens(server, client, issued, scopes, key)

    async def _exchanged(
        self,
        server: AuthorizationServer,
        endpoint: TokenEndpoint,
        scopes: Sequence[str],
        subject: str | None,
        key: ProofKey | None,
    ) -> IssuedTokens:
        """Exchange the caller's token. It goes to the configured identity provider, and never to the upstream."""
        exchange = self._settings.exchange
        assert exchange is not None
        if subject is None:
            raise Refused("needs the token of whoever calls, who came without one that can be exchanged")
        authentication = "none" if exchange.client_secret is None else "client_secret_basic"
        ours = ClientIdentification(
            client_id=exchange.client_id, client_secret=exchange.client_secret, authentication=authentication
        )
        # A grant for another server is not bound: the token that it is exchanged for is.
        bound = key if exchange.request == "access_token" else None
        provider = self._endpoint(exchange.token_endpoint, exchange.token_endpoint, ours, bound)
        resource = server.resource or self._url
        issued = await provider.exchanged(subject, exchange, server.issuer, scopes, resource)
        return issued if isinstance(issued, IssuedTokens) else await endpoint.with_assertion(issued, scopes, resource)

    async def revoke(self, tokens: Tokens, issuer: str) -> None:
        """Revoke tokens, if the server can."""
        if tokens.revocation_endpoint is not None:
            endpoint = self._endpoint(tokens.token_endpoint, issuer, tokens.client)
            await endpoint.revoke(tokens.revocation_endpoint, tokens.refresh_token or tokens.access_token)

    def _endpoint(
        self, url: str, issuer: str, client: ClientIdentification, key: ProofKey | None = None
    ) -> TokenEndpoint:
        return TokenEndpoint(self._http, url, issuer, client, self._settings, key)

    def _tokens(
        self,
        server: AuthorizationServer,
        client: ClientIdentification,
        issued: IssuedTokens,
        asked: Sequence[str],
        key: ProofKey | None,
    ) -> Tokens:
        if not issued.is_bound and self._is_bound(server):
            raise Refused(
                "its authorization server issued a token that is not bound to a key (DPoP)",
                remedy="if the upstream takes such tokens, set auth.dpop to false",
            )
        return Tokens(
            access_token=issued.access_token,
            refresh_token=issued.refresh_token,
            expires=issued.expires,
            lifetime=issued.expires_in,
            scopes=issued.granted(asked),
            url=self._url,
            resource=server.resource,
            token_endpoint=server.metadata.token_endpoint,
            revocation_endpoint=server.metadata.revocation_endpoint,
            client=client,
            proof_key=None if key is None else key.kept,
            is_bound=issued.is_bound,
        )


def _origin(url: str) -> str:
    return str(httpx2.URL(url).copy_with(path="/", query=None, fragment=None))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_ASSERTION).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise Refused(f"auth.assertion_file cannot be read: {reason}") from None
