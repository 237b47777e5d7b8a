"""Registered clients, and pending requests, in an SQL database. Each function is to be run in a transaction."""

import json

from mcp.server.auth.provider import RegistrationError

from gateway.core.model.json_values import as_object
from gateway.serving.authorization.clients import UNAPPROVED_SECONDS, UNUSED_SECONDS, Client
from gateway.serving.authorization.sql_database import Transaction


def keep_client(sql: Transaction, client: Client, now: float, most: int) -> None:
    """Keep a registered client. If there are too many, those that nobody has approved make way, oldest first.

    Raises:
        RegistrationError: all others are in use.
    """
    sql.execute("DELETE FROM clients WHERE approved IS NULL AND created <= ?", (now - UNAPPROVED_SECONDS,))
    sql.execute(
        "DELETE FROM clients WHERE approved <= ? AND id NOT IN (SELECT client FROM approvals)", (now - UNUSED_SECONDS,)
    )
    count = _count_clients(sql)
    if count >= most:
        sql.execute(
            "DELETE FROM clients WHERE id IN (SELECT id FROM clients WHERE id NOT IN (SELECT client FROM approvals) "
            "ORDER BY approved IS NOT NULL, created LIMIT ?)",
            (count - most + 1,),
        )
        if _count_clients(sql) >= most:
            raise RegistrationError("invalid_client_metadata", "too many clients are registered here")
    metadata = json.dumps({"client_name": client.name, "redirect_uris": list(client.redirect_uris)})
    sql.execute("INSERT INTO clients VALUES (?, ?, ?, ?, NULL)", (client.id, metadata, client.secret, now))


def find_client(sql: Transaction, client_id: str) -> Client | None:
    """Return a registered client."""
    found = sql.execute("SELECT * FROM clients WHERE id = ?", (client_id,)).fetchone()
    if found is None:
        return None
    metadata = as_object(json.loads(found["metadata"]))
    return Client(client_id, metadata["client_name"], tuple(metadata["redirect_uris"]), found["secret"])


def keep_pending(sql: Transaction, kind: str, key: str, value: str, until: float, now: float, most: int) -> None:
    """Keep a value under a key until a time. If there are `most` of its kind, the oldest one makes way."""
    sql.execute("DELETE FROM pending WHERE expires <= ?", (now,))
    sql.execute(
        "DELETE FROM pending WHERE kind = ? AND hash NOT IN "
        "(SELECT hash FROM pending WHERE kind = ? ORDER BY expires DESC LIMIT ?)",
        (kind, kind, most - 1),
    )
    sql.execute("INSERT INTO pending VALUES (?, ?, ?, ?)", (key, kind, value, until))


def find_pending(sql: Transaction, kind: str, key: str, now: float) -> str | None:
    """Return a pending value."""
    query = "SELECT value FROM pending WHERE hash = ? AND kind = ? AND expires > ?"
    found = sql.execute(query, (key, kind, now)).fetchone()
    return None if found is None else found["value"]


def take_pending(sql: Transaction, kind: str, key: str, now: float) -> str | None:
    """Return a pending value for the last time."""
    found = find_pending(sql, kind, key, now)
    removed = sql.execute("DELETE FROM pending WHERE hash = ? AND kind = ?", (key, kind))
    return found if removed.rowcount == 1 else None


def _count_clients(sql: Transaction) -> int:
    return sql.execute("SELECT count(*) AS clients FROM clients").fetchone()["clients"]
