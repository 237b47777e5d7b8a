"""The state of the authorization server in Redis or Valkey, which several gateways may share.

Records are JSON under keys (`redis_records`) that expire by themselves some time after they count no more; what counts
is decided by the gateways' clocks, as with SQLite. An approval is one key, and all that comes from it ends with that
key. Whatever must happen once is a transaction that fails if anybody else was faster (WATCH, MULTI, EXEC), and is then
decided again (`RedisConnection.decided`).
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp.server.auth.provider import RegistrationError

from gateway.serving.authorization.approvals import (
    CODE_SECONDS,
    MOST_OF_ONE,
    USE_NOTED_SECONDS,
    Approval,
    Code,
    IssuedTokens,
    Replayed,
    Token,
    new_tokens,
)
from gateway.serving.authorization.clients import UNAPPROVED_SECONDS, UNUSED_SECONDS, Client
from gateway.serving.authorization.redis_records import (
    SLACK_SECONDS,
    TAG,
    Keys,
    approval_record,
    client_of,
    client_record,
    code_record,
    lasts,
    read,
    read_approvals,
    token_record,
)
from gateway.serving.authorization.state import PendingKind, new_key
from gateway.serving.databases.redis_connection import Pipe, RedisConnection


class RedisState:
    """State at a URL, as `RedisConnection` has it. Raises ConfigError if it has none."""

    def __init__(self, url: str, where: str = "access.authorization_server.state") -> None:
        self._connection = RedisConnection(url, TAG, where)
        self._keys = Keys(in_cluster=self._connection.in_cluster)

    def check(self) -> None:
        self._connection.check()

    async def close(self) -> None:
        await self._connection.close()

    # -- clients -------------------------------------------------------------------------------------------------------

    async def find_client(self, client_id: str) -> Client | None:
        async with self._connection.reached() as redis:
            found = await read(redis, self._keys.client(client_id))
            return None if found is None else client_of(client_id, found)

    async def keep_client(self, client: Client, now: float, most: int) -> None:
        async def keep(pipe: Pipe) -> bool:
            gone: list[str] = await pipe.zrangebyscore(self._keys.new_clients, "-inf", now - UNAPPROVED_SECONDS)
            unused = await pipe.zrangebyscore(self._keys.approved_clients, "-inf", now - UNUSED_SECONDS)
            gone += [one for one in unused if not await self._is_approved(pipe, one, now)]
            excess = (
                await pipe.zcard(self._keys.new_clients)
                + await pipe.zcard(self._keys.approved_clients)
                - len(gone)
                + 1
                - most
            )
            if excess > 0:
                gone += await self._least_needed(pipe, set(gone), now, excess)
                if (
                    await pipe.zcard(self._keys.new_clients) + await pipe.zcard(self._keys.approved_clients) - len(gone)
                    >= most
                ):
                    return False
            pipe.multi()
            for one in gone:
                pipe.zrem(self._keys.new_clients, one)
                pipe.zrem(self._keys.approved_clients, one)
                pipe.delete(self._keys.client(one))
            # One that nobody approves is also forgotten if nobody registers any more.
            pipe.set(self._keys.client(client.id), client_record(client), ex=int(UNAPPROVED_SECONDS) + SLACK_SECONDS)
            pipe.zadd(self._keys.new_clients, {client.id: now})
            return True

        if not await self._connection.decided(keep, self._keys.new_clients, self._keys.approved_clients):
            raise RegistrationError("invalid_client_metadata", "too many clients are registered here")

    async def _least_needed(self, pipe: Pipe, gone: set[str], now: float, count: int) -> list[str]:
        """Return clients that make way: first those never approved, then those without an approval in force."""
        found: list[str] = [one for one in await pipe.zrange(self._keys.new_clients, 0, -1) if one not in gone][:count]
        if len(found) < count:
            for one in await pipe.zrange(self._keys.approved_clients, 0, -1):
                if one not in gone and not await self._is_approved(pipe, one, now):
                    found.append(one)
                if len(found) >= count:
                    break
        return found

    # -- pending requests ----------------------------------------------------------------------------------------------

    async def keep_pending(self, kind: PendingKind, value: str, now: float, seconds: float, most: int) -> str:
        key, index = new_key(), self._keys.pendings(kind)
        own, record = self._keys.pending(kind, key), json.dumps({"value": value, "expires": now + seconds})

        async def keep(pipe: Pipe) -> None:
            gone: list[str] = await pipe.zrangebyscore(index, "-inf", now)
            gone += [one for one in await pipe.zrange(index, 0, -most) if one not in gone]
            pipe.multi()
            for one in gone:
                pipe.zrem(index, one)
                pipe.delete(one)
            pipe.set(own, record, ex=lasts(now + seconds, now))
            pipe.zadd(index, {own: now + seconds})

        await self._connection.decided(keep, index)
        return key

    async def find_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        async with self._connection.reached() as redis:
            found = await read(redis, self._keys.pending(kind, key))
            return None if found is None or found["expires"] <= now else found["value"]

    async def take_pending(self, kind: PendingKind, key: str, now: float) -> str | None:
        found, own = await self.find_pending(kind, key, now), self._keys.pending(kind, key)
        async with self._connection.reached() as redis, redis.pipeline(transaction=True) as pipe:
            pipe.delete(own)
            pipe.zrem(self._keys.pendings(kind), own)
            removed, _ = await pipe.execute()
        return found if removed == 1 else None

    # -- approvals -----------------------------------------------------------------------------------------------------

    async def approve(self, approval: Approval, redirect_uri: str, challenge: str) -> str:
        code, now = secrets.token_urlsafe(32), approval.created
        owners = (self._keys.person(approval.principal), self._keys.host(approval.client))

        async def keep(pipe: Pipe) -> None:
            is_registered = await pipe.exists(self._keys.client(approval.client))
            seconds = lasts(approval.expires, now)
            last = [max(seconds, int(await pipe.ttl(owner))) for owner in owners]
            pipe.multi()
            pipe.set(self._keys.approval(approval.id), approval_record(approval), ex=seconds)
            pipe.set(self._keys.code(code), code_record(approval, redirect_uri, challenge), ex=seconds)
            pipe.sadd(self._keys.secrets(approval.id), self._keys.code(code), self._keys.used(code))
            pipe.expire(self._keys.secrets(approval.id), seconds)
            pipe.zadd(self._keys.approvals, {approval.id: approval.expires})
            pipe.zadd(self._keys.unused, {approval.id: now + CODE_SECONDS})
            for owner, longest in zip(owners, last, strict=True):
                pipe.zadd(owner, {approval.id: now})
                pipe.expire(owner, longest)
            if is_registered:
                pipe.zrem(self._keys.new_clients, approval.client)
                pipe.zadd(self._keys.approved_clients, {approval.client: now})
                pipe.expire(self._keys.client(approval.client), seconds + int(UNUSED_SECONDS))

        async with self._connection.reached() as redis:
            await self._expire(redis, now)
        await self._connection.decided(
            keep,
            self._keys.client(approval.client),
            self._keys.person(approval.principal),
            self._keys.host(approval.client),
        )
        async with self._connection.reached() as redis:
            for one in await redis.zrange(self._keys.person(approval.principal), 0, -1 - MOST_OF_ONE):
                await self._end(redis, one)
        return code

    async def find_code(self, code: str, client: str) -> Code | Replayed | None:
        async with self._connection.reached() as redis:
            found = await read(redis, self._keys.code(code))
            approval = await self._of(redis, found)
            if found is None or approval is None or approval.client != client:
                return None
            if await redis.exists(self._keys.used(code)):
                await self._end(redis, approval.id)
                return Replayed(approval)
            return Code(approval, found["redirect_uri"], found["challenge"], found["expires"])

    async def use_code(self, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
        return await self._exchange(self._keys.code(code), code, None, now, seconds)

    async def find_refresh_token(self, token: str, client: str) -> Token | Replayed | None:
        async with self._connection.reached() as redis:
            found = await read(redis, self._keys.token(token))
            approval = await self._of(redis, found)
            if found is None or found["kind"] != "refresh" or approval is None or approval.client != client:
                return None
            if await redis.exists(self._keys.used(token)):
                await self._end(redis, approval.id)
                return Replayed(approval)
            return Token(approval, found["scope"], found["expires"])

    async def use_refresh_token(
        self, token: str, scope: str, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        return await self._exchange(self._keys.token(token), token, scope, now, seconds)

    async def find_access_token(self, token: str, now: float) -> Token | None:
        async with self._connection.reached() as redis:
            found = await read(redis, self._keys.token(token))
            approval = await self._of(redis, found)
            if found is None or found["kind"] != "access" or approval is None:
                return None
            if now - approval.used > USE_NOTED_SECONDS:
                noted = approval_record(replace(approval, used=now))
                # Only if it is still there: a use brings no revoked approval back.
                if await redis.set(self._keys.approval(approval.id), noted, xx=True, keepttl=True):
                    await redis.zadd(self._keys.person(approval.principal), {approval.id: now}, xx=True)
            return Token(approval, found["scope"], min(found["expires"], approval.expires))

    async def revoke_token(self, token: str, client: str) -> Approval | None:
        async with self._connection.reached() as redis:
            approval = await self._of(redis, await read(redis, self._keys.token(token)))
            if approval is None or approval.client != client:
                return None
            return approval if await self._end(redis, approval.id) else None

    async def revoke(self, approval: str) -> None:
        async with self._connection.reached() as redis:
            await self._end(redis, approval)

    async def is_approved(self, client: str, now: float) -> bool:
        async with self._connection.reached() as redis:
            return await self._is_approved(redis, client, now)

    async def all_approvals(self, now: float) -> Sequence[Approval]:
        async with self._connection.reached() as redis:
            await self._expire(redis, now)
            found = await self._approvals(redis, await redis.zrange(self._keys.approvals, 0, -1))
        return sorted(found, key=lambda approval: approval.created, reverse=True)

    async def _exchange(
        self, record: str, secret: str, scope: str | None, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        """Issue tokens for a code or a refresh token, which `record` is the key of, unless it has been used."""
        async with self._connection.reached() as redis:
            found = await read(redis, record)
            if found is None:
                return None
            approval_key = self._keys.approval(found["approval"])

        async def issue(pipe: Pipe) -> IssuedTokens | Replayed | None:
            approval = await self._of(pipe, found)
            if approval is None:
                return None
            if await pipe.exists(self._keys.used(secret)):
                return Replayed(approval)
            if approval.expires <= now:
                return None
            issued = new_tokens(approval, approval.scope if scope is None else scope, now, seconds)
            pipe.multi()
            pipe.set(self._keys.used(secret), "1", ex=lasts(approval.expires, now))
            pipe.zrem(self._keys.unused, approval.id)
            for token, kind, expires, of in (
                (issued.access, "access", now + issued.seconds, issued.scope),
                (issued.refresh, "refresh", approval.expires, approval.scope),
            ):
                pipe.set(self._keys.token(token), token_record(approval, kind, of, expires), ex=lasts(expires, now))
                pipe.sadd(self._keys.secrets(approval.id), self._keys.token(token))
            pipe.sadd(self._keys.secrets(approval.id), self._keys.used(issued.refresh))
            return issued

        issued = await self._connection.decided(issue, self._keys.used(secret), approval_key)
        if not isinstance(issued, IssuedTokens):
            await self.revoke(found["approval"])
        return issued

    # -- what several of these need ------------------------------------------------------------------------------------

    async def _approvals(self, redis: Any, ids: Iterable[str]) -> list[Approval]:
        """Return those of these approvals that are there."""
        return await read_approvals(redis, [self._keys.approval(one) for one in ids])

    async def _of(self, redis: Any, found: Mapping[str, Any] | None) -> Approval | None:
        """Return the approval that a code or a token comes from."""
        return None if found is None else next(iter(await self._approvals(redis, [found["approval"]])), None)

    async def _is_approved(self, redis: Any, client: str, now: float) -> bool:
        found = await self._approvals(redis, await redis.zrange(self._keys.host(client), 0, -1))
        return any(approval.expires > now for approval in found)

    async def _expire(self, redis: Any, now: float) -> None:
        """End approvals that have expired, and those whose code nobody has exchanged: they will never have a token."""
        for expired in (self._keys.approvals, self._keys.unused):
            for one in await redis.zrangebyscore(expired, "-inf", now):
                await self._end(redis, one)

    async def _end(self, redis: Any, approval: str) -> bool:
        """End an approval, and return whether it was in force."""
        [found] = await self._approvals(redis, [approval]) or [None]
        given = await redis.smembers(self._keys.secrets(approval))
        async with redis.pipeline(transaction=True) as pipe:
            pipe.delete(self._keys.approval(approval))
            pipe.delete(self._keys.secrets(approval), *given)
            pipe.zrem(self._keys.approvals, approval)
            pipe.zrem(self._keys.unused, approval)
            if found is not None:
                pipe.zrem(self._keys.person(found.principal), approval)
                pipe.zrem(self._keys.host(found.client), approval)
            ended, *_ = await pipe.execute()
        return ended == 1
