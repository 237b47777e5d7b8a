"""Claims of tokens, as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.model.json_values import is_object


@dataclass(frozen=True)
class CameWith:
    """The verified token with which a principal has come to the gateway: its text, its issuer and its claims.

    `issuer` is the name of a table in `[access.issuers]`, or of that of the authorization server, for a login with the
    company's account: then there is no text, because the token is the gateway's own, and opens it alone.
    """

    token: str | None = field(repr=False)
    issuer: str
    claims: Mapping[str, Any] = field(repr=False)


CameWithOf = Callable[[str], CameWith | None]
"""Returns the verified token with which a principal has come lately, if an issuer's; None otherwise."""


def claim_in(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by its path; None without it.

    A name may itself have dots in it, as that of a URL has.
    """
    if name in claims:
        return claims[name]
    first, _, rest = name.partition(".")
    inner = claims.get(first)
    return claim_in(inner, rest) if rest and is_object(inner) else None
