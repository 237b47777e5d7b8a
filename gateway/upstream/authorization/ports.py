"""The interfaces of logins to upstreams, and the values that pass through them. Without any I/O.

`Logins` is what everything else uses; `TokenVault` is where it keeps tokens; `TokenSource` is what a transport sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from gateway.upstream.authorization.proof_key import ProofKey

CALLBACK_PATH = "/oauth/callback"
"""The path, below the gateway's public URL, to which a browser returns after a login."""

CLIENT_DOCUMENT_PATH = "/oauth/client.json"
"""The path, below the gateway's public URL, of the document that describes it as a client (`client_document`)."""

ClientAuthentication = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]


def bare_url(url: str) -> str:
    """Return an upstream's URL as tokens are bound to it: without user, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2].lower(), parts.path, "", ""))


class LoginKey(NamedTuple):
    """What tokens are bound to: nobody else, no other upstream and no other authorization server gets them."""

    principal: str
    upstream: str
    issuer: str


class ClientIdentification(BaseModel):
    """How an authorization server knows the gateway: as configured, registered, or described by a document."""

    model_config = ConfigDict(frozen=True)

    client_id: str
    client_secret: str | None = Field(default=None, repr=False)
    authentication: ClientAuthentication = "none"
    redirect_uri: str | None = None
    """The redirect URI that was registered; None if others may be used as well."""
    scopes: tuple[str, ...] | None = None
    """The scopes that were registered; None if others may be used as well."""
    secret_expires: float | None = None
    """When the secret becomes invalid, in seconds since the epoch."""


class Tokens(BaseModel):
    """The tokens of a login, and what is needed to refresh them. `model_dump_json` and `model_validate_json` keep them.

    No token or secret is in its `repr`; whoever stores it must seal it.
    """

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    expires: float | None = None
    """When the access token becomes invalid, in seconds since the epoch; None if the server did not say."""
    lifetime: float | None = None
    """For how many seconds the access token was issued, if that is known."""
    scopes: tuple[str, ...] = ()
    url: str
    """The URL of the upstream (`bare_url`): they are sent to no other, even under the same name."""
    resource: str | None = None
    """The resource indicator with which they were requested (RFC 8707)."""
    token_endpoint: str
    revocation_endpoint: str | None = None
    client: ClientIdentification
    proof_key: str | None = Field(default=None, repr=False)
    """The key with which they were requested (`ProofKey.kept`), and have to be refreshed."""
    is_bound: bool = False
    """Whether the access token is bound to that key, so that it is sent with proofs (DPoP)."""


@dataclass(frozen=True)
class Credentials:
    """What a request to an upstream is sent with: an access token, and headers that say who calls.

    `key` is the one that the token is bound to, if it is (DPoP, RFC 9449). `caller` are headers by name.
    """

    token: str | None = field(repr=False)
    key: ProofKey | None = field(default=None, repr=False, compare=False)
    caller: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)

    def headers(self, method: str, url: str) -> dict[str, str]:
        """Return the headers for one request: each needs a proof of its own."""
        if self.token is None:
            return dict(self.caller)
        if self.key is None:
            return {**self.caller, "authorization": f"Bearer {self.token}"}
        proof = self.key.proof(method, url, self.token)
        return {**self.caller, "authorization": f"DPoP {self.token}", "dpop": proof}

    def heed(self, url: str, nonces: Sequence[str]) -> None:
        """Take the nonce for the next proof from the DPoP-Nonce headers of a response."""
        if self.key is not None and nonces:
            self.key.heed(url, nonces)


class TokenVault(Protocol):
    """Keeps tokens. Every method may raise `VaultLocked` (errors.py), which says how to unlock or replace it."""

    async def get(self, key: LoginKey) -> Tokens | None:
        """Return the tokens of a login. Raises LoginUnreadable if they cannot be opened, though the vault can."""
        ...

    async def put(self, key: LoginKey, tokens: Tokens) -> None:
        """Keep the tokens of a login in place of earlier ones."""
        ...

    async def delete(self, key: LoginKey) -> None:
        """Forget the tokens of a login, if there are any."""
        ...

    async def keys(self, principal: str | None = None) -> Sequence[LoginKey]:
        """Return the logins of a principal, or of all."""
        ...

    def alone(self, principal: str, upstream: str) -> AbstractAsyncContextManager[None]:
        """Return a context in which no other process changes the tokens of a principal for an upstream."""
        ...


@dataclass(frozen=True)
class PendingLogin:
    """A login that has begun: the URL to open in a browser, and the state with which the browser returns."""

    url: str = field(repr=False)
    state: str = field(repr=False)


class Logins(Protocol):
    """Logins to upstreams, implemented by `gateway.upstream.authorization.logins.UpstreamLogins`.

    Every method raises LoginFailed (errors.py) if an authorization server cannot be used or refuses.
    """

    named: Callable[[str], str]
    """Makes the name of a link, or of a login that has begun, of a secret: replicas add which of them has it."""

    async def token(self, upstream: str, principal: str, url: str | None = None) -> Credentials | None:
        """Return the credentials with the access token to send, refreshed if it is about to expire.

        None if there is none: the request is sent without one, and an upstream that wants one answers 401. None too if
        `url`, to which it would be sent, is no longer that of the upstream in the configuration. Raises LoginRequired
        if the configuration says that one is needed.
        """
        ...

    async def challenged(
        self,
        upstream: str,
        principal: str,
        sent: Credentials | None,
        status: int,
        www_authenticate: Sequence[str],
        url: str | None = None,
    ) -> Credentials | None:
        """Return other credentials to try in place of `sent`, after a response of 401 or 403.

        None if no token would help, or none may be sent to `url` (`token`), so that the response counts. Raises
        LoginRequired if a person has to log in.
        """
        ...

    async def principals(self, upstream: str) -> Collection[str]:
        """Return those who have logged in to an upstream."""
        ...

    async def reread(self, upstream: str, principal: str) -> None:
        """Look for tokens that another process has got for a principal, in place of those known here."""
        ...

    async def begin(
        self, upstream: str, principal: str, redirect_uri: str, *, scopes: Sequence[str] = ()
    ) -> PendingLogin:
        """Begin a login for a principal; the browser will return to `redirect_uri`.

        `scopes` are asked for besides those that the upstream is known to want, such as `LoginRequired.scopes`.
        """
        ...

    async def complete(self, state: str, query: Mapping[str, str], *, principal: str | None = None) -> LoginKey:
        """Complete a login with the parameters of the URL to which the browser returned; each state works once.

        With `principal`, a login that was begun for another one is refused.
        """
        ...

    async def forget(self, upstream: str, principal: str) -> None:
        """Revoke and forget the tokens of a principal for an upstream."""
        ...


class TokenSource(Protocol):
    """The credentials of one connection: of its principal, for its upstream."""

    async def token(self) -> Credentials | None:
        """Return what to send with the next request (`Logins.token`)."""
        ...

    async def challenged(
        self, sent: Credentials | None, status: int, www_authenticate: Sequence[str]
    ) -> Credentials | None:
        """Return other credentials to try (`Logins.challenged`)."""
        ...
