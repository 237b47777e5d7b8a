"""Approvals: a person lets a host use the gateway. Codes and tokens belong to one, and end with it.

Codes and tokens are random (256 bits) and stored as SHA-256.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal

from gateway.serving.access.tokens import ACCESS_PREFIX, REFRESH_PREFIX

CODE_SECONDS = 60.0
"""Time to exchange a code."""
MOST_OF_ONE = 200
"""Approvals of one principal; the least recently used ones end first."""
USE_NOTED_SECONDS = 60.0
"""Time in which further uses of an approval are not noted."""

Kind = Literal["access", "refresh"]


@dataclass(frozen=True)
class Approval:
    """One approval: of a host (client), by a person (principal), to use the gateway."""

    id: str
    client: str
    client_name: str
    redirect: str
    """Where the person's browser was sent, in words."""
    principal: str
    login: str
    """How the principal logged in: `passphrase`, or the issuer of the company's account."""
    resource: str
    scope: str
    created: float
    used: float
    expires: float
    claims: str = "{}"
    """What the company's provider says of the principal (a JSON object), as far as the configuration asks for it."""


@dataclass(frozen=True)
class Code:
    """A code that a host exchanges for tokens, once."""

    approval: Approval
    redirect_uri: str
    challenge: str
    expires: float


@dataclass(frozen=True)
class Token:
    """A valid token, and the approval that it comes from."""

    approval: Approval
    scope: str
    """That of the approval; for an access token, what the host asked for of it."""
    expires: float


@dataclass(frozen=True)
class Replayed:
    """A code or refresh token came again, which has ended the approval that it came from: it may be stolen."""

    approval: Approval


@dataclass(frozen=True)
class IssuedTokens:
    """A new pair of tokens."""

    access: str
    refresh: str
    seconds: int
    scope: str


def digest(secret: str) -> str:
    """Return the form in which a code, token or client secret is stored."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def new_tokens(approval: Approval, scope: str, now: float, seconds: float) -> IssuedTokens:
    """Return new tokens of an approval in force; the access token ends with it, or after so many seconds."""
    return IssuedTokens(
        ACCESS_PREFIX + secrets.token_urlsafe(32),
        REFRESH_PREFIX + secrets.token_urlsafe(32),
        int(min(seconds, approval.expires - now)),
        scope,
    )
