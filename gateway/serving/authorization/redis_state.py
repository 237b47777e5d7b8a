"""The state of the authorization server in Redis or Valkey, which several gateways may share.

Records are JSON under keys that expire by themselves some time after they count no more; what counts is decided by the
gateways' clocks, as with SQLite. An approval is one key, and all that comes from it ends with that key. Whatever must
happen once is a transaction that fails if anybody else was faster (WATCH, MULTI, EXEC), and is then decided anew.

Keys, all beginning with `mcp-gateway:authorization:`:

    client:ID       a registered client; `clients:new` and `clients:approved` have the ids, by time
    approval:ID     an approval; `approvals` has the ids by their end, `unused` those whose code nobody has exchanged
    person:NAME     ids of approvals by their last use; `host:CLIENT` the same of a client
    code:HASH       a code; token:HASH a token; used:HASH is there once a code or refresh token was used
    secrets:ID      the keys of the codes and tokens of an approval
"""

import json
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar, cast

import anyio
from mcp.server.auth.provider import RegistrationError

from gateway.core.model.json_values import as_object
from gateway.errors import ConfigError, StateUnavailable
from gateway.serving.access.tokens import ACCESS_PREFIX, REFRESH_PREFIX
from gateway.serving.authorization.approvals import (
    CODE_SECONDS,
    MOST_OF_ONE,
    USE_NOTED_SECONDS,
    Approval,
    Code,
    IssuedTokens,
    Replayed,
    Token,
    digest,
)
from gateway.serving.authorization.clients import UNAPPROVED_SECONDS, UNUSED_SECONDS, Client

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

EXTRA = "mcp-multimodal-gateway[redis]"

_PREFIX = "mcp-gateway:authorization:"
_SECONDS = 3.0
"""Time for Redis to take a connection, and to answer."""
_CONNECTIONS = 32
"""Maximum number of connections; beyond it, requests wait for one."""
_TRIES = 20
"""How often a transaction is tried before others that are faster."""
_SLACK_SECONDS = 3_600
"""Time that a key is kept longer than its record counts: the clocks of gateways and Redis may differ."""

_NEW, _APPROVED = f"{_PREFIX}clients:new", f"{_PREFIX}clients:approved"
_APPROVALS, _UNUSED = f"{_PREFIX}approvals", f"{_PREFIX}unused"

Pipe = Any
"""A pipeline of redis-py, whose commands have no types of their own there."""


def _client(client_id: str) -> str:
    return f"{_PREFIX}client:{digest(client_id)}"


def _approval(approval: str) -> str:
    return f"{_PREFIX}approval:{approval}"


def _person(principal: str) -> str:
    return f"{_PREFIX}person:{digest(principal)}"


def _host(client_id: str) -> str:
    return f"{_PREFIX}host:{digest(client_id)}"


def _secrets(approval: str) -> str:
    return f"{_PREFIX}secrets:{approval}"


def _code(secret: str) -> str:
    return f"{_PREFIX}code:{digest(secret)}"


def _token(secret: str) -> str:
    return f"{_PREFIX}token:{digest(secret)}"


def _used(secret: str) -> str:
    return f"{_PREFIX}used:{digest(secret)}"


