"""Who sent a request, as a token says, and what verifies tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gateway.core.model.grant import EVERYTHING, Grant

Fault = Literal["missing", "wrong", "expired", "unavailable", "insufficient", "forbidden"]
"""Why a request is not authorised.

`unavailable`: nobody can tell at present whether its token is valid; `insufficient`: it is, but lacks scopes that every
token needs; `forbidden`: whoever it belongs to reaches nothing here.
"""


@dataclass(frozen=True)
class Identified:
    """Whoever sent a valid token: the principal, what it may reach, and the profile that its hosts have."""

    principal: str
    grant: Grant = EVERYTHING
    profile: str | None = None
    expires: float | None = None
    """Seconds since 1970."""
    hash: str = field(default="", repr=False, compare=False)
    """The token's, if it is in the configuration."""
    token: str | None = field(default=None, compare=False)
    """The name of its table."""
    scopes: frozenset[str] = frozenset()
    """What an authorization server has granted to the token; nothing for tokens of the configuration."""
    is_admin: bool = False
    """Whether it may see what concerns the gateway as a whole, such as its metrics."""
    in_url: bool = False
    """Whether the token may be in the path of a request."""
    issuer: str | None = field(default=None, compare=False)
    """The name of the table of the issuer that has issued the token, or by which its principal has logged in."""
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    """What a token of an issuer says."""
    toolset: str | None = None
    """The toolset that its hosts have."""


class TokenVerifier(Protocol):
    """Knows tokens that are not in the configuration, such as those of an authorization server."""

    async def verify(self, token: str) -> Identified | Fault | None:
        """Return whom the token identifies, or what is wrong with it; None if it is not one of this verifier's.

        Called for every request. A token that is still valid must give an equal answer each time: streams that it
        opened are ended as soon as the answer differs.
        """
        ...
