"""Headers that say who calls, for upstreams that trust the gateway: which claim is sent under which name."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

PRINCIPAL = "principal"
"""Stands for the gateway's own name of whoever calls, whatever they came with."""

COMPANY = "authorization_server"
"""Stands for the company's provider of `[access.authorization_server.oidc]`, beside the issuers."""

_RESERVED = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "dpop", "host", "origin", "forwarded", "last-event-id"),
        *("accept", "accept-encoding", "content-length", "content-type", "content-encoding", "user-agent"),
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "cache-control"),
    }
)
"""Headers that mean something else: to HTTP, to the gateway, or to whatever is on the way."""
_RESERVED_BEGINNINGS = ("mcp-", "proxy-")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")


def _named(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not the name of a header")
        if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_BEGINNINGS):
            raise ValueError(f"{name} cannot be used for a claim: it means something else")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("two headers differ in upper and lower case only")
    return headers


ClaimHeaders = Annotated[dict[str, Annotated[str, Field(min_length=1, max_length=200)]], AfterValidator(_named)]
"""Claims, or `principal`, by the header in which they are sent."""


def source_problem(headers: Mapping[str, str], source: str | None, issuers: Collection[str]) -> str | None:
    """Return what is wrong with where claims come from, in words; None if nothing is.

    Two issuers may call different people by the same `sub`, so it has to be clear whose claims count.
    """
    if source is not None and source not in issuers:
        named = ", ".join(issuers) or "none"
        return f"claims_from: there is no issuer {source!r} in [access.issuers] (there are: {named})"
    if source is not None or all(claim == PRINCIPAL for claim in headers.values()):
        return None
    if not issuers:
        return (
            "headers_from_claims: claims come from tokens of [access.issuers] and from logins of "
            "[access.authorization_server.oidc], and there are none: use 'principal'"
        )
    if len(issuers) > 1:
        return (
            "headers_from_claims: claims come from several ([access.issuers], and the authorization server's oidc): "
            "name the one that counts in claims_from"
        )
    return None


def company_claims(headers: Mapping[str, str], source: str | None) -> frozenset[str]:
    """Return the claims that an upstream with these settings may want of logins with the company's account."""
    return frozenset(headers.values()) - {PRINCIPAL} if source in (None, COMPANY) else frozenset()
