"""`[access]` and `[access.tokens.NAME]`: who may use the gateway."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, field_validator, model_validator

from gateway.config.authorization_settings import AuthorizationServerSettings, PersonSettings
from gateway.config.caller_limit_settings import CallerLimitSettings
from gateway.config.issuer_settings import SCOPE, IssuerSettings
from gateway.config.moments import moment_in
from gateway.config.section import Section
from gateway.config.setting_types import PRINCIPAL, RESERVED_PRINCIPALS

HASHED = r"^sha256:[0-9a-f]{64}$"

SHORTEST_TOKEN = 16


class TokenSettings(Section):
    """One token: whom it belongs to, what it opens, and until when. `mcp-gateway token add` writes such a table."""

    hash: Annotated[str | None, Field(pattern=HASHED)] = None
    """The SHA-256 of the token, so that the file does not hold it."""
    token: str | None = None
    """The token itself, in place of `hash`: `${keyring:NAME}`, `${file:PATH}`, at least 16 characters."""
    principal: Annotated[str | None, Field(pattern=PRINCIPAL, max_length=100)] = None
    """Whom content, sessions and tasks belong to; tokens may share one. Omitted: the name of the token."""
    upstreams: tuple[str, ...] = ("*",)
    """Upstreams that exist for this token; shell globs."""
    tools: tuple[str, ...] = ("*",)
    """Tools that exist for this token: shell globs on `upstream__tool`, whatever name the tool is offered under."""
    profile: str | None = None
    """The profile of hosts with this token that choose none by path or header."""
    toolset: str | None = None
    """The toolset that hosts with this token have; one that they choose narrows it further."""
    expires: AwareDatetime | date | None = None
    """When the token becomes invalid; a date counts from its beginning, in UTC."""
    calls_per_minute: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of tool calls within a minute, for all hosts with this token together."""
    limits: CallerLimitSettings = CallerLimitSettings()
    """Limits that are counted for this token alone, in place of those for its principal in `[access.limits]`."""
    url: bool = False
    """Whether the token may also be in the path, as `/t/TOKEN/mcp`, for hosts that can send no header."""

    @field_validator("token")
    @classmethod
    def _cannot_be_guessed(cls, token: str | None) -> str | None:
        if token is not None and len(token.strip()) < SHORTEST_TOKEN:
            raise ValueError(f"has less than {SHORTEST_TOKEN} characters, and could be guessed")
        return token

    @field_validator("expires", mode="before")
    @classmethod
    def _is_a_moment(cls, given: Any) -> Any:
        # In place of the two problems that the two types would give.
        moment = moment_in(given) if isinstance(given, str) else given
        if isinstance(moment, datetime) and moment.tzinfo is None:
            raise ValueError("needs a time zone, such as the Z of 2027-01-31T12:00:00Z")
        if moment is not None and not isinstance(moment, date):
            raise ValueError("must be a date or a time, such as 2027-01-31 or 2027-01-31T12:00:00Z")
        return moment

    @field_validator("principal")
    @classmethod
    def _is_free(cls, principal: str | None) -> str | None:
        if principal in RESERVED_PRINCIPALS:
            raise ValueError(f"the principal {principal!r} is the gateway's own: choose another")
        return principal

    @model_validator(mode="after")
    def _is_one_token(self) -> "TokenSettings":
        if (self.hash is None) == (self.token is None):
            raise ValueError("needs either hash or token: `mcp-gateway token add` makes one")
        if self.calls_per_minute is not None and self.limits.calls_per_minute is not None:
            raise ValueError("has calls_per_minute and limits.calls_per_minute: give one of them")
        return self


class AccessSettings(Section):
    """Who may use the gateway over HTTP, and what each may reach. A host on stdio needs no token, and reaches all."""

    tokens: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], TokenSettings] = Field(
        default_factory=dict[str, TokenSettings]
    )
    limits: CallerLimitSettings = CallerLimitSettings()
    """Limits for each principal, for all of its hosts together: `local`, the user of this machine, is one of them."""
    issuers: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], IssuerSettings] = Field(
        default_factory=dict[str, IssuerSettings]
    )
    scopes: dict[str, tuple[Annotated[str, Field(pattern=SCOPE)], ...]] = Field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """Scopes that a call needs if its token comes from an authorization server: `{ "github__delete_*" = ["admin"] }`.

    The keys are shell globs on `upstream__tool`. Tokens of `[access.tokens]` have no scopes, and need none.
    """
    people: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], PersonSettings] = Field(
        default_factory=dict[str, PersonSettings]
    )
    authorization_server: AuthorizationServerSettings | None = None

    @property
    def admits_unnamed(self) -> bool:
        """Whether principals may come that these tables do not name: those of identity providers."""
        server = self.authorization_server
        return bool(self.issuers) or (server is not None and server.oidc is not None)

    def principals(self) -> list[str]:
        """Return the principals that these tables name, each once."""
        tokens = (token.principal or name for name, token in self.tokens.items())
        return list(dict.fromkeys((*tokens, *self.people)))

    def toolsets(self) -> Iterator[tuple[str, str]]:
        """Yield the names of toolsets in these tables, each with where it is."""
        server = self.authorization_server
        tables: list[tuple[str, str | None]] = [
            *((f"access.tokens.{name}", one.toolset) for name, one in self.tokens.items()),
            *((f"access.people.{name}", one.toolset) for name, one in self.people.items()),
            *((f"access.issuers.{name}", one.toolset) for name, one in self.issuers.items()),
            ("access.authorization_server.oidc", server.oidc.toolset if server is not None and server.oidc else None),
        ]
        yield from ((f"{where}.toolset", toolset) for where, toolset in tables if toolset is not None)

    @field_validator("tokens", "people")
    @classmethod
    def _names_are_free(cls, tables: dict[str, Any]) -> dict[str, Any]:
        if taken := RESERVED_PRINCIPALS & tables.keys():
            raise ValueError(f"the name {min(taken)!r} is the gateway's own: choose another")
        return tables

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> "AccessSettings":
        server = self.authorization_server
        if server is not None and server.oidc is None and not any(one.hash for one in self.people.values()):
            raise ValueError("authorization_server needs people who can log in: `mcp-gateway person add NAME` adds one")
        return self
