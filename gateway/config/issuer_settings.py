"""The tables of issuers: authorization servers of others whose tokens open the gateway."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from gateway.config.section import Section
from gateway.core.model.quantities import Duration
from gateway.system.loopback import is_this_machine

Algorithm = Literal["EdDSA", "ES256", "RS256"]
"""Signatures that are accepted: none whose key would be a shared secret."""

SCOPE = r"^[!#-\[\]-~]+$"
"""One scope (RFC 6749, 3.3): it is repeated in headers."""

_URL = r"^https?://[^\s/?#@]+(?:/[^\s#]*)?$"
_ISSUER = r"^https?://[^\s/?#@]+(?:/[^\s?#]*)?$"

Scope = Annotated[str, Field(pattern=SCOPE)]
Url = Annotated[str, Field(pattern=_URL)]
Claim = Annotated[str, Field(min_length=1)]


class ClaimSettings(Section):
    """Which claims of a token say what. `realm_access.roles` is the claim `roles` in the claim `realm_access`.

    A token without a claim that is named for `upstreams` or `tools` reaches none of them.
    """

    principal: Claim = "sub"
    """Whom content, sessions and tasks belong to. It must be unique, and nobody may be able to change their own."""
    groups: Claim = "groups"
    """The groups or roles of whoever has the token, for the tables of groups."""
    upstreams: Claim | None = None
    """Upstreams that exist for it: shell globs, as a list or separated by spaces."""
    tools: Claim | None = None
    """Tools that exist for it, as `upstream__tool`, in the same form."""
    profile: Claim | None = None
    """The profile of its hosts."""
    toolset: Claim | None = None
    """The toolset of its hosts; a token whose claim names none that exists reaches nothing."""
    calls_per_minute: Claim | None = None
    """Maximum number of its tool calls within a minute."""
    admin: Claim | None = None
    """Whether it may read what concerns the gateway as a whole (`/metrics`, `/console`): a claim, true or not."""


class GroupSettings(Section):
    """What members of a group reach. Members of several reach what any of them reaches."""

    upstreams: tuple[str, ...] = ("*",)
    """Upstreams that exist for members; shell globs."""
    tools: tuple[str, ...] = ("*",)
    """Tools that exist for members: shell globs on `upstream__tool`."""
    admin: bool = False
    """Whether members may read what concerns the gateway as a whole: `/metrics`, `/readyz`, `/console`."""


class IssuerSettings(Section):
    """An authorization server (Keycloak, Entra, Auth0, Okta, ...) whose access tokens for the gateway are accepted."""

    issuer: Annotated[str, Field(pattern=_ISSUER)]
    """Its URL, exactly as in its tokens and its metadata, with or without a slash at the end."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Audiences of tokens for this gateway. Omitted: `public_url`, and the addresses of its endpoints below it."""
    required_scopes: tuple[Scope, ...] = ()
    """Scopes that every token must have; hosts are told to ask for them."""
    algorithms: tuple[Algorithm, ...] = ("EdDSA", "ES256", "RS256")
    """Signatures that are accepted."""
    jwks_url: Url | None = None
    """Where its public keys are. Omitted: as its metadata says (RFC 8414, or OpenID Connect Discovery)."""
    introspection_url: Url | None = None
    """Where it is asked about each token (RFC 7662), in place of checking signatures; needs the client below."""
    client_id: str | None = None
    """The client as which the gateway asks."""
    client_secret: str | None = None
    """Its secret: `${keyring:NAME}`, `${file:PATH}`."""
    clock_skew: Annotated[Duration, Field(ge=0, le=300)] = 30.0
    """Seconds by which its clock may differ from ours."""
    principal_prefix: str | None = None
    """Put before each principal. Omitted: the name of this table and a colon, so that no two issuers share one."""
    upstreams: tuple[str, ...] = ("*",)
    """Upstreams that exist for its tokens, unless claims or groups say which; shell globs."""
    tools: tuple[str, ...] = ("*",)
    """Tools that exist for its tokens, unless claims or groups say which: shell globs on `upstream__tool`."""
    profile: str | None = None
    """The profile of hosts that choose none by path or header, unless a claim says which."""
    toolset: str | None = None
    """The toolset that its hosts have, unless a claim says which; one that they choose narrows it further."""
    calls_per_minute: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of tool calls of each principal within a minute, unless a claim says how many."""
    claims: ClaimSettings = ClaimSettings()
    groups: dict[str, GroupSettings] = Field(default_factory=dict[str, GroupSettings])

    @field_validator("issuer", "jwks_url", "introspection_url")
    @classmethod
    def _is_confidential(cls, url: str | None) -> str | None:
        if url is not None and url.startswith("http://") and not is_this_machine(urlsplit(url).hostname or ""):
            raise ValueError("must begin with https://, unless it is on this machine")
        return url

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        given = [value is not None for value in (self.introspection_url, self.client_id, self.client_secret)]
        if any(given) and not all(given):
            raise ValueError("introspection needs introspection_url, client_id and client_secret")
        if self.introspection_url is not None and self.jwks_url is not None:
            raise ValueError("has jwks_url and introspection_url: give one of them")
        return self

    @model_validator(mode="after")
    def _reach_is_clear(self) -> Self:
        if self.groups and (self.claims.upstreams is not None or self.claims.tools is not None):
            raise ValueError("has groups, and claims for upstreams or tools: give one of them")
        return self
