"""What the authorization server keeps: registered clients, approvals, codes and tokens.

One port, with two implementations: SQL (`sql_state`), in SQLite for one machine or in Postgres where several gateways
share it, and Redis or Valkey, which they may share too (`redis_state`). Codes, tokens, clients' secrets and the keys of
pending requests are only ever stored as their SHA-256.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from gateway.config.authorization_settings import POSTGRES_SCHEMES
from gateway.config.schema import Settings
from gateway.serving.authorization.approvals import Approval, Code, IssuedTokens, Replayed, Token
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.sqlite_database import SqliteDatabase, database_path

PendingKind = Literal["login", "decision"]
"""What a browser is expected to go on with: a login at the company's provider, or a decision after it."""


class State(Protocol):
    """Each method is atomic, also among several gateways. Times are seconds since 1970.

    All raise StateUnavailable while the state cannot be reached.
    """

    async def find_client(self, client_id: str) -> Client | None:
        """Return a registered client."""
        ...

    async def keep_client(self, client: Client, now: float, most: int) -> None:
        """Keep a registered client. If there are `most`, those that nobody has approved make way, oldest first.

        Raises:
            RegistrationError: all others are in use.
        """
        ...

    async def keep_pending(self, kind: PendingKind, value: str, now: float, seconds: float, most: int) -> str:
        """Keep a request that a browser goes on with, and return its key.

        If there are `most` of its kind, the oldest one makes way.
        """
        ...

    async def find_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        """Return a pending request."""
        ...

    async def take_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        """Return a pending request for the last time: whoever else asks for it gets None."""
        ...

    async def approve(self, approval: Approval, redirect_uri: str, challenge: str) -> str:
        """Keep a new approval, and return the code for it."""
        ...

    async def find_code(self, code: str, client: str) -> Code | Replayed | None:
        """Return a code that was issued to this client. One that is used again ends its approval."""
        ...

    async def use_code(self, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
        """Exchange a code for an access token of so many seconds. If somebody else was first, its approval ends."""
        ...

    async def find_refresh_token(self, token: str, client: str) -> Token | Replayed | None:
        """Return a refresh token of this client. One that is used again ends its approval."""
        ...

    async def use_refresh_token(
        self, token: str, scope: str, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        """Exchange a refresh token for tokens with this scope. If it has been used, its approval ends."""
        ...

    async def find_access_token(self, token: str, now: float) -> Token | None:
        """Return an access token, valid or expired, and note now and then that its approval is in use."""
        ...

    async def revoke_token(self, token: str, client: str) -> Approval | None:
        """End the approval of a token of this client, whichever kind it is, and return it; None if there is none."""
        ...

    async def revoke(self, approval: str) -> None:
        """End an approval, with its codes and tokens."""
        ...

    async def is_approved(self, client: str, now: float) -> bool:
        """Whether an approval of this client is in force."""
        ...

    async def all_approvals(self, now: float) -> Sequence[Approval]:
        """Return the approvals in force, the latest first."""
        ...

    def check(self) -> None:
        """Look at the start whether it can be used.

        Raises:
            ConfigError: it never can, with these settings.
        """
        ...

    async def close(self) -> None:
        """Close what is open; the next use opens it again."""
        ...


def state_of(settings: Settings, folder: Path | None) -> State:
    """Return the state that the settings ask for; `folder` is where a file of its own would be.

    Replicas of a cluster share that of the cluster, unless the settings name another.

    Raises:
        ConfigError: its package is not installed.
    """
    from gateway.serving.authorization.sql_state import SqlState

    server = settings.access.authorization_server
    url, where = None if server is None else server.state, "access.authorization_server.state"
    if url is None and (server is None or server.database is None):
        url, where = settings.cluster.url, "cluster.url"
    if url is None:
        return SqlState(SqliteDatabase(database_path(settings, folder)))
    return shared_state(url, where)


def shared_state(url: str, where: str) -> State:
    """Return the state in the database at a URL, which `where` has; it is not asked anything yet.

    Raises:
        ConfigError: its package is not installed, or it takes no such URL.
    """
    if url.startswith(POSTGRES_SCHEMES):
        from gateway.serving.authorization.postgres_database import PostgresDatabase
        from gateway.serving.authorization.sql_state import SqlState

        return SqlState(PostgresDatabase(url))
    from gateway.serving.authorization.redis_state import RedisState

    return RedisState(url, where)


def new_key() -> str:
    """Return the key of a pending request (256 bits)."""
    return secrets.token_urlsafe(32)
