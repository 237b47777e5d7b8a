"""The settings of the built-in authorization server: people, how they log in, and what hosts may have."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.section import Section
from gateway.core.model.quantities import Duration

PASSPHRASE_HASH = r"^scrypt:(?:16384|32768|65536|131072|262144):[A-Za-z0-9_-]{22}:[A-Za-z0-9_-]{43}$"  # noqa: S105 - a form, no passphrase
"""`scrypt:N:salt:hash`, as `mcp-gateway person add` writes it."""

STATE_URL = r"^(?:rediss?(?:\+cluster)?|unix|postgres(?:ql)?)://"
POSTGRES_SCHEMES = ("postgres://", "postgresql://")
CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")

_DAY = 86_400.0


class ReachSettings(Section):
    """What someone may reach."""

    upstreams: tuple[str, ...] = ("*",)
    """Upstreams that exist for them; shell globs."""
    tools: tuple[str, ...] = ("*",)
    """Tools that exist for them: shell globs on `upstream__tool`, whatever name the tool is offered under."""
    profile: str | None = None
    """The profile of their hosts that choose none by path or header."""
    toolset: str | None = None
    """The toolset that their hosts have; one that a host chooses narrows it further."""
    calls_per_minute: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of tool calls within a minute, for all of their hosts together."""


class PersonSettings(ReachSettings):
    """One person, who may approve hosts that log in. `mcp-gateway person add` writes such a table."""

    hash: Annotated[str | None, Field(pattern=PASSPHRASE_HASH)] = None
    """The hash (scrypt) of the passphrase; omitted: this person logs in with the company's account only."""
    admin: bool = False
    """Whether they may see what concerns the gateway as a whole: metrics, and the console with everybody's calls."""


class OidcSettings(ReachSettings):
    """Logging in with the company's account, at an OpenID Connect provider such as Keycloak, Entra or Okta."""

    issuer: str
    """The provider's issuer URL, exactly as it names itself."""
    client_id: str
    """The gateway's id at the provider. Its redirect URI there is `<public_url>/authorize/callback`."""
    client_secret: str | None = None
    """Its secret there, as `${file:...}`, `${keyring:...}` or a variable; omitted: a public client."""
    name: str = "your company's account"
    """What the login page calls it."""
    people: Annotated[tuple[str, ...], Field(min_length=1)]
    """Who may log in: shell globs on the principal, such as `*@example.com`."""
    principal_claim: str = "email"
    """The claim of the ID token that says who somebody is; `email` counts only if it is verified."""
    scopes: tuple[str, ...] = ("openid", "email")
    """Scopes that the provider is asked for."""

    @field_validator("issuer")
    @classmethod
    def _is_address(cls, issuer: str) -> str:
        loopback = r"http://(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?"
        if not re.fullmatch(rf"(?:https://[^\s/?#@]+|{loopback})(?:/[^\s?#]*)?", issuer):
            raise ValueError("must be an https:// URL without user, query or fragment")
        return issuer

    @field_validator("scopes")
    @classmethod
    def _is_openid(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError('must have "openid": without it, there is no ID token')
        return scopes


class AuthorizationServerSettings(Section):
    """The built-in authorization server, for hosts that need OAuth: claude.ai, ChatGPT. The table enables it."""

    database: Path | None = None
    """Where its state is kept (SQLite), relative to the file; omitted: in the gateway's state folder."""
    state: Annotated[str | None, Field(pattern=STATE_URL)] = None
    """Instead: URL of a Redis or Valkey (extra `redis`) or of a Postgres (extra `postgres`) that gateways share."""
    access_token_lifetime: Annotated[Duration, Field(gt=0, le=_DAY)] = 3_600.0
    """Seconds until a host has to renew its access token, which it does by itself."""
    approval_lifetime: Annotated[Duration, Field(gt=0, le=400 * _DAY)] = 90 * _DAY
    """Seconds after which a person has to approve a host again."""
    registration: bool = True
    """Whether hosts may register themselves (RFC 7591); most do."""
    max_clients: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Maximum number of registered hosts; beyond it, those that nobody has approved make way."""
    client_documents: bool = True
    """Whether a host may be identified by the URL of a document about it, which the gateway fetches."""
    allow_private: tuple[str, ...] = ()
    """Hosts of such documents that may have private addresses, or no TLS, such as `127.0.0.1:9000`."""
    oidc: OidcSettings | None = None
