"""The state of the authorization server in an SQL database: each method is one transaction."""

from collections.abc import Sequence
from functools import partial

from gateway.serving.authorization import sql_approvals, sql_clients
from gateway.serving.authorization.approvals import Approval, Code, IssuedTokens, Replayed, Token, digest
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.sql_database import SqlDatabase
from gateway.serving.authorization.state import PendingKind, new_key


class SqlState:
    """State in SQLite (`sqlite_database`) or Postgres (`postgres_database`)."""

    def __init__(self, database: SqlDatabase) -> None:
        self.database = database

    async def find_client(self, client_id: str) -> Client | None:
        if not _can_exist(client_id):
            return None
        return await self.database.run(partial(sql_clients.find_client, client_id=client_id), is_lookup=True)

    async def keep_client(self, client: Client, now: float, most: int) -> None:
        await self.database.run(partial(sql_clients.keep_client, client=client, now=now, most=most))

    async def keep_pending(self, kind: PendingKind, value: str, now: float, seconds: float, most: int) -> str:
        key, until = new_key(), now + seconds
        keep = partial(sql_clients.keep_pending, kind=kind, key=digest(key), value=value, until=until)
        await self.database.run(partial(keep, now=now, most=most))
        return key

    async def find_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        find = partial(sql_clients.find_pending, kind=kind, key=digest(key), now=now)
        return await self.database.run(find, is_lookup=True)

    async def take_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        return await self.database.run(partial(sql_clients.take_pending, kind=kind, key=digest(key), now=now))

    async def approve(self, approval: Approval, redirect_uri: str, challenge: str) -> str:
        keep = partial(sql_approvals.approve, approval=approval, redirect_uri=redirect_uri, challenge=challenge)
        return await self.database.run(keep)

    async def find_code(self, code: str, client: str) -> Code | Replayed | None:
        return await self.database.run(partial(sql_approvals.find_code, code=code, client=client))

    async def use_code(self, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
        return await self.database.run(partial(sql_approvals.use_code, code=code, now=now, seconds=seconds))

    async def find_refresh_token(self, token: str, client: str) -> Token | Replayed | None:
        return await self.database.run(partial(sql_approvals.find_refresh_token, token=token, client=client))

    async def use_refresh_token(
        self, token: str, scope: str, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        use = partial(sql_approvals.use_refresh_token, token=token, scope=scope, now=now, seconds=seconds)
        return await self.database.run(use)

    async def find_access_token(self, token: str, now: float) -> Token | None:
        return await self.database.run(partial(sql_approvals.find_access_token, token=token, now=now), is_lookup=True)

    async def revoke_token(self, token: str, client: str) -> Approval | None:
        return await self.database.run(partial(sql_approvals.revoke_token, token=token, client=client))

    async def revoke(self, approval: str) -> None:
        if _can_exist(approval):
            await self.database.run(partial(sql_approvals.revoke, approval=approval))

    async def is_approved(self, client: str, now: float) -> bool:
        if not _can_exist(client):
            return False
        return await self.database.run(partial(sql_approvals.is_approved, client=client, now=now), is_lookup=True)

    async def all_approvals(self, now: float) -> Sequence[Approval]:
        return await self.database.run(partial(sql_approvals.all_approvals, now=now))

    def check(self) -> None:
        self.database.check()

    async def close(self) -> None:
        self.database.close()


def _can_exist(name: str) -> bool:
    """Whether anything may be called like this: Postgres refuses a text with a NUL, even to look for."""
    return name.isprintable()