class RedisState:
    """State at a URL: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and database.

    Raises:
        ConfigError: redis-py is not installed, or takes no such URL.
    """

    def __init__(self, url: str) -> None:
        try:
            from redis.asyncio import BlockingConnectionPool, Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError:
            raise _fault(
                "needs a package that is not installed", f"install the extra redis, as in pip install '{EXTRA}'"
            ) from None
        self._url = url
        self._is_away = False
        once_more = Retry(NoBackoff(), 1)  # a connection that Redis has closed meanwhile is opened again
        limits: dict[str, Any] = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS, "retry": once_more}
        try:
            pool = cast("Any", BlockingConnectionPool).from_url(
                url, max_connections=_CONNECTIONS, timeout=_SECONDS, decode_responses=True, **limits
            )
        except ValueError:
            raise _fault(
                "is not the URL of a Redis", 'write it as "redis://:PASSWORD@HOST:6379/0"; rediss:// is with TLS'
            ) from None
        self._redis: Any = cast("Any", Redis).from_pool(pool)  # which it closes

    # -- clients -------------------------------------------------------------------------------------------------------

    async def find_client(self, client_id: str) -> Client | None:
        async with self._reached() as redis:
            found = await _read(redis, _client(client_id))
            if found is None:
                return None
            return Client(client_id, found["name"], tuple(found["redirect_uris"]), found["secret"])

    async def keep_client(self, client: Client, now: float, most: int) -> None:
        async def keep(pipe: Pipe) -> bool:
            gone: list[str] = await pipe.zrangebyscore(_NEW, "-inf", now - UNAPPROVED_SECONDS)
            unused = await pipe.zrangebyscore(_APPROVED, "-inf", now - UNUSED_SECONDS)
            gone += [one for one in unused if not await self._is_approved(pipe, one, now)]
            excess = await pipe.zcard(_NEW) + await pipe.zcard(_APPROVED) - len(gone) + 1 - most
            if excess > 0:
                gone += await self._least_needed(pipe, set(gone), now, excess)
                if await pipe.zcard(_NEW) + await pipe.zcard(_APPROVED) - len(gone) >= most:
                    return False
            pipe.multi()
            for one in gone:
                pipe.zrem(_NEW, one)
                pipe.zrem(_APPROVED, one)
                pipe.delete(_client(one))
            record = {"name": client.name, "redirect_uris": list(client.redirect_uris), "secret": client.secret}
            # One that nobody approves is also forgotten if nobody registers any more.
            pipe.set(_client(client.id), json.dumps(record), ex=int(UNAPPROVED_SECONDS) + _SLACK_SECONDS)
            pipe.zadd(_NEW, {client.id: now})
            return True

        if not await self._decided(keep, _NEW, _APPROVED):
            raise RegistrationError("invalid_client_metadata", "too many clients are registered here")

    async def _least_needed(self, pipe: Pipe, gone: set[str], now: float, count: int) -> list[str]:
        """Return clients that make way: first those never approved, then those without an approval in force."""
        found: list[str] = [one for one in await pipe.zrange(_NEW, 0, -1) if one not in gone][:count]
        if len(found) < count:
            for one in await pipe.zrange(_APPROVED, 0, -1):
                if one not in gone and not await self._is_approved(pipe, one, now):
                    found.append(one)
                if len(found) >= count:
                    break
        return found

    # -- approvals -----------------------------------------------------------------------------------------------------

    async def approve(self, approval: Approval, redirect_uri: str, challenge: str) -> str:
        code, now = secrets.token_urlsafe(32), approval.created
        record = {
            "approval": approval.id,
            "redirect_uri": redirect_uri,
            "challenge": challenge,
            "expires": now + CODE_SECONDS,
        }

        async def keep(pipe: Pipe) -> None:
            is_registered = await pipe.exists(_client(approval.client))
            lasts = _lasts(approval.expires, now)
            owners = (_person(approval.principal), _host(approval.client))
            last = [max(lasts, int(await pipe.ttl(owner))) for owner in owners]
            pipe.multi()
            pipe.set(_approval(approval.id), json.dumps(asdict(approval)), ex=lasts)
            pipe.set(_code(code), json.dumps(record), ex=lasts)
            pipe.sadd(_secrets(approval.id), _code(code), _used(code))
            pipe.expire(_secrets(approval.id), lasts)
            pipe.zadd(_APPROVALS, {approval.id: approval.expires})
            pipe.zadd(_UNUSED, {approval.id: now + CODE_SECONDS})
            for owner, seconds in zip(owners, last, strict=True):
                pipe.zadd(owner, {approval.id: now})
                pipe.expire(owner, seconds)
            if is_registered:
                pipe.zrem(_NEW, approval.client)
                pipe.zadd(_APPROVED, {approval.client: now})
                pipe.expire(_client(approval.client), lasts + int(UNUSED_SECONDS))

        async with self._reached() as redis:
            await self._expire(redis, now)
        await self._decided(keep, _client(approval.client), _person(approval.principal), _host(approval.client))
        async with self._reached() as redis:
            for one in await redis.zrange(_person(approval.principal), 0, -1 - MOST_OF_ONE):
                await self._end(redis, one)
        return code

    async def find_code(self, code: str, client: str) -> Code | Replayed | None:
        async with self._reached() as redis:
            found = await _read(redis, _code(code))
            approval = await self._of(redis, found)
            if found is None or approval is None or approval.client != client:
                return None
            if await redis.exists(_used(code)):
                await self._end(redis, approval.id)
                return Replayed(approval)
            return Code(approval, found["redirect_uri"], found["challenge"], found["expires"])

    async def use_code(self, code: str, now: float, seconds: float) -> IssuedTokens | Replayed | None:
        return await self._exchange(_code(code), code, None, now, seconds)

    async def find_refresh_token(self, token: str, client: str) -> Token | Replayed | None:
        async with self._reached() as redis:
            found = await _read(redis, _token(token))
            approval = await self._of(redis, found)
            if found is None or found["kind"] != "refresh" or approval is None or approval.client != client:
                return None
            if await redis.exists(_used(token)):
                await self._end(redis, approval.id)
                return Replayed(approval)
            return Token(approval, found["scope"], found["expires"])

    async def use_refresh_token(
        self, token: str, scope: str, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        return await self._exchange(_token(token), token, scope, now, seconds)

    async def find_access_token(self, token: str, now: float) -> Token | None:
        async with self._reached() as redis:
            found = await _read(redis, _token(token))
            approval = await self._of(redis, found)
            if found is None or found["kind"] != "access" or approval is None:
                return None
            if now - approval.used > USE_NOTED_SECONDS:
                noted = json.dumps(asdict(replace(approval, used=now)))
                # Only if it is still there: a use brings no revoked approval back.
                if await redis.set(_approval(approval.id), noted, xx=True, keepttl=True):
                    await redis.zadd(_person(approval.principal), {approval.id: now}, xx=True)
            return Token(approval, found["scope"], min(found["expires"], approval.expires))

    async def revoke_token(self, token: str, client: str) -> Approval | None:
        async with self._reached() as redis:
            approval = await self._of(redis, await _read(redis, _token(token)))
            if approval is None or approval.client != client:
                return None
            return approval if await self._end(redis, approval.id) else None

    async def revoke(self, approval: str) -> None:
        async with self._reached() as redis:
            await self._end(redis, approval)

    async def is_approved(self, client: str, now: float) -> bool:
        async with self._reached() as redis:
            return await self._is_approved(redis, client, now)

    async def all_approvals(self, now: float) -> Sequence[Approval]:
        async with self._reached() as redis:
            await self._expire(redis, now)
            found = await _approvals(redis, await redis.zrange(_APPROVALS, 0, -1))
        return sorted(found, key=lambda approval: approval.created, reverse=True)

    async def _exchange(
        self, record: str, secret: str, scope: str | None, now: float, seconds: float
    ) -> IssuedTokens | Replayed | None:
        """Issue tokens for a code or a refresh token, which `record` is the key of, unless it has been used."""
        async with self._reached() as redis:
            found = await _read(redis, record)
            if found is None:
                return None
            approval_key = _approval(found["approval"])

        async def issue(pipe: Pipe) -> IssuedTokens | Replayed | None:
            approval = await self._of(pipe, found)
            if approval is None:
                return None
            if await pipe.exists(_used(secret)):
                return Replayed(approval)
            if approval.expires <= now:
                return None
            issued = IssuedTokens(
                ACCESS_PREFIX + secrets.token_urlsafe(32),
                REFRESH_PREFIX + secrets.token_urlsafe(32),
                int(min(seconds, approval.expires - now)),
                approval.scope if scope is None else scope,
            )
            pipe.multi()
            pipe.set(_used(secret), "1", ex=_lasts(approval.expires, now))
            pipe.zrem(_UNUSED, approval.id)
            for token, kind, expires, of in (
                (issued.access, "access", now + issued.seconds, issued.scope),
                (issued.refresh, "refresh", approval.expires, approval.scope),
            ):
                kept = {"approval": approval.id, "kind": kind, "scope": of, "expires": expires}
                pipe.set(_token(token), json.dumps(kept), ex=_lasts(expires, now))
                pipe.sadd(_secrets(approval.id), _token(token))
            pipe.sadd(_secrets(approval.id), _used(issued.refresh))
            return issued

        issued = await self._decided(issue, _used(secret), approval_key)
        if not isinstance(issued, IssuedTokens):
            await self.revoke(found["approval"])
        return issued

    # -- the database --------------------------------------------------------------------------------------------------

    async def _of(self, redis: Any, found: Mapping[str, Any] | None) -> Approval | None:
        """Return the approval that a code or a token comes from."""
        return None if found is None else next(iter(await _approvals(redis, [found["approval"]])), None)

    async def _is_approved(self, redis: Any, client: str, now: float) -> bool:
        found = await _approvals(redis, await redis.zrange(_host(client), 0, -1))
        return any(approval.expires > now for approval in found)

    async def _expire(self, redis: Any, now: float) -> None:
        """End approvals that have expired, and those whose code nobody has exchanged: they will never have a token."""
        for expired in (_APPROVALS, _UNUSED):
            for one in await redis.zrangebyscore(expired, "-inf", now):
                await self._end(redis, one)

    async def _end(self, redis: Any, approval: str) -> bool:
        """End an approval, and return whether it was in force."""
        [found] = await _approvals(redis, [approval]) or [None]
        given = await redis.smembers(_secrets(approval))
        async with redis.pipeline(transaction=True) as pipe:
            pipe.delete(_approval(approval))
            pipe.delete(_secrets(approval), *given)
            pipe.zrem(_APPROVALS, approval)
            pipe.zrem(_UNUSED, approval)
            if found is not None:
                pipe.zrem(_person(found.principal), approval)
                pipe.zrem(_host(found.client), approval)
            ended, *_ = await pipe.execute()
        return ended == 1

    async def _decided(self, decide: Callable[[Pipe], Awaitable[ResultT]], *watched: str) -> ResultT:
        """Run what reads, begins a transaction (`multi`) and fills it; again if a watched key has changed meanwhile."""
        from redis.exceptions import WatchError

        async with self._reached() as redis:
            for _ in range(_TRIES):
                async with redis.pipeline(transaction=True) as pipe:
                    try:
                        await pipe.watch(*watched)
                        result = await decide(pipe)
                        await pipe.execute()
                    except WatchError:
                        continue
                    return result
        raise StateUnavailable("logins cannot be checked at present", remedy="too much happens at once: try again")

    @asynccontextmanager
    async def _reached(self) -> AsyncGenerator[Any]:
        """Context manager in which failures of Redis are StateUnavailable; the log says once that it is away."""
        from redis.exceptions import RedisError, WatchError

        try:
            yield self._redis
        except WatchError:
            raise
        except (RedisError, OSError, TimeoutError) as error:
            raise self._unusable(str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable("it has something that no gateway of this version has written") from error
        if self._is_away:
            self._is_away = False
            logger.info("the state of the authorization server can be used again")

    def _unusable(self, why: str) -> StateUnavailable:
        if not self._is_away:
            logger.error("the state of the authorization server cannot be used: %s", why)
        self._is_away = True
        return StateUnavailable("logins cannot be checked at present", remedy="see the log")

    def check(self) -> None:
        """Look whether Redis answers. If it does not, the gateway starts, and answers 503 until it does."""
        from redis import Redis
        from redis.exceptions import RedisError

        limits: dict[str, Any] = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
        try:
            with cast("Any", Redis).from_url(self._url, **limits) as redis:
                redis.ping()
        except (RedisError, OSError) as error:
            self._is_away = True
            logger.error("the state of the authorization server cannot be used: %s", error)

    async def close(self) -> None:
        """Close the connections; the next use opens them again."""
        with anyio.move_on_after(_SECONDS, shield=True):
            await self._redis.aclose()


def _fault(words: str, remedy: str) -> ConfigError:
    return ConfigError(words, where="access.authorization_server.state", remedy=remedy)


def _lasts(expires: float, now: float) -> int:
    """Return the seconds after which a key may go."""
    return max(1, int(expires - now)) + _SLACK_SECONDS


async def _read(redis: Any, key: str) -> Mapping[str, Any] | None:
    text = await redis.get(key)
    return None if text is None else as_object(json.loads(text))


async def _approvals(redis: Any, ids: Iterable[str]) -> list[Approval]:
    """Return those of these approvals that are there."""
    keys = [_approval(one) for one in ids]
    found: Sequence[str | None] = await redis.mget(keys) if keys else []
    return [Approval(**json.loads(text)) for text in found if text is not None]
