"""Approvals: a person lets a host use the gateway. Codes and tokens belong to one, and end with it.

Functions on a connection, each to be run in a transaction (`Database.run`). Codes and tokens are random (256 bits) and
stored as SHA-256.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence
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


def approve(connection: sqlite3.Connection, approval: Approval, redirect_uri: str, challenge: str) -> str:
    """Keep a new approval, and return the code for it."""
    _expire(connection, approval.created)
    columns = vars(approval)
    marks = ", ".join(f":{name}" for name in columns)
    connection.execute(f"INSERT INTO approvals ({', '.join(columns)}) VALUES ({marks})", columns)  # noqa: S608 - our own names
    connection.execute("UPDATE clients SET approved = ? WHERE id = ?", (approval.created, approval.client))
    connection.execute(
        "DELETE FROM approvals WHERE id IN "
        "(SELECT id FROM approvals WHERE principal = ? ORDER BY used DESC LIMIT -1 OFFSET ?)",
        (approval.principal, MOST_OF_ONE),
    )
    code = secrets.token_urlsafe(32)
    connection.execute(
        "INSERT INTO codes VALUES (?, ?, ?, ?, ?, NULL)",
        (digest(code), approval.id, redirect_uri, challenge, approval.created + CODE_SECONDS),
    )
    return code


def find_code(connection: sqlite3.Connection, code: str, client: str) -> Code | Replayed | None:
    """Return a code that was issued to this client. One that is used again ends its approval."""
    found: sqlite3.Row | None = connection.execute("SELECT * FROM codes WHERE hash = ?", (digest(code),)).fetchone()
    approval = None if found is None else _approval(connection, found["approval"])
    if found is None or approval is None or approval.client != client:
        return None
    if found["used"] is not None:
        revoke(connection, approval.id)
        return Replayed(approval)
    return Code(approval, found["redirect_uri"], found["challenge"], found["expires"])


def use_code(connection: sqlite3.Connection, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
    """Exchange a code. If somebody else was first, its approval ends."""
    used = connection.execute("UPDATE codes SET used = ? WHERE hash = ? AND used IS NULL", (now, digest(code)))
    approval = _approval_of(connection, "codes", code)
    scope = "" if approval is None else approval.scope
    return _issued(connection, approval, scope, now, seconds, is_first=used.rowcount == 1)


def find_refresh_token(connection: sqlite3.Connection, token: str, client: str) -> Token | Replayed | None:
    """Return a refresh token of this client. One that is used again ends its approval."""
    found = _token(connection, token, "refresh")
    approval = None if found is None else _approval(connection, found["approval"])
    if found is None or approval is None or approval.client != client:
        return None
    if found["used"] is not None:
        revoke(connection, approval.id)
        return Replayed(approval)
    return Token(approval, found["scope"], found["expires"])


def use_refresh_token(
    connection: sqlite3.Connection, token: str, scope: str, now: float, seconds: float
) -> IssuedTokens | Replayed | None:
    """Exchange a refresh token for tokens with this scope. If it has been used, its approval ends."""
    used = connection.execute(
        "UPDATE tokens SET used = ? WHERE hash = ? AND kind = 'refresh' AND used IS NULL", (now, digest(token))
    )
    approval = _approval_of(connection, "tokens", token)
    return _issued(connection, approval, scope, now, seconds, is_first=used.rowcount == 1)


def find_access_token(connection: sqlite3.Connection, token: str, now: float) -> Token | None:
    """Return an access token, valid or expired, and note now and then that its approval is in use."""
    found = _token(connection, token, "access")
    approval = None if found is None else _approval(connection, found["approval"])
    if found is None or approval is None:
        return None
    if now - approval.used > USE_NOTED_SECONDS:
        connection.execute("UPDATE approvals SET used = ? WHERE id = ?", (now, approval.id))
    return Token(approval, found["scope"], min(found["expires"], approval.expires))


def revoke_token(connection: sqlite3.Connection, token: str, client: str) -> Approval | None:
    """End the approval of a token of this client, whichever kind it is, and return it; None if there is none."""
    approval = _approval_of(connection, "tokens", token)
    if approval is None or approval.client != client:
        return None
    revoke(connection, approval.id)
    return approval


def revoke(connection: sqlite3.Connection, approval: str) -> None:
    """End an approval, with its codes and tokens."""
    connection.execute("DELETE FROM approvals WHERE id = ?", (approval,))


def is_approved(connection: sqlite3.Connection, client: str, now: float) -> bool:
    """Whether an approval of this client is in force."""
    query = "SELECT 1 FROM approvals WHERE client = ? AND expires > ?"
    return connection.execute(query, (client, now)).fetchone() is not None


def all_approvals(connection: sqlite3.Connection, now: float) -> Sequence[Approval]:
    """Return the approvals in force, the latest first."""
    _expire(connection, now)
    return [Approval(**dict(row)) for row in connection.execute("SELECT * FROM approvals ORDER BY created DESC")]


def _issued(
    connection: sqlite3.Connection,
    approval: Approval | None,
    scope: str,
    now: float,
    seconds: float,
    *,
    is_first: bool,
) -> IssuedTokens | Replayed | None:
    if approval is None:
        return None
    if not is_first or approval.expires <= now:
        revoke(connection, approval.id)
        return None if is_first else Replayed(approval)
    _expire(connection, now)
    issued = IssuedTokens(
        ACCESS_PREFIX + secrets.token_urlsafe(32),
        REFRESH_PREFIX + secrets.token_urlsafe(32),
        int(min(seconds, approval.expires - now)),
        scope,
    )
    connection.executemany(
        "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)",
        [
            (digest(issued.access), approval.id, "access", scope, now + issued.seconds),
            (digest(issued.refresh), approval.id, "refresh", approval.scope, approval.expires),
        ],
    )
    return issued


def _expire(connection: sqlite3.Connection, now: float) -> None:
    """Remove what has expired. Codes and refresh tokens that were used stay, to be recognised if they come again."""
    connection.execute("DELETE FROM approvals WHERE expires <= ?", (now,))
    connection.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
    # An approval whose code nobody has exchanged will never have a token.
    connection.execute(
        "DELETE FROM approvals WHERE id IN (SELECT approval FROM codes WHERE expires <= ? AND used IS NULL)", (now,)
    )


def _approval(connection: sqlite3.Connection, approval: str) -> Approval | None:
    found = connection.execute("SELECT * FROM approvals WHERE id = ?", (approval,)).fetchone()
    return None if found is None else Approval(**dict(found))


def _approval_of(connection: sqlite3.Connection, table: Literal["codes", "tokens"], secret: str) -> Approval | None:
    query = f"SELECT approval FROM {table} WHERE hash = ?"  # noqa: S608 - one of two names of ours
    found = connection.execute(query, (digest(secret),)).fetchone()
    return None if found is None else _approval(connection, found["approval"])


def _token(connection: sqlite3.Connection, token: str, kind: Kind) -> sqlite3.Row | None:
    return connection.execute("SELECT * FROM tokens WHERE hash = ? AND kind = ?", (digest(token), kind)).fetchone()
