"""Approvals, codes and tokens in an SQL database. Each function is to be run in a transaction (`SqlDatabase.run`)."""

import secrets
from collections.abc import Sequence
from typing import Literal

from gateway.serving.authorization.approvals import (
    CODE_SECONDS,
    MOST_OF_ONE,
    USE_NOTED_SECONDS,
    Approval,
    Code,
    IssuedTokens,
    Kind,
    Replayed,
    Token,
    digest,
    new_tokens,
)
from gateway.serving.authorization.sql_database import Row, Transaction


def approve(sql: Transaction, approval: Approval, redirect_uri: str, challenge: str) -> str:
    """Keep a new approval, and return the code for it."""
    _expire(sql, approval.created)
    columns = vars(approval)
    marks = ", ".join("?" * len(columns))
    names = ", ".join(columns)
    sql.execute(f"INSERT INTO approvals ({names}) VALUES ({marks})", tuple(columns.values()))  # noqa: S608 - our own names
    sql.execute("UPDATE clients SET approved = ? WHERE id = ?", (approval.created, approval.client))
    sql.execute(
        "DELETE FROM approvals WHERE principal = ? AND id NOT IN "
        "(SELECT id FROM approvals WHERE principal = ? ORDER BY used DESC LIMIT ?)",
        (approval.principal, approval.principal, MOST_OF_ONE),
    )
    code = secrets.token_urlsafe(32)
    sql.execute(
        "INSERT INTO codes VALUES (?, ?, ?, ?, ?, NULL)",
        (digest(code), approval.id, redirect_uri, challenge, approval.created + CODE_SECONDS),
    )
    return code


def find_code(sql: Transaction, code: str, client: str) -> Code | Replayed | None:
    """Return a code that was issued to this client. One that is used again ends its approval."""
    found = sql.execute("SELECT * FROM codes WHERE hash = ?", (digest(code),)).fetchone()
    approval = None if found is None else _approval(sql, found["approval"])
    if found is None or approval is None or approval.client != client:
        return None
    if found["used"] is not None:
        revoke(sql, approval.id)
        return Replayed(approval)
    return Code(approval, found["redirect_uri"], found["challenge"], found["expires"])


def use_code(sql: Transaction, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
    """Exchange a code. If somebody else was first, its approval ends."""
    used = sql.execute("UPDATE codes SET used = ? WHERE hash = ? AND used IS NULL", (now, digest(code)))
    approval = _approval_of(sql, "codes", code)
    scope = "" if approval is None else approval.scope
    return _issued(sql, approval, scope, now, seconds, is_first=used.rowcount == 1)


def find_refresh_token(sql: Transaction, token: str, client: str) -> Token | Replayed | None:
    """Return a refresh token of this client. One that is used again ends its approval."""
    found = _token(sql, token, "refresh")
    approval = None if found is None else _approval(sql, found["approval"])
    if found is None or approval is None or approval.client != client:
        return None
    if found["used"] is not None:
        revoke(sql, approval.id)
        return Replayed(approval)
    return Token(approval, found["scope"], found["expires"])


def use_refresh_token(
    sql: Transaction, token: str, scope: str, now: float, seconds: float
) -> IssuedTokens | Replayed | None:
    """Exchange a refresh token for tokens with this scope. If it has been used, its approval ends."""
    used = sql.execute(
        "UPDATE tokens SET used = ? WHERE hash = ? AND kind = 'refresh' AND used IS NULL", (now, digest(token))
    )
    approval = _approval_of(sql, "tokens", token)
    return _issued(sql, approval, scope, now, seconds, is_first=used.rowcount == 1)


def find_access_token(sql: Transaction, token: str, now: float) -> Token | None:
    """Return an access token, valid or expired, and note now and then that its approval is in use."""
    found = _token(sql, token, "access")
    approval = None if found is None else _approval(sql, found["approval"])
    if found is None or approval is None:
        return None
    if now - approval.used > USE_NOTED_SECONDS:
        sql.execute("UPDATE approvals SET used = ? WHERE id = ?", (now, approval.id))
    return Token(approval, found["scope"], min(found["expires"], approval.expires))


def revoke_token(sql: Transaction, token: str, client: str) -> Approval | None:
    """End the approval of a token of this client, whichever kind it is, and return it; None if there is none."""
    approval = _approval_of(sql, "tokens", token)
    if approval is None or approval.client != client:
        return None
    revoke(sql, approval.id)
    return approval


def revoke(sql: Transaction, approval: str) -> None:
    """End an approval, with its codes and tokens."""
    sql.execute("DELETE FROM approvals WHERE id = ?", (approval,))


def is_approved(sql: Transaction, client: str, now: float) -> bool:
    """Whether an approval of this client is in force."""
    query = "SELECT 1 FROM approvals WHERE client = ? AND expires > ?"
    return sql.execute(query, (client, now)).fetchone() is not None


def all_approvals(sql: Transaction, now: float) -> Sequence[Approval]:
    """Return the approvals in force, the latest first."""
    _expire(sql, now)
    return [Approval(**dict(row)) for row in sql.execute("SELECT * FROM approvals ORDER BY created DESC").fetchall()]


def _issued(
    sql: Transaction,
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
        revoke(sql, approval.id)
        return None if is_first else Replayed(approval)
    _expire(sql, now)
    issued = new_tokens(approval, scope, now, seconds)
    for record in (
        (digest(issued.access), approval.id, "access", scope, now + issued.seconds),
        (digest(issued.refresh), approval.id, "refresh", approval.scope, approval.expires),
    ):
        sql.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", record)
    return issued


def _expire(sql: Transaction, now: float) -> None:
    """Remove what has expired. Codes and refresh tokens that were used stay, to be recognised if they come again."""
    sql.execute("DELETE FROM approvals WHERE expires <= ?", (now,))
    sql.execute("DELETE FROM tokens WHERE expires <= ?", (now,))
    # An approval whose code nobody has exchanged will never have a token.
    sql.execute(
        "DELETE FROM approvals WHERE id IN (SELECT approval FROM codes WHERE expires <= ? AND used IS NULL)", (now,)
    )


def _approval(sql: Transaction, approval: str) -> Approval | None:
    found = sql.execute("SELECT * FROM approvals WHERE id = ?", (approval,)).fetchone()
    return None if found is None else Approval(**dict(found))


def _approval_of(sql: Transaction, table: Literal["codes", "tokens"], secret: str) -> Approval | None:
    query = f"SELECT approval FROM {table} WHERE hash = ?"  # noqa: S608 - one of two names of ours
    found = sql.execute(query, (digest(secret),)).fetchone()
    return None if found is None else _approval(sql, found["approval"])


def _token(sql: Transaction, token: str, kind: Kind) -> Row | None:
    return sql.execute("SELECT * FROM tokens WHERE hash = ? AND kind = ?", (digest(token), kind)).fetchone()
