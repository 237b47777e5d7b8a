"""The settings of logins to one upstream (OAuth), for all that its own metadata does not say."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gateway.config.section import Section

ISSUER = r"^https?://[^\s/?#@]+(?:/[^\s?#]*)?$"
"""The identifier of an authorization server: a URL without user, query and fragment (RFC 8414, section 2)."""

CLIENT_METADATA_URL = r"^https://[^\s/?#@]+/[^\s#]+$"

SCOPE = r"^[\x21\x23-\x5b\x5d-\x7e]+$"


class TokenExchangeSettings(Section):
    """Exchange of the caller's own token at the company's identity provider (RFC 8693), for upstreams that trust it."""

    token_endpoint: Annotated[str, Field(pattern=ISSUER)]
    """The token endpoint of the identity provider."""
    client_id: Annotated[str, Field(min_length=1)]
    """The client that was registered there for the gateway."""
    client_secret: Annotated[str, Field(min_length=1)] | None = None
    """The secret of that client."""
    subject: Literal["access_token", "id_token", "jwt"] = "access_token"
    """The kind of the caller's token."""
    request: Literal["id_jag", "access_token"] = "access_token"
    """What it is exchanged for: a token for the upstream, or a grant (ID-JAG) for its authorization server."""
    audience: str | None = None
    """For whom it is; omitted: the upstream's authorization server."""


class UpstreamAuthSettings(Section):
    """How to log in to an upstream. Without it, the upstream's own metadata decides, and the gateway registers."""

    grant: Literal["authorization_code", "client_credentials", "jwt_bearer", "token_exchange"] = "authorization_code"
    """Whose token it gets: a person's who logs in, the gateway's, its workload's, or one for that of the caller."""
    issuer: Annotated[str, Field(pattern=ISSUER)] | None = None
    """The authorization server that gets the credentials, and no other; omitted: the one that the upstream names."""
    client_id: Annotated[str, Field(min_length=1)] | None = None
    """The client that was registered for the gateway; omitted: it registers itself."""
    client_secret: Annotated[str, Field(min_length=1)] | None = None
    """The secret of that client."""
    # In the SDK's order: equal Literals are one object for `typing`, in the order of the first that was imported.
    client_authentication: Literal["none", "client_secret_post", "client_secret_basic", "private_key_jwt"] | None = None
    """How the client proves who it is; omitted: as the server's metadata and the credentials here suggest."""
    private_key: Annotated[str, Field(min_length=1)] | None = None
    """The private key of the client (PEM), in place of a secret: `${file:PATH}`."""
    signing_algorithm: Literal["ES256", "ES384", "RS256", "PS256", "EdDSA"] = "ES256"
    """The algorithm for `private_key`."""
    key_id: str | None = None
    """The id of `private_key`, if the server needs it."""
    assertion_file: Path | None = None
    """The file with the token of this workload, for `jwt_bearer`; it is read whenever it is needed."""
    exchange: TokenExchangeSettings | None = None
    """Where the caller's token is exchanged, for `token_exchange`."""
    scopes: tuple[Annotated[str, Field(pattern=SCOPE)], ...] | None = None
    """The scopes to ask for at first; omitted: those that the upstream asks for, or lists."""
    dpop: bool | None = None
    """Whether tokens are bound to a key of the gateway's (DPoP); omitted: if both the upstream and its server can."""
    callback_port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """The port on this machine to which the browser returns, if the client is registered with one; else a free one."""
    client_metadata_url: Annotated[str, Field(pattern=CLIENT_METADATA_URL)] | None = None
    """The URL of a document that describes the gateway as a client; omitted: its own, below `gateway.public_url`."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.client_id is None and (self.client_secret is not None or self.private_key is not None):
            raise ValueError("client_secret and private_key need client_id, the client to which they belong")
        if self.client_secret is not None and self.private_key is not None:
            raise ValueError("give either client_secret or private_key")
        if self.grant == "client_credentials" and self.client_secret is None and self.private_key is None:
            raise ValueError("grant = 'client_credentials' needs client_id, and client_secret or private_key")
        if (self.grant == "jwt_bearer") != (self.assertion_file is not None):
            raise ValueError("assertion_file and grant = 'jwt_bearer' need each other")
        if (self.grant == "token_exchange") != (self.exchange is not None):
            raise ValueError("exchange and grant = 'token_exchange' need each other")
        if self.client_authentication == "private_key_jwt" and self.private_key is None:
            raise ValueError("client_authentication = 'private_key_jwt' needs private_key")
        if self.client_authentication in ("client_secret_basic", "client_secret_post") and self.client_secret is None:
            raise ValueError(f"client_authentication = {self.client_authentication!r} needs client_secret")
        return self
