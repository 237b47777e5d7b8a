"""What the SDK's handlers of `/token` and `/register` ask for: clients, codes and tokens, from the state.

`/authorize`, `/revoke` and the metadata are not the SDK's: its `/authorize` answers people in JSON, compares redirect
URIs in a normalized form and leaves `iss` out, and its `/revoke` refuses clients without a secret.
"""

import math
import time
from collections.abc import Callable
from typing import TypeVar

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from gateway.config.authorization_settings import AuthorizationServerSettings
from gateway.serving.authorization.approvals import Approval, Code, IssuedTokens, Replayed, Token
from gateway.serving.authorization.client_documents import ClientDocuments, UnusableDocument
from gateway.serving.authorization.clients import Client, stored_client
from gateway.serving.authorization.listeners import Listeners
from gateway.serving.authorization.state import State

FoundT = TypeVar("FoundT", bound=Code | Token | IssuedTokens)


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The state and the documents of clients, as the SDK's handlers want them.

    `may_use` says whether a person may still have tokens: someone who was removed may not.
    """

    def __init__(
        self,
        settings: AuthorizationServerSettings,
        state: State,
        may_use: Callable[[Approval], bool],
        listeners: Listeners,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._state = state
        self._may_use = may_use
        self._listeners = listeners
        self._clock = clock
        documents = ClientDocuments(self._is_approved, settings.allow_private)
        self._documents = documents if settings.client_documents else None

    async def client(self, client_id: str) -> Client | None:
        """Return a client; None if there is none.

        Raises:
            UnusableDocument: its id is a URL without a usable document.
            StateUnavailable: the state cannot be used.
        """
        if self._documents is not None and self._documents.is_document(client_id):
            return await self._documents.find(client_id)
        return await self._state.find_client(client_id)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client for the SDK."""
        try:
            found = await self.client(client_id)
        except UnusableDocument:
            return None
        return None if found is None else found.for_sdk()

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client that registers itself."""
        await self._state.keep_client(stored_client(client_info), self._clock(), self._settings.max_clients)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Not used: see `authorize_page`."""
        raise NotImplementedError

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return a code that was issued to the client, and was not used."""
        found = self._unless_replayed(await self._state.find_code(authorization_code, client.client_id))
        if found is None:
            return None
        return AuthorizationCode.model_validate(
            {
                "code": authorization_code,
                "scopes": found.approval.scope.split(),
                "expires_at": math.inf if self._is_valid(found) else 0.0,
                "client_id": client.client_id,
                "code_challenge": found.challenge,
                "redirect_uri": found.redirect_uri,
                "redirect_uri_provided_explicitly": True,
                "resource": found.approval.resource,
                "subject": found.approval.principal,
            }
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Exchange a code for tokens."""
        seconds = self._settings.access_token_lifetime
        issued = await self._state.use_code(authorization_code.code, self._clock(), seconds)
        return self._exchanged(issued, "the code has been used")

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """Return a refresh token of the client that was not used."""
        found = self._unless_replayed(await self._state.find_refresh_token(refresh_token, client.client_id))
        if found is None or not self._is_valid(found):
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=found.scope.split(),
            resource=found.approval.resource,
            subject=found.approval.principal,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Exchange a refresh token for new tokens."""
        seconds = self._settings.access_token_lifetime
        issued = await self._state.use_refresh_token(refresh_token.token, " ".join(scopes), self._clock(), seconds)
        return self._exchanged(issued, "the refresh token has been used")

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Not used: `AuthorizationServer.verify` looks tokens up."""
        raise NotImplementedError

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        """Not offered."""
        raise TokenError("unsupported_grant_type")

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Not used: see `program_endpoints`."""
        raise NotImplementedError

    async def _is_approved(self, client_id: str) -> bool:
        return await self._state.is_approved(client_id, self._clock())

    def _is_valid(self, found: Code | Token) -> bool:
        return found.expires > self._clock() and self._may_use(found.approval)

    def _unless_replayed(self, found: FoundT | Replayed | None) -> FoundT | None:
        if isinstance(found, Replayed):
            self._listeners.tell(found.approval, "ended, because a code or refresh token came again")
            return None
        return found

    def _exchanged(self, found: IssuedTokens | Replayed | None, fault: str) -> OAuthToken:
        issued = self._unless_replayed(found)
        if issued is None:
            raise TokenError("invalid_grant", fault)
        return OAuthToken(
            access_token=issued.access,
            expires_in=issued.seconds,
            scope=issued.scope,
            refresh_token=issued.refresh,
        )
