"""The state of the authorization server in SQLite: each method is one transaction (`approvals`, `clients`)."""

from collections.abc import Sequence
from functools import partial

from gateway.serving.authorization import approvals, clients
from gateway.serving.authorization.approvals import Approval, Code, IssuedTokens, Replayed, Token
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.database import Database


class SqliteState:
    """State in a file, or in memory."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def find_client(self, client_id: str) -> Client | None:
        return await self.database.run(partial(clients.find_client, client_id=client_id))

    async def keep_client(self, client: Client, now: float, most: int) -> None:
        await self.database.run(partial(clients.keep_client, client=client, now=now, most=most))

    async def approve(self, approval: Approval, redirect_uri: str, challenge: str) -> str:
        keep = partial(approvals.approve, approval=approval, redirect_uri=redirect_uri, challenge=challenge)
        return await self.database.run(keep)

    async def find_code(self, code: str, client: str) -> Code | Replayed | None:
        return await self.database.run(partial(approvals.find_code, code=code, client=client))

    async def use_code(self, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
        return await self.database.run(partial(approvals.use_code, code=code, now=now, seconds=seconds))

    async def find_refresh_token(self, token: str, client: str) -> Token | Replayed | None:
        return await self.database.run(partial(approvals.find_refresh_token, token=token, client=client))

    async def use_refresh_token(
        self, token: str, scope: str, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        use = partial(approvals.use_refresh_token, token=token, scope=scope, now=now, seconds=seconds)
        return await self.database.run(use)

    async def find_access_token(self, token: str, now: float) -> Token | None:
        return await self.database.run(partial(approvals.find_access_token, token=token, now=now))

    async def revoke_token(self, token: str, client: str) -> Approval | None:
        return await self.database.run(partial(approvals.revoke_token, token=token, client=client))

    async def revoke(self, approval: str) -> None:
        await self.database.run(partial(approvals.revoke, approval=approval))

    async def is_approved(self, client: str, now: float) -> bool:
        return await self.database.run(partial(approvals.is_approved, client=client, now=now))

    async def all_approvals(self, now: float) -> Sequence[Approval]:
        return await self.database.run(partial(approvals.all_approvals, now=now))

    def check(self) -> None:
        self.database.check()

    async def close(self) -> None:
        self.database.close()
